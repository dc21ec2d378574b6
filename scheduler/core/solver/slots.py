"""Counts the slots that a growing set of victims leaves: room on one node for one task.

For demands whose tasks request equally many whole GPUs. Sets of thousands of victims are counted with arrays.
Everywhere `room` has shape (nodes,): the GPUs of each node that are idle or being freed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scheduler.core.arrays import Bools, Floats, Ints
from scheduler.core.session.session import Session
from scheduler.core.solver.demand import NOISE, ProbeDemand, tasks_fitting
from scheduler.core.solver.victims import Batch


class UniformGpusFilter:
    """There must be as many slots as tasks."""

    def __init__(self, demand: ProbeDemand, room: Floats) -> None:
        self._gpus_per_task, self._task_count = demand.gpus_per_task, len(demand.tasks)
        #: By node; with the victims so far.
        self._room = room.tolist()
        self._slots = int(_slots_in(room, self._gpus_per_task).sum())

    def add(self, nodes: Sequence[int], gpus: Sequence[float]) -> None:
        """Count the slots that each victim adds on its node."""
        for node, freed_gpus in zip(nodes, gpus, strict=True):
            if freed_gpus and node >= 0:
                room = self._room[node]
                self._room[node] = room + freed_gpus
                self._slots += tasks_fitting(room + freed_gpus, self._gpus_per_task)
                self._slots -= tasks_fitting(room, self._gpus_per_task)

    def passes(self) -> bool:
        """Return whether there are as many slots as tasks."""
        return self._slots >= self._task_count

    def add_until_passing(self, batches: Sequence[Batch]) -> int:
        """Add batches up to the first with which there are slots enough, all if none is; return how many."""
        nodes, gpus = columns(batches)
        if (gpus % 1).any():
            return self._add_one_by_one(batches)  # sums of parts depend on their order
        room = np.array(self._room)
        with_task = room[nodes] + _sums_by_node(nodes, gpus)
        added = _slots_in(with_task, self._gpus_per_task)
        added -= _slots_in(with_task - gpus, self._gpus_per_task)
        slots = self._slots + np.cumsum(added)
        if slots[-1] >= self._task_count:
            task = int(np.argmax(slots >= self._task_count))
            self._slots = int(slots[task])
            ends = np.cumsum([len(batch.tasks) for batch in batches])
            return int(np.searchsorted(ends, task, side="right")) + 1
        self._slots = int(slots[-1])
        np.add.at(room, nodes, gpus)
        self._room = room.tolist()
        return len(batches)

    def _add_one_by_one(self, batches: Sequence[Batch]) -> int:
        for number, batch in enumerate(batches, start=1):
            self.add(batch.nodes, batch.gpus)
            if self.passes():
                return number
        return len(batches)


class LocalGpuBound:
    """Decides whether a demand of equal tasks could fit if only the victims on one node are evicted.

    Nodes with shared devices, and those of pod groups on several nodes, are never ruled out.
    """

    def __init__(self, session: Session, demand: ProbeDemand, room: Floats) -> None:
        self._gpus_per_task = demand.gpus_per_task
        self._shared_gpus = session.state.nodes.shared_gpus
        slots = _slots_in(room, demand.gpus_per_task)
        #: By node: its room with the victims so far, and how many slots it must have.
        self._room = room.tolist()
        self._needed_slots = (slots + (len(demand.tasks) - int(slots.sum()))).tolist()
        self._always_fits = len(demand.tasks) <= int(slots.sum())
        #: pod group that loses several tasks -> the node of its first victim
        self._first_node: dict[int, int] = {}
        #: the nodes of pod groups with victims on several nodes
        self._undecided_nodes: set[int] = set()

    @classmethod
    def make(cls, session: Session, demand: ProbeDemand, room: Floats) -> LocalGpuBound | None:
        """Return the bound, or None if the tasks do not request equally many whole devices."""
        return cls(session, demand, room) if demand.gpus_per_task else None

    def add(self, batch: Batch) -> None:
        """Add one more batch."""
        if batch.is_rest and len(batch.nodes) == 1 and batch.pod_group not in self._first_node:
            if batch.nodes[0] >= 0:
                self._room[batch.nodes[0]] += batch.gpus[0]
            return
        first_node = self._first_node.setdefault(batch.pod_group, batch.nodes[0])
        for node, freed_gpus in zip(batch.nodes, batch.gpus, strict=True):
            if node >= 0:
                self._room[node] += freed_gpus
            if node != first_node:
                self._undecided_nodes |= {node, first_node}

    def may_fit(self, node: int) -> bool:
        """Return whether the demand could fit if the victims on a node are evicted, and no others."""
        if self._always_fits or node in self._undecided_nodes:
            return True
        if node < 0:
            return False
        slots = tasks_fitting(self._room[node], self._gpus_per_task)
        return slots >= self._needed_slots[node] or bool(self._shared_gpus[node])

    def can_look_ahead(self, batches: Sequence[Batch]) -> bool:
        """Return whether each batch is one whole pod group of one task that holds whole GPUs of a node."""
        return not self._always_fits and all(
            batch.is_rest
            and len(batch.tasks) == 1
            and batch.nodes[0] >= 0
            and batch.gpus[0] % 1 == 0
            and batch.pod_group not in self._first_node
            for batch in batches
        )

    def add_all(self, batches: Sequence[Batch]) -> list[int]:
        """Add batches for which the bound can look ahead; return the numbers of those with which their node may fit."""
        nodes, gpus = columns(batches)
        room = np.array(self._room)
        slots = _slots_in(room[nodes] + _sums_by_node(nodes, gpus), self._gpus_per_task)
        fits: Bools = slots >= np.array(self._needed_slots)[nodes]
        never_ruled_out = self._undecided_nodes.union(
            node for node in set(nodes.tolist()) if self._shared_gpus[node]
        )
        if never_ruled_out:
            fits |= np.isin(nodes, list(never_ruled_out))
        np.add.at(room, nodes, gpus)
        self._room = room.tolist()
        numbers: list[int] = fits.nonzero()[0].tolist()
        return numbers


def columns(batches: Sequence[Batch]) -> tuple[Ints, Floats]:
    """Return the node of each task, and the GPUs that it frees there; none where it is on no node."""
    nodes = np.array([node for batch in batches for node in batch.nodes], dtype=np.int64)
    gpus = np.array([gpus for batch in batches for gpus in batch.gpus], dtype=np.float64)
    return nodes, np.where(nodes >= 0, gpus, 0.0)


def _sums_by_node(nodes: Ints, gpus: Floats) -> Floats:
    """Return for each task the GPUs that it and those before it free on its node."""
    by_node = np.argsort(nodes, kind="stable")
    node, freed = nodes[by_node], gpus[by_node]
    so_far = np.cumsum(freed)
    is_first = np.diff(node, prepend=-2) != 0
    on_other_nodes = (so_far - freed)[is_first][np.cumsum(is_first) - 1]
    sums: Floats = np.empty(len(nodes))
    sums[by_node] = so_far - on_other_nodes
    return sums


def _slots_in(room: Floats, gpus_per_task: float) -> Ints:
    """Return how many tasks fit into the room on each of some nodes; see `tasks_fitting`."""
    slots: Ints = np.maximum(np.floor((room + NOISE) / gpus_per_task), 0).astype(np.int64)
    return slots
