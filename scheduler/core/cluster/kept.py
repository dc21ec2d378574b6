"""Keep the state that a cycle began with, and bring it up to date for the next one (ADR 32).

Parts of the snapshot that are the same objects as in the last cycle have not changed. Changed pod groups are written
over their columns if their shape is the same, else cut out and spliced in; the nodes that they touch are charged
anew. Where that would renumber too much, the state is built anew: when nodes come or go, when a resource or a GPU
size appears, and where pods share claims of GPUs.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np

from scheduler.core.cluster.build import (
    age_of,
    build_state,
    count_tasks,
    gpu_memory_range,
    note_others,
    note_placement,
    pod_sets_of,
)
from scheduler.core.cluster.inputs import ClusterInput, NodeInput, PodGroupInput, TaskInput
from scheduler.core.cluster.queue_counts import QueueCounts
from scheduler.core.cluster.queues import Queues, flatten
from scheduler.core.cluster.shared_claims import SharedClaims
from scheduler.core.cluster.splice import Piece, Splice, group_pieces, other_pieces
from scheduler.core.cluster.state import ClusterState, hold_of
from scheduler.core.cluster.status import ACTIVE_USED
from scheduler.core.cluster.tasks import NOWHERE
from scheduler.core.errors import InputError

#: Classes of tasks that are gone are kept until the state has more than this factor times its classes when built,
#: plus the spare ones.
MOST_CLASSES = 2
SPARE_CLASSES = 256
#: How many entries of two long sequences are compared at once.
BLOCK = 512

_Name = tuple[str, str]


class KeptState:
    """The state of the last cycle's beginning; gives each cycle its own copy.

    Attributes
    ----------
    state : as the last cycle began, None before the first; for comparisons only
    """

    __slots__ = ("_by_name", "_class_limit", "_dirty", "_full_hierarchy", "state")

    def __init__(self) -> None:
        self.state: ClusterState | None = None
        self._full_hierarchy = True
        self._class_limit = 0
        #: Namespace and name of a pod group -> its input.
        self._by_name: dict[_Name, PodGroupInput] = {}
        #: Nodes to charge anew.
        self._dirty: set[int] = set()

    def open(self, cluster_input: ClusterInput, *, full_hierarchy: bool = True) -> ClusterState:
        """Return the state of a cycle; the arguments and errors are those of `build_state`."""
        state, self.state = self.state, None  # an error leaves nothing half done behind
        if (
            state is None
            or full_hierarchy != self._full_hierarchy
            or not self._follow(state, cluster_input)
        ):
            state = build_state(cluster_input, full_hierarchy=full_hierarchy)
            self._full_hierarchy = full_hierarchy
            self._class_limit = MOST_CLASSES * state.classes.lookups + SPARE_CLASSES
            self._by_name = {_name(group): group for group in state.pod_groups.inputs}
        self.state = state
        return state.copy(cluster_input)

    # ------------------------------------------------------------------------------- following

    def _follow(self, state: ClusterState, new: ClusterInput) -> bool:
        """Bring the state up to date; False if it must be built anew."""
        try:
            return (
                state.classes.lookups <= self._class_limit
                and self._follow_nodes(state, new.nodes)
                and self._follow_queues(state, new)
                and self._follow_tasks(state, new)
                and self._finish(state, new)
            )
        except InputError:
            return False  # building it anew raises the same error

    def _follow_nodes(self, state: ClusterState, new: Sequence[NodeInput]) -> bool:
        """Take over nodes with new labels, taints or amounts; False if nodes come or go, or a new resource."""
        old, nodes = state.cluster_input.nodes, state.nodes
        self._dirty = set()
        if new is old:
            return True
        if len(new) != len(nodes) or any(
            new_node is not old_node and new_node.name != old_node.name
            for new_node, old_node in zip(new, nodes.inputs, strict=True)
        ):
            return False
        changed = [i for i, node in enumerate(new) if node is not nodes.inputs[i]]
        if gpu_memory_range(new) != gpu_memory_range(old) or any(
            new[i].gpu_memory_mib != nodes.inputs[i].gpu_memory_mib
            or not new[i].allocatable.keys() <= state.axis.row_of.keys()
            for i in changed
        ):
            return False
        nodes.change(changed, [new[i] for i in changed], state.axis)
        self._dirty.update(changed)
        return True

    def _follow_queues(self, state: ClusterState, new: ClusterInput) -> bool:
        if new.queues is state.cluster_input.queues:
            return True
        queues = Queues(new.queues if self._full_hierarchy else flatten(new.queues))
        groups = state.pod_groups
        state.queues = queues
        index_of = queues.index_of
        groups.queue = [index_of.get(group.queue, NOWHERE) for group in groups.inputs]
        state.queue_counts = QueueCounts()
        state.queue_counts.add(groups, state.tasks, range(len(groups)))
        return True

    def _follow_tasks(self, state: ClusterState, new: ClusterInput) -> bool:
        """Take over changed pod groups and pods outside of them; False if they need a new resource."""
        old, groups = state.cluster_input, state.pod_groups
        if new.pod_groups is old.pod_groups and new.other_pods is old.other_pods:
            return True
        new_groups, removed_by_name = self._changed_groups(state, new.pod_groups)
        other_parts, other_pods = other_pieces(old.other_pods, new.other_pods)
        tasks = [task for group in new_groups for task in group.tasks] + [
            pod.task for pod in other_pods
        ]
        if not _are_known(state, tasks):
            return False
        removed: list[int] = []
        added: list[PodGroupInput] = []
        for group in new_groups:
            index = removed_by_name.pop(_name(group), None)
            if index is not None and _has_shape_of(groups.inputs[index], group):
                self._overwrite(state, index, group)
                continue
            added.append(group)
            if index is not None:
                removed.append(index)
        removed += removed_by_name.values()
        if added or removed or new.other_pods is not old.other_pods:
            self._take_off(state, removed, _removed_others(state, other_parts))
            added.sort(key=age_of)
            places = [bisect_left(groups.inputs, age_of(group), key=age_of) for group in added]
            parts = group_pieces(len(groups), removed, places)
            self._put_in(state, Splice(state, added, parts, other_pods, other_parts))
        self._by_name.update((_name(group), group) for group in new_groups)
        return len(self._by_name) == len(groups)

    def _changed_groups(
        self, state: ClusterState, new: Sequence[PodGroupInput]
    ) -> tuple[list[PodGroupInput], dict[_Name, int]]:
        """Return the pod groups that are not those of the last cycle, and by name the indices of those that are gone."""
        inputs = state.pod_groups.inputs
        new_groups, removed_groups = difference(state.cluster_input.pod_groups, new)
        for group in removed_groups:
            self._by_name.pop(_name(group), None)
        return new_groups, {
            _name(g): bisect_left(inputs, age_of(g), key=age_of) for g in removed_groups
        }

    # ------------------------------------------------------------------------------- pod groups

    def _overwrite(self, state: ClusterState, index: int, group: PodGroupInput) -> None:
        """Put a pod group with as many tasks and the same tree in the place of an old one."""
        members = state.pod_groups.tasks_of(index)
        self._take_off(state, (index,), ())
        state.pod_groups.overwrite(index, group, state.queues.index_of)
        for task, task_input in zip(members, group.tasks, strict=True):
            state.tasks.overwrite(task, task_input, state.classes.of(task_input))
        self._settle(state, (index,), members)

    def _take_off(
        self, state: ClusterState, pod_groups: Sequence[int], others: Iterable[int]
    ) -> None:
        """Take the tasks of pod groups, and others, off their nodes and out of the counts."""
        groups, tasks, nodes = state.pod_groups, state.tasks, state.nodes
        state.queue_counts.add(groups, tasks, pod_groups, -1)
        for task in chain(*(groups.tasks_of(index) for index in pod_groups), others):
            node = tasks.node[task]
            tasks.numa.pop(task, None)
            tasks.claim_allocations.pop(task, None)
            if node != NOWHERE:
                del nodes.tasks[node][task]
                tasks.node[task] = NOWHERE
                self._dirty.add(node)

    def _put_in(self, state: ClusterState, splice: Splice) -> None:
        tasks = state.tasks
        has_notes = bool(tasks.numa or tasks.claim_allocations)
        was_unsorted = bool(state.unsorted)
        new_groups, new_tasks = splice.run()
        state.unsorted.clear()
        sets = state.pod_groups.pod_sets
        if was_unsorted:  # their indices are no longer known
            state.unsorted.update(i for i, members in enumerate(sets.tasks) if len(members) > 1)
        _list_by_node(state)
        if has_notes:
            tasks.numa.clear()
            tasks.claim_allocations.clear()
            for task, node in enumerate(tasks.node):
                if node != NOWHERE:
                    note_placement(state, task, tasks.inputs[task], node)
        self._settle(state, new_groups, new_tasks)

    def _settle(
        self, state: ClusterState, pod_groups: Sequence[int], new_tasks: Iterable[int]
    ) -> None:
        """Put new tasks into their pod sets and on their nodes, and count those of their pod groups."""
        groups, tasks, nodes = state.pod_groups, state.tasks, state.nodes
        for task in new_tasks:
            task_input = tasks.inputs[task]
            node = nodes.index_of.get(task_input.node) if task_input.node else None
            if node is not None and ACTIVE_USED[tasks.status[task]]:
                tasks.node[task] = node
                nodes.tasks[node][task] = None
                note_placement(state, task, task_input, node)
                self._dirty.add(node)
        for index in pod_groups:
            members = groups.tasks_of(index)
            tasks.pod_set[members.start : members.stop] = pod_sets_of(state, index)
            count_tasks(state, members)
        state.queue_counts.add(groups, tasks, pod_groups)

    # ---------------------------------------------------------------------------------- the end

    def _finish(self, state: ClusterState, new: ClusterInput) -> bool:
        """Charge the nodes whose tasks or amounts changed; False if pods share claims of GPUs."""
        nodes, tasks = state.nodes, state.tasks
        # Before nodes are charged: a reservation takes no GPU of its own.
        note_others(state, new.other_pods, len(tasks) - len(new.other_pods))
        for node in sorted(self._dirty):
            nodes.clear(node)
            members, nodes.tasks[node] = sorted(nodes.tasks[node]), {}
            for task in members:
                state.charge(task, node, hold_of(tasks.status[task]))
        nodes.sharing = dict.fromkeys(sorted(nodes.sharing))
        nodes.settle()
        state.journal.forget()
        if state.shared_claims or (
            any(claim.gpus > 0 for claim in new.devices.claims)
            and SharedClaims(tasks.inputs, new.devices.claims)
        ):
            return False
        state.cluster_input = new
        return len(state.pod_groups) == len(new.pod_groups)


def difference(
    old: Sequence[PodGroupInput], new: Sequence[PodGroupInput]
) -> tuple[list[PodGroupInput], list[PodGroupInput]]:
    """Return the objects that only the new sequence has, and those that only the old one has.

    Both should be sorted by name. Where they are not, an object that moved is in both results.
    """
    if old is new:
        return [], []
    added: list[PodGroupInput] = []
    removed: list[PodGroupInput] = []
    i = j = 0
    while i < len(old) and j < len(new):
        if old[i] is new[j]:
            step = _common_length(old, i, new, j)
            i, j = i + step, j + step
            continue
        before, after = (f"{group.namespace}/{group.name}" for group in (old[i], new[j]))
        if before <= after:
            removed.append(old[i])
            i += 1
        if after <= before:
            added.append(new[j])
            j += 1
    return added + list(new[j:]), removed + list(old[i:])


def _common_length(
    old: Sequence[PodGroupInput], i: int, new: Sequence[PodGroupInput], j: int
) -> int:
    """Return for how many entries, from two places on, both sequences hold the same or equal objects."""
    length, block = 1, BLOCK
    while block:
        old_block = old[i + length : i + length + block]
        new_block = new[j + length : j + length + block]
        if old_block and old_block == new_block:
            length += len(old_block)
        else:
            block //= 2
    return length


def _name(group: PodGroupInput) -> _Name:
    return (group.namespace, group.name)


def _has_shape_of(old: PodGroupInput, new: PodGroupInput) -> bool:
    """Return whether a pod group has the place, the tree and the number of tasks of an earlier one."""
    return (
        age_of(old) == age_of(new)
        and len(old.tasks) == len(new.tasks)
        and (old.root is new.root or old.root == new.root)
    )


def _are_known(state: ClusterState, tasks: Iterable[TaskInput]) -> bool:
    """Return whether the arrays have a row for everything that tasks request."""
    rows = state.axis.row_of
    requests = {id(task.request): task.request for task in tasks}.values()
    return all(name in rows for request in requests for name, _ in (*request.other, *request.mig))


def _removed_others(state: ClusterState, pieces: Sequence[Piece]) -> Iterable[int]:
    """Return the indices of the pods outside of pod groups that no piece has."""
    count = len(state.cluster_input.other_pods)
    first = len(state.tasks) - count
    stay = {index for piece in pieces for index in range(piece.start, piece.stop)}
    return [first + index for index in range(count) if index not in stay]


def _list_by_node(state: ClusterState) -> None:
    """List the tasks of every node anew, after they were renumbered."""
    nodes = state.nodes
    node_of = np.array(state.tasks.node, dtype=np.int64)
    placed = np.flatnonzero(node_of >= 0)
    ordered = placed[np.argsort(node_of[placed], kind="stable")].tolist()
    ends = np.cumsum(np.bincount(node_of[placed], minlength=len(nodes))).tolist()
    nodes.tasks = [
        dict.fromkeys(ordered[start:end]) for start, end in zip([0, *ends], ends, strict=False)
    ]
