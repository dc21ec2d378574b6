"""Pod groups as columns, their trees of subgroups, and the counters that gang rules read.

A pod group has one or more pod sets (the leaves of its tree), which are numbered over the whole cluster.
The counters of tasks per status are updated with every change of a status, so that no rule has to scan
tasks to learn whether a gang is complete. Pod groups are sorted by age, then uid, namespace and name, so
that a smaller index means an older pod group.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter

from scheduler.core.arrays import NO_AMOUNTS, Amounts
from scheduler.core.cluster.inputs import (
    PodGroupInput,
    PodSetInput,
    SubGroupInput,
    TopologyConstraint,
)
from scheduler.core.errors import InputError

#: Columns of `PodSets` that count tasks by status.
COUNTERS = ("pending", "gated", "nominated", "active_allocated", "active_used")
#: Columns of `PodGroups` that repeat what the input of a pod group says under the same name.
_FROM_INPUT = ("priority", "preemptible", "last_start", "last_eviction", "stale_since")


@dataclass(slots=True)
class PodSetLeaf:
    """A leaf of a tree of subgroups; `index` is the index of its pod set."""

    name: str
    index: int
    topology: TopologyConstraint | None


@dataclass(slots=True)
class SubgroupNode:
    """An inner node of a tree of subgroups.

    Attributes
    ----------
    min_subgroups : how many direct members must be satisfied, None for all
    """

    name: str
    min_subgroups: int | None
    members: list[TreeMember]
    topology: TopologyConstraint | None

    @property
    def required(self) -> int:
        """Return how many direct members must be satisfied, as a number."""
        return len(self.members) if self.min_subgroups is None else self.min_subgroups

    def pod_sets(self) -> list[PodSetLeaf]:
        """Return all leaves below, in the order of the tree."""
        leaves: list[PodSetLeaf] = []
        for member in self.members:
            if isinstance(member, PodSetLeaf):
                leaves.append(member)
            else:
                leaves.extend(member.pod_sets())
        return leaves


#: What a subgroup consists of.
TreeMember = SubgroupNode | PodSetLeaf


@dataclass(slots=True)
class PodSets:
    """One entry per pod set.

    Attributes
    ----------
    pod_group : index of its pod group
    minimum : how many of its tasks must run
    tasks : indices of its tasks, in the order of placement once a session has sorted them
    pending, gated, nominated, active_allocated, active_used : how many of its tasks have this status or
        belong to this class of statuses (see `status.py`); `ClusterState.set_status` updates them
    """

    name: list[str] = field(default_factory=list)
    pod_group: list[int] = field(default_factory=list)
    minimum: list[int] = field(default_factory=list)
    tasks: list[list[int]] = field(default_factory=list)
    pending: list[int] = field(default_factory=list)
    gated: list[int] = field(default_factory=list)
    nominated: list[int] = field(default_factory=list)
    active_allocated: list[int] = field(default_factory=list)
    active_used: list[int] = field(default_factory=list)

    def copy(self) -> PodSets:
        """Return the pod sets for one session: copies of the counters, everything else shared."""
        copied = replace(self)
        for name in COUNTERS:
            setattr(copied, name, getattr(self, name)[:])
        return copied

    def clear(self, pod_sets: range, minimums: Sequence[int]) -> None:
        """Take all tasks out of some pod sets, and set their minimums."""
        for pod_set, minimum in zip(pod_sets, minimums, strict=True):
            self.tasks[pod_set] = []
            self.minimum[pod_set] = minimum
            for name in COUNTERS:
                getattr(self, name)[pod_set] = 0

    def append_empty_columns(self) -> None:
        """Append to every new pod set an empty list of tasks and counters of 0."""
        count = len(self.name)
        self.tasks.extend([] for _ in range(count))
        for name in COUNTERS:
            getattr(self, name).extend([0] * count)


@dataclass(slots=True)
class PodGroups:
    """One entry per pod group, oldest first.

    Attributes
    ----------
    queue : index of the leaf queue, -1 if it does not exist
    first_pod_set, pod_set_count, first_task, task_count : its ranges of pod sets and tasks
    pending, active_allocated : how many of its tasks have such a status
    version : counts the status changes of its tasks, for caches; never restored by undo
    last_start, last_eviction, stale_since : moments (`core/times.py`), None if unset
    semi_preemptible : semi-preemptible pod group -> what its queue is charged as non-preemptible for its
        minimum
    only_pod_set : its pod set, if it has one pod set, no subgroups and no topology constraint; else -1
    trees : cache of `tree`; a tree is built when it is first needed
    """

    inputs: list[PodGroupInput] = field(default_factory=list)
    queue: list[int] = field(default_factory=list)
    priority: list[int] = field(default_factory=list)
    preemptible: list[bool] = field(default_factory=list)
    first_pod_set: list[int] = field(default_factory=list)
    pod_set_count: list[int] = field(default_factory=list)
    first_task: list[int] = field(default_factory=list)
    task_count: list[int] = field(default_factory=list)
    pending: list[int] = field(default_factory=list)
    active_allocated: list[int] = field(default_factory=list)
    version: list[int] = field(default_factory=list)
    last_start: list[float | None] = field(default_factory=list)
    last_eviction: list[float | None] = field(default_factory=list)
    stale_since: list[float | None] = field(default_factory=list)
    semi_preemptible: dict[int, Amounts] = field(default_factory=dict)
    only_pod_set: list[int] = field(default_factory=list)
    trees: dict[int, SubgroupNode] = field(default_factory=dict)
    pod_sets: PodSets = field(default_factory=PodSets)

    def __len__(self) -> int:
        return len(self.inputs)

    def copy(self) -> PodGroups:
        """Return the pod groups for one session.

        The columns that sessions change are copied and the others shared. What a session computes itself starts
        empty: versions, trees, and the charges of semi-preemptible pod groups.
        """
        return replace(
            self,
            pending=self.pending[:],
            active_allocated=self.active_allocated[:],
            version=[0] * len(self.inputs),
            last_start=self.last_start[:],
            last_eviction=self.last_eviction[:],
            stale_since=self.stale_since[:],
            semi_preemptible=dict.fromkeys(self.semi_preemptible, NO_AMOUNTS),
            trees={},
            pod_sets=self.pod_sets.copy(),
        )

    def name(self, pod_group: int) -> str:
        """Return namespace/name, for messages."""
        pod_group_input = self.inputs[pod_group]
        return f"{pod_group_input.namespace}/{pod_group_input.name}"

    def pod_sets_of(self, pod_group: int) -> range:
        """Return the indices of a pod group's pod sets."""
        first = self.first_pod_set[pod_group]
        return range(first, first + self.pod_set_count[pod_group])

    def tasks_of(self, pod_group: int) -> range:
        """Return the indices of a pod group's tasks."""
        first = self.first_task[pod_group]
        return range(first, first + self.task_count[pod_group])

    def tree(self, pod_group: int) -> SubgroupNode:
        """Return the tree of subgroups; the root carries the constraint of the whole pod group."""
        tree = self.trees.get(pod_group)
        if tree is None:
            index_of = {self.pod_sets.name[index]: index for index in self.pod_sets_of(pod_group)}
            tree = self.trees[pod_group] = _tree(self.inputs[pod_group].root, index_of)
        return tree

    def fill(self, inputs: Sequence[PodGroupInput], queue_of: Mapping[str, int]) -> None:
        """Add all pod groups, oldest first, with their pod sets but without tasks.

        The columns are filled one after the other, because that is fastest: a cluster has tens of thousands
        of pod groups, and nearly all of them have one pod set.
        """
        count = len(inputs)
        self.inputs.extend(inputs)
        self.queue.extend([queue_of.get(pod_group.queue, -1) for pod_group in inputs])
        for name in _FROM_INPUT:
            getattr(self, name).extend(map(attrgetter(name), inputs))
        self.note_semi_preemptible()
        for column in (
            self.first_task,
            self.task_count,
            self.pending,
            self.active_allocated,
            self.version,
        ):
            column.extend([0] * count)
        for pod_group, pod_group_input in enumerate(inputs):
            self._add_pod_sets(pod_group, pod_group_input.root)
        self.pod_sets.append_empty_columns()

    def overwrite(self, pod_group: int, new: PodGroupInput, queue_of: Mapping[str, int]) -> None:
        """Put a pod group with the same tree in the place of an old one; its tasks are counted anew afterwards."""
        self.inputs[pod_group] = new
        self.queue[pod_group] = queue_of.get(new.queue, -1)
        for name in _FROM_INPUT:
            getattr(self, name)[pod_group] = getattr(new, name)
        self.pending[pod_group] = self.active_allocated[pod_group] = 0
        if new.is_semi_preemptible != (pod_group in self.semi_preemptible):
            self.note_semi_preemptible()
        minimums = [leaf.min_available for leaf in _leaves(new.root)]
        self.pod_sets.clear(self.pod_sets_of(pod_group), minimums)

    def note_semi_preemptible(self) -> None:
        """List the semi-preemptible pod groups in order, with no charges yet."""
        self.semi_preemptible = {
            index: NO_AMOUNTS
            for index, pod_group in enumerate(self.inputs)
            if pod_group.is_semi_preemptible
        }

    def _add_pod_sets(self, pod_group: int, root: SubGroupInput) -> None:
        pod_sets = self.pod_sets
        first = len(pod_sets.name)
        leaves = root.pod_sets if not root.subgroups else tuple(_leaves(root))
        for leaf in leaves:
            pod_sets.name.append(leaf.name)
            pod_sets.pod_group.append(pod_group)
            pod_sets.minimum.append(leaf.min_available)
        self.first_pod_set.append(first)
        self.pod_set_count.append(len(leaves))
        self.only_pod_set.append(first if _is_single_pod_set(root) else -1)


def _leaves(root: SubGroupInput) -> Iterator[PodSetInput]:
    yield from root.pod_sets
    for child in root.subgroups:
        yield from _leaves(child)


def _is_single_pod_set(root: SubGroupInput) -> bool:
    return (
        len(root.pod_sets) == 1
        and not root.subgroups
        and root.topology is None
        and root.pod_sets[0].topology is None
        and root.min_subgroups in (None, 0, 1)
    )


def _tree(subgroup: SubGroupInput, index_of: dict[str, int]) -> SubgroupNode:
    members: list[TreeMember] = [_tree(child, index_of) for child in subgroup.subgroups]
    for pod_set in subgroup.pod_sets:
        if pod_set.name not in index_of:
            raise InputError(f"pod set {pod_set.name!r} is not one of {sorted(index_of)}")
        members.append(PodSetLeaf(pod_set.name, index_of[pod_set.name], pod_set.topology))
    return SubgroupNode(subgroup.name, subgroup.min_subgroups, members, subgroup.topology)
