"""Gang rules that only count: which tasks are placed next, which are evicted first, what is satisfied.

Both the order of pod groups and their placement need these rules. A `GangView` is a pod group for one
purpose: all of it; for a probe of the solver, with some tasks hidden and minimums lowered; for victims,
without the tasks that are already taken. Views never copy the state; they subtract what they hide.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from scheduler.core.cluster.podgroups import PodSetLeaf, SubgroupNode, TreeMember
from scheduler.core.cluster.state import ClusterState
from scheduler.core.cluster.status import ACTIVE_ALLOCATED, NOMINATED, PENDING, RELEASING

_NOTHING: Mapping[int, int] = {}
_NOTHING_REQUIRED: Mapping[str, int] = {}
_NO_TASKS: frozenset[int] = frozenset()


class GangView:
    """One pod group, whole or in part.

    Attributes
    ----------
    pod_group : index of the pod group
    hidden : tasks that are treated as if they did not exist
    minimums : pod set -> lowered minimum; without an entry it is as specified
    required : name of a subgroup -> lowered number of required members; likewise
    is_ordered : whether the least satisfied subgroup is served first, else the first by name
    only_pod_set : see `PodGroups.only_pod_set`; -1 if the tree must be walked
    """

    __slots__ = (
        "_chunk",
        "_chunk_stamp",
        "_hidden_active",
        "hidden",
        "is_ordered",
        "minimums",
        "only_pod_set",
        "pod_group",
        "required",
        "state",
    )

    def __init__(
        self,
        state: ClusterState,
        pod_group: int,
        *,
        hidden: frozenset[int] = _NO_TASKS,
        minimums: Mapping[int, int] = _NOTHING,
        required: Mapping[str, int] | None = None,
        is_ordered: bool = True,
    ) -> None:
        self.state = state
        self.pod_group = pod_group
        self.hidden = hidden
        self.minimums = minimums
        self.required = required or _NOTHING_REQUIRED
        self.is_ordered = is_ordered
        self.only_pod_set = state.pod_groups.only_pod_set[pod_group]
        self._hidden_active = self._count_hidden() if hidden else _NOTHING
        self._chunk: list[int] = []
        self._chunk_stamp: tuple[int, bool] | None = None

    def _count_hidden(self) -> dict[int, int]:
        counts: dict[int, int] = {}
        tasks = self.state.tasks
        for task in self.hidden:
            if ACTIVE_ALLOCATED[tasks.status[task]]:
                pod_set = tasks.pod_set[task]
                counts[pod_set] = counts.get(pod_set, 0) + 1
        return counts

    def without(self, tasks: Iterable[int]) -> GangView:
        """Return a view of the same pod group that hides some more tasks."""
        return GangView(
            self.state,
            self.pod_group,
            hidden=self.hidden.union(tasks),
            minimums=self.minimums,
            required=self.required,
            is_ordered=self.is_ordered,
        )

    # -------------------------------------------------------------------------------- counting

    @property
    def root(self) -> SubgroupNode:
        """Return the root of the tree of subgroups."""
        return self.state.pod_groups.tree(self.pod_group)

    @property
    def queue(self) -> int:
        """Return the index of the leaf queue."""
        return self.state.pod_groups.queue[self.pod_group]

    def minimum(self, pod_set: int) -> int:
        """Return how many tasks of a pod set must run."""
        if self.minimums:
            lowered = self.minimums.get(pod_set)
            if lowered is not None:
                return lowered
        return self.state.pod_groups.pod_sets.minimum[pod_set]

    def active(self, pod_set: int) -> int:
        """Return how many tasks of a pod set hold a place in the gang."""
        count = self.state.pod_groups.pod_sets.active_allocated[pod_set]
        return count - self._hidden_active.get(pod_set, 0) if self._hidden_active else count

    def active_tasks(self, pod_set: int) -> list[int]:
        """Return the tasks of a pod set that hold a place in the gang, in task order."""
        status = self.state.tasks.status
        return [
            task
            for task in self.state.pod_groups.pod_sets.tasks[pod_set]
            if ACTIVE_ALLOCATED[status[task]] and task not in self.hidden
        ]

    def all_active_tasks(self) -> list[int]:
        """Return all tasks that hold a place in the gang, pod set by pod set."""
        if self.only_pod_set >= 0:
            return self.active_tasks(self.only_pod_set)
        return [
            task
            for pod_set in self.state.pod_groups.pod_sets_of(self.pod_group)
            for task in self.active_tasks(pod_set)
        ]

    def allocatable_tasks(
        self, pod_set: int, *, include_evicted: bool, most: int | None = None
    ) -> list[int]:
        """Return the tasks of a pod set that are to be placed, in task order.

        Parameters
        ----------
        include_evicted : besides pending tasks also those that the open statement has evicted
        most : stop after so many
        """
        tasks = self.state.tasks
        status, virtual, hidden = tasks.status, tasks.is_virtual, self.hidden
        allocatable: list[int] = []
        for task in self.state.pod_groups.pod_sets.tasks[pod_set]:
            current = status[task]
            if (
                current == PENDING or (include_evicted and current == RELEASING and virtual[task])
            ) and task not in hidden:
                allocatable.append(task)
                if most is not None and len(allocatable) == most:
                    break
        return allocatable

    def required_members(self, subgroup: SubgroupNode) -> int:
        """Return how many direct members of a subgroup must be satisfied."""
        lowered = self.required.get(subgroup.name) if self.required else None
        return subgroup.required if lowered is None else lowered

    def threshold(self, member: TreeMember) -> int:
        """Return the minimum of a pod set, or the required members of a subgroup."""
        if isinstance(member, PodSetLeaf):
            return self.minimum(member.index)
        return self.required_members(member)

    def count(self, member: TreeMember) -> int:
        """Return the active tasks of a pod set, or the satisfied members of a subgroup."""
        if isinstance(member, PodSetLeaf):
            return self.active(member.index)
        return sum(1 for inner in member.members if self.is_satisfied(inner))

    def is_satisfied(self, member: TreeMember) -> bool:
        """Return whether a member runs at least its minimum."""
        return self.count(member) >= self.threshold(member)

    def is_ready_to_run(self) -> bool:
        """Return whether enough tasks exist for the whole pod group to run its minimum."""
        if self.only_pod_set >= 0:
            return self._is_set_ready(self.only_pod_set, include_evicted=False)
        return self.is_ready(self.root)

    def _is_set_ready(self, pod_set: int, *, include_evicted: bool) -> bool:
        missing = self.minimum(pod_set) - self.active(pod_set)
        if missing <= 0:
            return True
        if not include_evicted and not self.hidden:
            return self.state.pod_groups.pod_sets.pending[pod_set] >= missing
        return (
            len(self.allocatable_tasks(pod_set, include_evicted=include_evicted, most=missing))
            >= missing
        )

    def is_ready(self, member: TreeMember, *, include_evicted: bool = False) -> bool:
        """Return whether enough tasks exist for a member to run its minimum."""
        if isinstance(member, PodSetLeaf):
            return self._is_set_ready(member.index, include_evicted=include_evicted)
        ready = sum(
            1 for inner in member.members if self.is_ready(inner, include_evicted=include_evicted)
        )
        return ready >= self.required_members(member)

    def ordered_members(self, subgroup: SubgroupNode) -> list[TreeMember]:
        """Return the members in the order they are served."""
        if len(subgroup.members) == 1:
            return subgroup.members
        return sorted(subgroup.members, key=self._member_key)

    def _member_key(self, member: TreeMember) -> tuple[int, int, float, str]:
        if not self.is_ordered:
            return (0, 0, 0.0, member.name)
        count, threshold = self.count(member), self.threshold(member)
        if count < threshold:
            return (0, 0, 0.0, member.name)
        if threshold > 0:
            return (1, 0, count / threshold, member.name)
        return (1, 1, float(count), member.name)

    # ---------------------------------------------------------------------------- what is next

    def next_chunk(self, *, include_evicted: bool) -> list[int]:
        """Return the chunk to place next: the tasks missing for the gang, or one elastic step.

        Parameters
        ----------
        include_evicted : True in trials, where tasks evicted by the statement want their place back

        Returns
        -------
        tasks in the order in which they are placed; callers must not change the list
        """
        stamp = (self.state.pod_groups.version[self.pod_group], include_evicted)
        if self._chunk_stamp != stamp:
            if self.only_pod_set >= 0:
                self._chunk = self._chunk_of_set(self.only_pod_set, include_evicted)
            else:
                self._chunk = self._chunk_of(self.root, include_evicted)
            self._chunk_stamp = stamp
        return self._chunk

    def _chunk_of_set(self, pod_set: int, include_evicted: bool) -> list[int]:
        most = 1
        if len(self.state.pod_groups.pod_sets.tasks[pod_set]) > 1:
            most = max(self.minimum(pod_set) - self.active(pod_set), 1)
        return self.allocatable_tasks(pod_set, include_evicted=include_evicted, most=most)

    def _chunk_of(self, member: TreeMember, include_evicted: bool) -> list[int]:
        if isinstance(member, PodSetLeaf):
            return self._chunk_of_set(member.index, include_evicted)
        if len(member.members) == 1 and self.required_members(member) <= 1:
            return self._chunk_of(member.members[0], include_evicted)
        if self.is_satisfied(member):
            return self._elastic_step(member, include_evicted)
        return [
            task
            for inner in self._missing_members(member, include_evicted)
            for task in self._chunk_of(inner, include_evicted)
        ]

    def _elastic_step(self, subgroup: SubgroupNode, include_evicted: bool) -> list[int]:
        """Return the chunk of the first member that has one and is or can become satisfied."""
        for member in self.ordered_members(subgroup):
            if self.is_satisfied(member) or self.is_ready(member, include_evicted=include_evicted):
                chunk = self._chunk_of(member, include_evicted)
                if chunk:
                    return chunk
        return []

    def _missing_members(self, subgroup: SubgroupNode, include_evicted: bool) -> list[TreeMember]:
        """Return the members that complete a subgroup: as many as are missing, ready ones first.

        KAI takes the first members in order, even when fewer are missing, and even one that has too
        few pods ever to be complete.
        """
        missing = self.required_members(subgroup) - self.count(subgroup)
        unsatisfied = [m for m in self.ordered_members(subgroup) if not self.is_satisfied(m)]
        ready = [m for m in unsatisfied if self.is_ready(m, include_evicted=include_evicted)]
        if len(ready) >= missing:
            return ready[:missing]
        return unsatisfied[: max(missing, 0)]

    # ------------------------------------------------------------------------- what goes first

    def eviction_batch(self) -> list[int]:
        """Return the active tasks to evict together next: a surplus task, a surplus subgroup, or all.

        A surplus task is one that was not bound in this cycle, if there is any.
        """
        pod_set = self.only_pod_set
        if pod_set >= 0:
            tasks = self.active_tasks(pod_set)
            return self._last(tasks) if len(tasks) > self.minimum(pod_set) else tasks
        return self._surplus(self.root) or self.all_active_tasks()

    def surplus_batch(self) -> list[int]:
        """Return what may be evicted next of a pod group whose minimum is protected; empty if there is no surplus.

        Tasks that do not run for certain, because they are only nominated or were bound in this cycle, do not count.
        """
        tasks = self.state.tasks
        unsettled = {
            task
            for task in self.all_active_tasks()
            if tasks.status[task] == NOMINATED or task in tasks.bound_now
        }
        return self.without(unsettled)._surplus(self.root)

    def _surplus(self, subgroup: SubgroupNode) -> list[int]:
        satisfied = sum(1 for member in subgroup.members if self.is_satisfied(member))
        if not satisfied:
            return []
        backwards = list(reversed(self.ordered_members(subgroup)))
        for member in backwards:
            if isinstance(member, PodSetLeaf):
                if self.active(member.index) > self.minimum(member.index):
                    return self._last(self.active_tasks(member.index))
            elif self.is_satisfied(member):
                batch = self._surplus(member)
                if batch:
                    return batch
        if satisfied > self.required_members(subgroup):
            for member in backwards:
                batch = self._active_below(member)
                if batch:
                    return batch
        return []

    def _last(self, tasks: list[int]) -> list[int]:
        bound_now = self.state.tasks.bound_now
        if bound_now:
            return [task for task in tasks if task not in bound_now][-1:] or tasks[-1:]
        return tasks[-1:]

    def _active_below(self, member: TreeMember) -> list[int]:
        leaves = [member] if isinstance(member, PodSetLeaf) else member.pod_sets()
        return [task for leaf in leaves for task in self.active_tasks(leaf.index)]

    # --------------------------------------------------------------------------- gang questions

    def is_gang_satisfied(self) -> bool:
        """Return whether enough tasks hold a place for the minimum of the whole tree."""
        return self.is_satisfied(self.root)

    def should_nominate(self) -> bool:
        """Return whether a gang is complete only with tasks that must wait for room."""
        sets = self.state.pod_groups.pod_sets
        if self.only_pod_set >= 0 and not sets.nominated[self.only_pod_set]:
            return False
        for pod_set in self.state.pod_groups.pod_sets_of(self.pod_group):
            waiting = sets.nominated[pod_set]
            if waiting and sets.active_allocated[pod_set] - waiting < self.minimum(pod_set):
                return True
        return False

    def is_elastic(self) -> bool:
        """Return whether some pod set has more tasks than its minimum."""
        sets = self.state.pod_groups.pod_sets
        return any(
            sets.minimum[pod_set] < len(sets.tasks[pod_set])
            for pod_set in self.state.pod_groups.pod_sets_of(self.pod_group)
        )

    def elastic_state(self) -> int:
        """Return 0 below the minimum, 1 exactly at it, 2 above it; the smaller is served first.

        Only required members count. In KAI an optional empty subgroup keeps its pod group below the
        minimum for ever.
        """
        pod_set = self.only_pod_set
        if pod_set >= 0:
            active, minimum = self.active(pod_set), self.minimum(pod_set)
            return 0 if active < minimum else 1 if active == minimum else 2
        if not self.is_satisfied(self.root):
            return 0
        return 2 if self._has_surplus(self.root) else 1

    def is_broken(self) -> bool:
        """Return whether a gang runs too few tasks to be of use."""
        runs = self.state.pod_groups.active_allocated[self.pod_group] > 0
        return runs and self.elastic_state() == 0

    def _has_surplus(self, subgroup: SubgroupNode) -> bool:
        if self.count(subgroup) > self.required_members(subgroup):
            return True
        return any(
            self._has_surplus(member)
            if isinstance(member, SubgroupNode)
            else self.active(member.index) > self.minimum(member.index)
            for member in subgroup.members
        )
