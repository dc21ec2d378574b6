"""Cheap tests of a growing set of victims, before a trial is run with it.

Each filter follows the set as it grows, batch by batch. A set that passes once keeps passing, since more
victims only free more. They are KAI's: node affinity, GPUs per topology domain, GPUs per node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np

from scheduler.core.arrays import Floats
from scheduler.core.cluster.podgroups import SubgroupNode
from scheduler.core.session.hooks import NODE_AFFINITY
from scheduler.core.session.session import Session
from scheduler.core.solver.demand import ProbeDemand, tasks_fitting
from scheduler.core.solver.victims import Batch


class GrowingFilter(Protocol):
    """Follows a growing set of victims and decides whether it is worth a trial."""

    def add(self, nodes: Sequence[int], gpus: Sequence[float]) -> None:
        """Add victims: the node of each, and how many GPUs it frees there."""
        ...

    def passes(self) -> bool:
        """Return whether the set so far passes."""
        ...


class VictimFilters:
    """All filters of one probe, and how many sets they rejected."""

    def __init__(self, session: Session, demand: ProbeDemand, room: Floats) -> None:
        self.rejected = 0
        self._has_passed = False
        self._filters: list[GrowingFilter] = []
        affinity = NodeAffinityFilter.make(session, demand, room)
        if affinity is not None:
            self._filters.append(affinity)
        topology = DomainGpusFilter.make(session, demand, room)
        if topology is not None:
            self._filters.append(topology)
        self._filters.append(_idle_gpus_filter(demand, room))

    def add_batch(self, batch: Batch) -> None:
        """Add one more batch."""
        self.add(batch.nodes, batch.gpus)

    def add(self, nodes: Sequence[int], gpus: Sequence[float]) -> None:
        """Add victims."""
        if not self._has_passed:
            for growing_filter in self._filters:
                growing_filter.add(nodes, gpus)

    def passes(self) -> bool:
        """Return whether the set so far passes every filter."""
        if self._has_passed:
            return True
        for growing_filter in self._filters:
            if not growing_filter.passes():
                self.rejected += 1
                return False
        self._has_passed = True
        return True


def _idle_gpus_filter(demand: ProbeDemand, room: Floats) -> GrowingFilter:
    if demand.gpus_per_task:
        return UniformGpusFilter(demand, room)
    return NodeGpusFilter(demand, room)


class UniformGpusFilter:
    """For equal tasks with whole devices: there must be as many places as tasks."""

    def __init__(self, demand: ProbeDemand, room: Floats) -> None:
        self._gpus_per_task, self._wanted = demand.gpus_per_task, len(demand.tasks)
        self._room = room
        #: node of a victim -> its GPUs so far, and the places these make
        self._on_node: dict[int, tuple[float, int]] = {}
        enough = room[room >= self._gpus_per_task - 1e-6]
        self._places = (
            int(np.floor((enough + 1e-6) / self._gpus_per_task).sum()) if enough.size else 0
        )

    def add(self, nodes: Sequence[int], gpus: Sequence[float]) -> None:
        """Count the places each victim adds on its node."""
        gpus_per_task = self._gpus_per_task
        for node, freed in zip(nodes, gpus, strict=True):
            if freed and node >= 0:
                before = self._on_node.get(node)
                if before is None:
                    room = float(self._room[node])
                    before = (room, tasks_fitting(room, gpus_per_task))
                total = before[0] + freed
                places = tasks_fitting(total, gpus_per_task)
                self._on_node[node] = (total, places)
                self._places += places - before[1]

    def passes(self) -> bool:
        """Return whether there are as many places as tasks."""
        return self._places >= self._wanted


class LocalGpuBound:
    """Whether the victims on one node, leaving alone, could free enough GPUs for a uniform demand.

    Nodes with shared devices, and those of pod groups on several nodes, are never ruled out.
    """

    def __init__(self, session: Session, demand: ProbeDemand, room: Floats) -> None:
        self._gpus_per_task, self._wanted = demand.gpus_per_task, len(demand.tasks)
        self._shared_gpus = session.state.nodes.shared_gpus
        self._room = room.tolist()
        self._places_now = int(np.floor((np.maximum(room, 0) + 1e-6) / demand.gpus_per_task).sum())
        self._freed: dict[int, float] = {}
        #: pod group -> the node of its batches so far
        self._home: dict[int, int] = {}
        self._undecided: set[int] = set()

    @classmethod
    def make(cls, session: Session, demand: ProbeDemand, room: Floats) -> LocalGpuBound | None:
        """Return the bound, or None if the tasks are not alike in whole devices."""
        return cls(session, demand, room) if demand.gpus_per_task else None

    def add(self, batch: Batch) -> None:
        """Add one more batch."""
        home = self._home.setdefault(batch.pod_group, batch.nodes[0])
        for node, freed in zip(batch.nodes, batch.gpus, strict=True):
            self._freed[node] = self._freed.get(node, 0.0) + freed
            if node != home:
                self._undecided |= {node, home}

    def may_fit(self, node: int) -> bool:
        """Return whether the demand could fit if the victims on a node leave, and no others."""
        if node in self._undecided or self._shared_gpus[node]:
            return True
        room, gpus_per_task = self._room[node], self._gpus_per_task
        more = tasks_fitting(room + self._freed.get(node, 0.0), gpus_per_task) - tasks_fitting(
            room, gpus_per_task
        )
        return self._places_now + more >= self._wanted


class NodeGpusFilter:
    """For tasks of different sizes: the largest tasks must fit onto the nodes with most GPUs."""

    def __init__(self, demand: ProbeDemand, room: Floats) -> None:
        self._gpus = demand.gpus
        self._room = room.copy()

    def add(self, nodes: Sequence[int], gpus: Sequence[float]) -> None:
        """Add freed GPUs to their nodes."""
        for node, freed in zip(nodes, gpus, strict=True):
            if node >= 0:
                self._room[node] += freed

    def passes(self) -> bool:
        """Return whether a greedy match finds a node for each task."""
        return _greedy_match(self._gpus, self._room)


class DomainGpusFilter:
    """For subgroups confined to one domain: the largest must fit into the domains with most GPUs."""

    def __init__(
        self, requests: Mapping[tuple[str, str], list[float]], domains: _Domains, room: Floats
    ) -> None:
        self._requests = {key: sorted(gpus, reverse=True) for key, gpus in requests.items()}
        self._domains = domains
        self._free = {
            key: np.bincount(index[index >= 0], weights=room[index >= 0], minlength=count).astype(
                np.float64
            )
            for key, (index, count) in domains.items()
        }

    @classmethod
    def make(cls, session: Session, demand: ProbeDemand, room: Floats) -> DomainGpusFilter | None:
        """Return the filter, or None if no subgroup with members has a required level."""
        requests: dict[tuple[str, str], list[float]] = {}
        _collect_requests(session, demand, demand.view.root, requests)
        if not requests:
            return None
        inputs = session.state.nodes.inputs
        domains: _Domains = {}
        for key in requests:
            values = [node.labels.get(key[1], "") for node in inputs]
            names = sorted(set(values) - {""})
            number = {name: position for position, name in enumerate(names)}
            domains[key] = (np.array([number.get(v, -1) for v in values]), len(names))
        return cls(requests, domains, room)

    def add(self, nodes: Sequence[int], gpus: Sequence[float]) -> None:
        """Add freed GPUs to the domains of their nodes."""
        for key, (index, _) in self._domains.items():
            free = self._free[key]
            for node, freed in zip(nodes, gpus, strict=True):
                if node >= 0 and index[node] >= 0:
                    free[index[node]] += freed

    def passes(self) -> bool:
        """Return whether the subgroups of each level can be matched to its domains."""
        return all(_greedy_match(gpus, self._free[key]) for key, gpus in self._requests.items())


_Domains = dict[tuple[str, str], tuple["np.ndarray[tuple[int], np.dtype[np.int64]]", int]]


def _collect_requests(
    session: Session,
    demand: ProbeDemand,
    group: SubgroupNode,
    requests: dict[tuple[str, str], list[float]],
) -> None:
    if group.topology is not None and group.topology.required_level:
        key = (group.topology.topology, group.topology.required_level)
        requests.setdefault(key, []).append(_gpus_below(session, demand, group))
    for member in group.members:
        if isinstance(member, SubgroupNode):
            _collect_requests(session, demand, member, requests)


def _gpus_below(session: Session, demand: ProbeDemand, group: SubgroupNode) -> float:
    """Sum what all tasks below ask for, including those that run already."""
    tasks, view = session.state.tasks, demand.view
    total = 0.0
    for leaf in group.pod_sets():
        for task in session.state.pod_groups.pod_sets.tasks[leaf.index]:
            if task not in view.hidden:
                total += tasks.task_class[task].gpu_amount
    return total


class NodeAffinityFilter:
    """For tasks with node selectors or affinity: each needs an allowed node among the usable ones.

    Usable are the nodes with free GPUs (all nodes for CPU tasks) and those of victims.
    """

    def __init__(self, masks: list[Floats], usable: set[int]) -> None:
        self._masks = masks
        self._unmet = [mask for mask in masks if not any(mask[node] for node in usable)]

    @classmethod
    def make(cls, session: Session, demand: ProbeDemand, room: Floats) -> NodeAffinityFilter | None:
        """Return the filter, or None if no task selects its nodes."""
        tasks = session.state.tasks
        classes = {
            tasks.task_class[task].index: task
            for task in demand.tasks
            if tasks.task_class[task].constraints.node_selector
            or tasks.task_class[task].constraints.node_affinity is not None
        }
        affinity = next((f for f in session.hooks.filters if f.name == NODE_AFFINITY), None)
        if not classes or affinity is None:
            return None
        masks = [affinity.mask(task, tasks.task_class[task]) for task in classes.values()]
        if demand.wants_gpu:
            usable = set(np.flatnonzero(room > 0).tolist())
        else:
            usable = set(range(len(room)))
        return cls([mask.astype(np.float64) for mask in masks], usable)

    def add(self, nodes: Sequence[int], gpus: Sequence[float]) -> None:
        """Add the nodes of victims to the usable ones."""
        del gpus
        self._unmet = [m for m in self._unmet if not any(n >= 0 and m[n] for n in nodes)]

    def passes(self) -> bool:
        """Return whether every task has a node."""
        return not self._unmet


def _greedy_match(requests: Sequence[float], room: Floats) -> bool:
    """Return whether requests, sorted from the largest, fit where most GPUs are free; zeros always fit."""
    count = min(len(requests), len(room))
    free = np.sort(room)[::-1][:count].tolist()
    for gpus in requests:
        if gpus == 0:
            return True
        position = _first_at_least(free, gpus)
        if position is None:
            return False
        free[position] -= gpus
    return True


def _first_at_least(free: Iterable[float], need: float) -> int | None:
    for position, gpus in enumerate(free):
        if gpus + 1e-9 >= need:
            return position
    return None
