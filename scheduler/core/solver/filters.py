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
from scheduler.core.solver.demand import ProbeDemand, whole_units
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
        if not self._has_passed:
            self._has_passed = all(growing_filter.passes() for growing_filter in self._filters)
            self.rejected += not self._has_passed
        return self._has_passed


def _idle_gpus_filter(demand: ProbeDemand, room: Floats) -> GrowingFilter:
    if demand.unit:
        return UniformGpusFilter(demand, room)
    return NodeGpusFilter(demand, room)


class UniformGpusFilter:
    """For equal tasks with whole devices: there must be as many places as tasks."""

    def __init__(self, demand: ProbeDemand, room: Floats) -> None:
        self._unit, self._wanted = demand.unit, len(demand.tasks)
        self._room = room
        self._more: dict[int, float] = {}
        self._places = int(np.maximum(np.floor((room + 1e-6) / self._unit), 0).sum())

    def add(self, nodes: Sequence[int], gpus: Sequence[float]) -> None:
        """Count the places each victim adds on its node."""
        for node, freed in zip(nodes, gpus, strict=True):
            if freed and node >= 0:
                old = float(self._room[node]) + self._more.get(node, 0.0)
                self._more[node] = self._more.get(node, 0.0) + freed
                self._places += whole_units(old + freed, self._unit) - whole_units(old, self._unit)

    def passes(self) -> bool:
        """Return whether there are as many places as tasks."""
        return self._places >= self._wanted


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
        """Match greedily; only as many nodes as there are tasks count."""
        return _greedy_match(self._gpus, self._room)


class DomainGpusFilter:
    """For subgroups confined to one domain: the largest must fit into the domains with most GPUs."""

    def __init__(
        self, wants: Mapping[tuple[str, str], list[float]], domains: _Domains, room: Floats
    ) -> None:
        self._wants = {key: sorted(gpus, reverse=True) for key, gpus in wants.items()}
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
        wants: dict[tuple[str, str], list[float]] = {}
        _collect_wants(session, demand, demand.view.root, wants)
        if not wants:
            return None
        inputs = session.state.nodes.inputs
        domains: _Domains = {}
        for key in wants:
            values = [node.labels.get(key[1], "") for node in inputs]
            names = sorted(set(values) - {""})
            number = {name: position for position, name in enumerate(names)}
            domains[key] = (np.array([number.get(v, -1) for v in values]), len(names))
        return cls(wants, domains, room)

    def add(self, nodes: Sequence[int], gpus: Sequence[float]) -> None:
        """Add freed GPUs to the domains of their nodes."""
        for key, (index, _) in self._domains.items():
            free = self._free[key]
            for node, freed in zip(nodes, gpus, strict=True):
                if node >= 0 and index[node] >= 0:
                    free[index[node]] += freed

    def passes(self) -> bool:
        """Match the subgroups of each level to its domains."""
        return all(_greedy_match(gpus, self._free[key]) for key, gpus in self._wants.items())


_Domains = dict[tuple[str, str], tuple["np.ndarray[tuple[int], np.dtype[np.int64]]", int]]


def _collect_wants(
    session: Session,
    demand: ProbeDemand,
    group: SubgroupNode,
    wants: dict[tuple[str, str], list[float]],
) -> None:
    if group.topology is not None and group.topology.required_level:
        key = (group.topology.topology, group.topology.required_level)
        wants.setdefault(key, []).append(_gpus_below(session, demand, group))
    for member in group.members:
        if isinstance(member, SubgroupNode):
            _collect_wants(session, demand, member, wants)


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
    """For tasks with node selectors or affinity: each needs an allowed node among those in play.

    In play are the nodes with free GPUs (all nodes for CPU tasks) and those of victims.
    """

    def __init__(self, masks: list[Floats], in_play: set[int]) -> None:
        self._masks = masks
        self._open = [mask for mask in masks if not any(mask[node] for node in in_play)]

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
            in_play = set(np.flatnonzero(room > 0).tolist())
        else:
            in_play = set(range(len(room)))
        return cls([mask.astype(np.float64) for mask in masks], in_play)

    def add(self, nodes: Sequence[int], gpus: Sequence[float]) -> None:
        """Bring the nodes of victims into play."""
        del gpus
        self._open = [m for m in self._open if not any(n >= 0 and m[n] for n in nodes)]

    def passes(self) -> bool:
        """Return whether every task has a node."""
        return not self._open


def _greedy_match(wants: Sequence[float], room: Floats) -> bool:
    """Return whether the wants, largest first, fit into the largest rooms; zeros always fit."""
    count = min(len(wants), len(room))
    left = np.sort(room)[::-1][:count].tolist()
    for want in wants:
        if want == 0:
            return True
        position = _first_at_least(left, want)
        if position is None:
            return False
        left[position] -= want
    return True


def _first_at_least(left: Iterable[float], want: float) -> int | None:
    for position, gpus in enumerate(left):
        if gpus + 1e-9 >= want:
            return position
    return None
