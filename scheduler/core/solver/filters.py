"""Cheap filters that reject a set of victims before a trial is run with it.

The set grows batch by batch, and each filter follows it. A set that passes once keeps passing, since more
victims only free more. The filters are those of KAI: node affinity, GPUs per topology domain, GPUs per node.

In this module `room` has shape (nodes,): the GPUs of each node that are idle or being freed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np

from scheduler.core.arrays import Floats
from scheduler.core.cluster.podgroups import SubgroupNode
from scheduler.core.session.hooks import NODE_AFFINITY
from scheduler.core.session.session import Session
from scheduler.core.solver.demand import ProbeDemand
from scheduler.core.solver.slots import UniformGpusFilter
from scheduler.core.solver.victims import Batch

#: (topology, label of the required level)
_Level = tuple[str, str]
#: level -> the domain of each node (-1 for none), and the number of domains
_Domains = dict[_Level, tuple["np.ndarray[tuple[int], np.dtype[np.int64]]", int]]


class GrowingFilter(Protocol):
    """Follows a growing set of victims and decides whether it is worth a trial."""

    def add(self, nodes: Sequence[int], gpus: Sequence[float]) -> None:
        """Add victims: the node of each, and how many GPUs it frees there."""
        ...

    def passes(self) -> bool:
        """Return whether the set so far passes."""
        ...


class VictimFilters:
    """All filters of one probe.

    Attributes
    ----------
    rejected : how many sets they rejected
    has_passed : whether a set has passed, so that all larger ones do
    """

    def __init__(self, session: Session, demand: ProbeDemand, room: Floats) -> None:
        self.rejected = 0
        self.has_passed = False
        self._filters: list[GrowingFilter] = []
        affinity = NodeAffinityFilter.make(session, demand, room)
        if affinity is not None:
            self._filters.append(affinity)
        topology = DomainGpusFilter.make(session, demand, room)
        if topology is not None:
            self._filters.append(topology)
        self._filters.append(_idle_gpus_filter(demand, room))

    def add(self, nodes: Sequence[int], gpus: Sequence[float]) -> None:
        """Add victims; not needed once a set has passed."""
        for growing_filter in self._filters:
            growing_filter.add(nodes, gpus)

    def passes(self) -> bool:
        """Return whether the set so far passes every filter; count it as rejected if not."""
        if self.has_passed:
            return True
        for growing_filter in self._filters:
            if not growing_filter.passes():
                self.rejected += 1
                return False
        self.has_passed = True
        return True

    @property
    def can_look_ahead(self) -> bool:
        """Return whether `add_until_passing` can be used."""
        return len(self._filters) == 1 and isinstance(self._filters[0], UniformGpusFilter)

    def add_until_passing(self, batches: Sequence[Batch]) -> int:
        """Add batches up to the first with which the set passes, all if none is; return how many.

        All sets before the last are counted as rejected; about that one `passes` must be asked.
        """
        (uniform,) = self._filters
        assert isinstance(uniform, UniformGpusFilter)
        count = uniform.add_until_passing(batches)
        self.rejected += count - 1
        return count


def _idle_gpus_filter(demand: ProbeDemand, room: Floats) -> GrowingFilter:
    if demand.gpus_per_task:
        return UniformGpusFilter(demand, room)
    return NodeGpusFilter(demand, room)


class NodeGpusFilter:
    """For tasks of different sizes: the largest tasks must fit onto the nodes with most GPUs."""

    def __init__(self, demand: ProbeDemand, room: Floats) -> None:
        self._gpus = demand.gpus
        self._room = room.copy()

    def add(self, nodes: Sequence[int], gpus: Sequence[float]) -> None:
        """Add freed GPUs to their nodes."""
        for node, freed_gpus in zip(nodes, gpus, strict=True):
            if node >= 0:
                self._room[node] += freed_gpus

    def passes(self) -> bool:
        """Return whether a greedy match finds a node for each task."""
        return _greedy_match(self._gpus, self._room)


class DomainGpusFilter:
    """For subgroups confined to one domain: the largest must fit into the domains with most GPUs."""

    def __init__(
        self, requests: Mapping[_Level, list[float]], domains: _Domains, room: Floats
    ) -> None:
        self._requests = {level: sorted(gpus, reverse=True) for level, gpus in requests.items()}
        self._domains = domains
        #: level -> the room of each of its domains
        self._room = {
            level: np.bincount(
                domain_of[domain_of >= 0], weights=room[domain_of >= 0], minlength=count
            ).astype(np.float64)
            for level, (domain_of, count) in domains.items()
        }

    @classmethod
    def make(cls, session: Session, demand: ProbeDemand, room: Floats) -> DomainGpusFilter | None:
        """Return the filter, or None if no subgroup with members has a required level."""
        requests: dict[_Level, list[float]] = {}
        _collect_requests(session, demand, demand.view.root, requests)
        if not requests:
            return None
        inputs = session.state.nodes.inputs
        domains: _Domains = {}
        for level in requests:
            _, label = level
            label_values = [node.labels.get(label, "") for node in inputs]
            names = sorted(set(label_values) - {""})
            index_of = {name: index for index, name in enumerate(names)}
            domain_of = np.array([index_of.get(value, -1) for value in label_values])
            domains[level] = (domain_of, len(names))
        return cls(requests, domains, room)

    def add(self, nodes: Sequence[int], gpus: Sequence[float]) -> None:
        """Add freed GPUs to the domains of their nodes."""
        for level, (domain_of, _) in self._domains.items():
            room = self._room[level]
            for node, freed_gpus in zip(nodes, gpus, strict=True):
                if node >= 0 and domain_of[node] >= 0:
                    room[domain_of[node]] += freed_gpus

    def passes(self) -> bool:
        """Return whether the subgroups of each level can be matched to its domains."""
        return all(_greedy_match(gpus, self._room[level]) for level, gpus in self._requests.items())


def _collect_requests(
    session: Session,
    demand: ProbeDemand,
    subgroup: SubgroupNode,
    requests: dict[_Level, list[float]],
) -> None:
    if subgroup.topology is not None and subgroup.topology.required_level:
        level = (subgroup.topology.topology, subgroup.topology.required_level)
        requests.setdefault(level, []).append(_gpus_below(session, demand, subgroup))
    for member in subgroup.members:
        if isinstance(member, SubgroupNode):
            _collect_requests(session, demand, member, requests)


def _gpus_below(session: Session, demand: ProbeDemand, subgroup: SubgroupNode) -> float:
    """Return the GPUs that all tasks of a subgroup request, also those that run; tasks hidden by the probe do not count."""
    tasks, view = session.state.tasks, demand.view
    total = 0.0
    for leaf in subgroup.pod_sets():
        for task in session.state.pod_groups.pod_sets.tasks[leaf.index]:
            if task not in view.hidden:
                total += tasks.task_class[task].gpu_amount
    return total


class NodeAffinityFilter:
    """For tasks with node selectors or affinity: each needs an allowed node among the usable ones.

    Usable are the nodes with free GPUs (all nodes for CPU tasks) and those of victims.

    Parameters
    ----------
    masks : per task class, which nodes its tasks may run on
    """

    def __init__(self, masks: list[Floats], usable_nodes: set[int]) -> None:
        #: The masks of the task classes that have no usable node so far.
        self._unmet_masks = [mask for mask in masks if not any(mask[node] for node in usable_nodes)]

    @classmethod
    def make(cls, session: Session, demand: ProbeDemand, room: Floats) -> NodeAffinityFilter | None:
        """Return the filter, or None if no task selects its nodes."""
        tasks = session.state.tasks
        task_of_class = {
            tasks.task_class[task].index: task
            for task in demand.tasks
            if tasks.task_class[task].constraints.node_selector
            or tasks.task_class[task].constraints.node_affinity is not None
        }
        affinity = next(
            (
                node_filter
                for node_filter in session.hooks.filters
                if node_filter.name == NODE_AFFINITY
            ),
            None,
        )
        if not task_of_class or affinity is None:
            return None
        masks = [affinity.mask(task, tasks.task_class[task]) for task in task_of_class.values()]
        if demand.wants_gpu:
            usable_nodes = set(np.flatnonzero(room > 0).tolist())
        else:
            usable_nodes = set(range(len(room)))
        return cls([mask.astype(np.float64) for mask in masks], usable_nodes)

    def add(self, nodes: Sequence[int], gpus: Sequence[float]) -> None:
        """Add the nodes of victims to the usable ones."""
        del gpus
        self._unmet_masks = [
            mask
            for mask in self._unmet_masks
            if not any(node >= 0 and mask[node] for node in nodes)
        ]

    def passes(self) -> bool:
        """Return whether every task has a node."""
        return not self._unmet_masks


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


def _first_at_least(free: Iterable[float], gpus: float) -> int | None:
    for position, free_gpus in enumerate(free):
        if free_gpus + 1e-9 >= gpus:
            return position
    return None
