"""Pod groups as columns, their trees of subgroups, and the counters that gang rules ask.

A pod group has one or more pod sets (leaves of its tree), numbered through the whole cluster. How many
tasks of a pod set pend, hold or run is counted as statuses change, so no rule ever scans tasks to learn
whether a gang is complete. Pod groups are in order of age (then uid, then name): an index is an age.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from scheduler.core.cluster.inputs import (
    PodGroupInput,
    PodSetInput,
    SubGroupInput,
    TopologyConstraint,
)
from scheduler.core.errors import InputError


@dataclass(slots=True)
class PodSetLeaf:
    """A leaf of the tree of subgroups; `index` counts through all pod sets of the cluster."""

    name: str
    index: int
    topology: TopologyConstraint | None


@dataclass(slots=True)
class SubgroupNode:
    """An inner node; `required` is how many members must be satisfied (None: all)."""

    name: str
    min_subgroups: int | None
    members: list[TreeMember]
    topology: TopologyConstraint | None

    @property
    def required(self) -> int:
        """Return how many direct members must be satisfied."""
        return len(self.members) if self.min_subgroups is None else self.min_subgroups

    def pod_sets(self) -> list[PodSetLeaf]:
        """Return all leaves below, in the order of the tree."""
        found: list[PodSetLeaf] = []
        for member in self.members:
            if isinstance(member, PodSetLeaf):
                found.append(member)
            else:
                found.extend(member.pod_sets())
        return found


#: What a subgroup consists of.
TreeMember = SubgroupNode | PodSetLeaf


@dataclass(slots=True)
class PodSets:
    """One entry per pod set; the counters change with every status."""

    name: list[str] = field(default_factory=list)
    pod_group: list[int] = field(default_factory=list)
    minimum: list[int] = field(default_factory=list)
    #: Task indices, in task order once a session has sorted them.
    tasks: list[list[int]] = field(default_factory=list)
    pending: list[int] = field(default_factory=list)
    gated: list[int] = field(default_factory=list)
    nominated: list[int] = field(default_factory=list)
    active_allocated: list[int] = field(default_factory=list)
    active_used: list[int] = field(default_factory=list)

    def clear_counters(self) -> None:
        """Begin counting: nobody is in any pod set yet."""
        count = len(self.name)
        self.tasks.extend([] for _ in range(count))
        for counter in (
            self.pending,
            self.gated,
            self.nominated,
            self.active_allocated,
            self.active_used,
        ):
            counter.extend([0] * count)


@dataclass(slots=True)
class PodGroups:
    """One entry per pod group, oldest first.

    Attributes
    ----------
    queue : index of the leaf queue, NOWHERE if it does not exist
    pending, active_allocated : how many of its tasks are so
    version : counts the status changes of its tasks, for caches; never restored by undo
    last_start, last_eviction, stale_since : seconds relative to the cycle, None if unset
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
    #: Index of the only pod set of a pod group without subgroups and topology wishes, else -1.
    only_pod_set: list[int] = field(default_factory=list)
    trees: dict[int, SubgroupNode] = field(default_factory=dict)
    pod_sets: PodSets = field(default_factory=PodSets)

    def __len__(self) -> int:
        return len(self.inputs)

    def name(self, group: int) -> str:
        """Return namespace/name for messages of errors."""
        given = self.inputs[group]
        return f"{given.namespace}/{given.name}"

    def pod_sets_of(self, group: int) -> range:
        """Return the indices of a pod group's pod sets."""
        first = self.first_pod_set[group]
        return range(first, first + self.pod_set_count[group])

    def tasks_of(self, group: int) -> range:
        """Return the indices of a pod group's tasks."""
        first = self.first_task[group]
        return range(first, first + self.task_count[group])

    def tree(self, group: int) -> SubgroupNode:
        """Return the tree of subgroups; the root carries the constraint of the whole pod group."""
        found = self.trees.get(group)
        if found is None:
            by_name = {self.pod_sets.name[i]: i for i in self.pod_sets_of(group)}
            found = self.trees[group] = _tree(self.inputs[group].root, by_name)
        return found

    def fill(self, given: Sequence[PodGroupInput], queue_of: Mapping[str, int]) -> None:
        """Take all pod groups, oldest first, with their pod sets and no tasks yet.

        Column by column: a cluster has tens of thousands of pod groups, and nearly all of them are
        one pod set.
        """
        count = len(given)
        self.inputs.extend(given)
        self.queue.extend([queue_of.get(one.queue, -1) for one in given])
        self.priority.extend([one.priority for one in given])
        self.preemptible.extend([one.preemptible for one in given])
        self.last_start.extend([one.last_start for one in given])
        self.last_eviction.extend([one.last_eviction for one in given])
        self.stale_since.extend([one.stale_since for one in given])
        for zeros in (
            self.first_task,
            self.task_count,
            self.pending,
            self.active_allocated,
            self.version,
        ):
            zeros.extend([0] * count)
        for group, one in enumerate(given):
            self._add_pod_sets(group, one.root)
        self.pod_sets.clear_counters()

    def _add_pod_sets(self, group: int, root: SubGroupInput) -> None:
        sets = self.pod_sets
        first = len(sets.name)
        leaves = root.pod_sets if not root.subgroups else tuple(_leaves(root))
        for leaf in leaves:
            sets.name.append(leaf.name)
            sets.pod_group.append(group)
            sets.minimum.append(leaf.min_available)
        self.first_pod_set.append(first)
        self.pod_set_count.append(len(leaves))
        self.only_pod_set.append(first if _is_plain(root) else -1)


def _leaves(root: SubGroupInput) -> Iterator[PodSetInput]:
    yield from root.pod_sets
    for inner in root.subgroups:
        yield from _leaves(inner)


def _is_plain(root: SubGroupInput) -> bool:
    return (
        len(root.pod_sets) == 1
        and not root.subgroups
        and root.topology is None
        and root.pod_sets[0].topology is None
        and root.min_subgroups in (None, 0, 1)
    )


def _tree(given: SubGroupInput, index_of: dict[str, int]) -> SubgroupNode:
    members: list[TreeMember] = [_tree(inner, index_of) for inner in given.subgroups]
    for pod_set in given.pod_sets:
        if pod_set.name not in index_of:
            raise InputError(f"pod set {pod_set.name!r} is not one of {sorted(index_of)}")
        members.append(PodSetLeaf(pod_set.name, index_of[pod_set.name], pod_set.topology))
    return SubgroupNode(given.name, given.min_subgroups, members, given.topology)
