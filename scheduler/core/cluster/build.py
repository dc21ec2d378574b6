"""Build the state of a cycle from a snapshot: sort and number everything, and charge the nodes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

from scheduler.core.cluster.axis import GPU_ROW, axis_of
from scheduler.core.cluster.classes import ClassTable, GpuMemoryRange, RowAmounts
from scheduler.core.cluster.inputs import (
    UNKNOWN_GPU_MEMORY_MIB,
    ClusterInput,
    NodeInput,
    OtherPod,
    PodGroupInput,
    TaskInput,
)
from scheduler.core.cluster.nodes import Nodes
from scheduler.core.cluster.podgroups import PodSets
from scheduler.core.cluster.queues import Queues, flatten
from scheduler.core.cluster.shared_claims import SharedClaims, less_gpus
from scheduler.core.cluster.state import ClusterState, hold_of
from scheduler.core.cluster.status import (
    ACTIVE_ALLOCATED,
    ACTIVE_USED,
    GATED,
    NOMINATED,
    PENDING,
    RELEASING,
    SUCCEEDED,
)
from scheduler.core.cluster.tasks import NOWHERE
from scheduler.core.errors import InputError


def build_state(cluster_input: ClusterInput, *, full_hierarchy: bool = True) -> ClusterState:
    """Build the state of a cycle from a snapshot.

    Parameters
    ----------
    cluster_input : the snapshot
    full_hierarchy : False puts every queue directly under one unlimited root

    Returns
    -------
    the state; nodes are charged with everything on them, queues are charged later (by the
    proportion plugin)

    Raises
    ------
    InputError : two nodes, queues or pod groups of one name, or a task of an unknown pod set
    """
    axis = axis_of(cluster_input)
    queues = Queues(cluster_input.queues if full_hierarchy else flatten(cluster_input.queues))
    state = ClusterState(
        cluster_input=cluster_input,
        axis=axis,
        nodes=Nodes(cluster_input.nodes, axis),
        queues=queues,
        classes=ClassTable(axis, gpu_memory_range(cluster_input.nodes)),
    )
    _add_pod_groups(state)
    _add_tasks(state)
    _charge_nodes(state)
    _split_shared_claims(state)
    state.nodes.sharing = dict.fromkeys(sorted(state.nodes.sharing))
    state.queue_counts.add(state.pod_groups, state.tasks, range(len(state.pod_groups)))
    state.journal.forget()
    state.nodes.touched.clear()
    state.nodes.copy_rows()
    return state


def gpu_memory_range(nodes: Sequence[NodeInput]) -> GpuMemoryRange:
    memory_sizes = [n.gpu_memory_mib for n in nodes if n.gpu_memory_mib > UNKNOWN_GPU_MEMORY_MIB]
    return GpuMemoryRange(min(memory_sizes, default=None), max(memory_sizes, default=None))


def age_of(pod_group: PodGroupInput) -> tuple[float, str, str, str]:
    """Return the sort key of pod groups: oldest first."""
    return (pod_group.created, pod_group.uid, pod_group.namespace, pod_group.name)


def _add_pod_groups(state: ClusterState) -> None:
    ordered = sorted(state.cluster_input.pod_groups, key=age_of)
    if len({(group_input.namespace, group_input.name) for group_input in ordered}) < len(ordered):
        names = sorted(f"{group_input.namespace}/{group_input.name}" for group_input in ordered)
        duplicate = next(a for a, b in pairwise(names) if a == b)
        raise InputError(f"pod group {duplicate} is in the snapshot twice")
    state.pod_groups.fill(ordered, state.queues.index_of)


def _add_tasks(state: ClusterState) -> None:
    """Assign task indexes: first the tasks of all pod groups, then the pods outside of pod groups."""
    pod_groups, others = state.pod_groups, state.cluster_input.other_pods
    inputs: list[TaskInput] = []
    pod_set_of: list[int] = []
    pod_group_of: list[int] = []
    for index, pod_group in enumerate(pod_groups.inputs):
        pod_groups.first_task[index] = len(inputs)
        pod_groups.task_count[index] = len(pod_group.tasks)
        pod_set_of += pod_sets_of(state, index)
        pod_group_of += [index] * len(pod_group.tasks)
        inputs += pod_group.tasks
    first_other = len(inputs)
    inputs += [pod.task for pod in others]
    pod_set_of += [NOWHERE] * len(others)
    pod_group_of += [NOWHERE] * len(others)
    class_of = state.classes.of
    state.tasks.fill(inputs, [class_of(task) for task in inputs], pod_set_of, pod_group_of)
    note_others(state, others, first_other)
    count_tasks(state, range(first_other))


def note_others(state: ClusterState, others: Sequence[OtherPod], first: int) -> None:
    """Note which of the pods outside of pod groups are reservations, and which another scheduler placed."""
    state.tasks.reservations = frozenset(
        task for task, pod in enumerate(others, first) if pod.is_reservation
    )
    state.tasks.foreign = frozenset(
        task for task, pod in enumerate(others, first) if pod.is_foreign and not pod.is_reservation
    )


def pod_sets_of(state: ClusterState, pod_group: int) -> list[int]:
    """Return the pod set of each task of a pod group."""
    pod_groups, sets = state.pod_groups, state.pod_groups.pod_sets
    index_of = {sets.name[index]: index for index in pod_groups.pod_sets_of(pod_group)}
    if len(index_of) != pod_groups.pod_set_count[pod_group]:
        raise InputError(f"pod group {pod_groups.name(pod_group)} has two pod sets of one name")
    tasks = pod_groups.inputs[pod_group].tasks
    try:
        return [index_of[task.subgroup] for task in tasks]
    except KeyError as error:
        task = next(task for task in tasks if task.subgroup not in index_of)
        raise InputError(
            f"task {task.namespace}/{task.name} is in subgroup {task.subgroup!r}, "
            f"pod group {pod_groups.name(pod_group)} has {sorted(index_of)}"
        ) from error


def count_tasks(state: ClusterState, members: Iterable[int]) -> None:
    """List tasks in their pod sets, which must be empty, and count them by status."""
    pod_groups, sets, tasks = state.pod_groups, state.pod_groups.pod_sets, state.tasks
    succeeded: dict[int, int] = {}
    for task in members:
        status, pod_set, pod_group = tasks.status[task], tasks.pod_set[task], tasks.pod_group[task]
        listed = sets.tasks[pod_set]
        listed.append(task)
        if len(listed) == 2:
            state.unsorted.add(pod_set)
        if status == PENDING:
            sets.pending[pod_set] += 1
            pod_groups.pending[pod_group] += 1
        elif ACTIVE_USED[status]:
            sets.active_used[pod_set] += 1
            if ACTIVE_ALLOCATED[status]:
                sets.active_allocated[pod_set] += 1
                pod_groups.active_allocated[pod_group] += 1
                if status == NOMINATED:
                    sets.nominated[pod_set] += 1
        elif status == GATED:
            sets.gated[pod_set] += 1
        elif status == SUCCEEDED:
            succeeded[pod_set] = succeeded.get(pod_set, 0) + 1
    _lower_minimums(sets, succeeded)


def _lower_minimums(sets: PodSets, succeeded: dict[int, int]) -> None:
    """Let succeeded tasks count for the minimum of their pod set where tasks that could run are too few.

    So the last tasks of a pod group start although they are fewer than the gang, and a task that was lost after
    others had finished starts again. While there are enough tasks, they start as a whole gang.
    """
    for pod_set, count in succeeded.items():
        alive = sets.pending[pod_set] + sets.gated[pod_set] + sets.active_allocated[pod_set]
        lacking = sets.minimum[pod_set] - alive
        sets.minimum[pod_set] -= min(count, max(lacking, 0))


def _charge_nodes(state: ClusterState) -> None:
    """Charge the nodes with the tasks on them.

    Tasks of one class are summed up by node and charged together. Charged one by one are those whose
    charge is not simply that of their class, and nominated tasks.
    """
    tasks, nodes = state.tasks, state.nodes
    index_of = nodes.index_of
    bulk: dict[tuple[int, bool], list[int]] = defaultdict(list)
    for task, task_input in enumerate(tasks.inputs):
        status = tasks.status[task]
        if not task_input.node or not ACTIVE_USED[status]:
            continue
        node = index_of.get(task_input.node)
        if node is None:
            continue
        tasks.node[task] = node
        note_placement(state, task, task_input, node)
        task_class = tasks.task_class[task]
        if (
            task_class.is_shared
            or status == NOMINATED
            or task in tasks.reservations
            or _lacks_charged_resource(nodes, node, task_class.charge)
        ):
            state.charge(task, node, hold_of(status))
        else:
            nodes.tasks[node][task] = None
            bulk[task_class.index, status == RELEASING].append(node)
    for (index, is_leaving), placed_on in bulk.items():
        counts = np.bincount(placed_on, minlength=len(nodes)).astype(np.float64)
        for row, amount in state.classes.classes[index].charge:
            taken = counts * amount
            nodes.idle_rows[row][:] = (np.array(nodes.idle_rows[row]) - taken).tolist()
            if is_leaving:
                releasing = np.array(nodes.releasing_rows[row]) + taken
                nodes.releasing_rows[row][:] = releasing.tolist()
            if row == GPU_ROW:
                whole_gpus = np.array(nodes.whole_gpus_used) + taken
                nodes.whole_gpus_used[:] = whole_gpus.tolist()


def _split_shared_claims(state: ClusterState) -> None:
    """Let the tasks that hold one claim count equal parts of it in their queue."""
    tasks = state.tasks
    state.shared_claims = SharedClaims(tasks.inputs, state.cluster_input.devices.claims)
    for task in state.shared_claims.tasks:
        surplus = state.shared_claims.split(task, tasks.status)
        tasks.accepted[task] = less_gpus(tasks.accepted[task], surplus)


def _lacks_charged_resource(nodes: Nodes, node: int, charge: RowAmounts) -> bool:
    zero_rows = nodes.zero_rows[node]
    return bool(zero_rows) and any(row in zero_rows for row, _ in charge)


def note_placement(state: ClusterState, task: int, task_input: TaskInput, node: int) -> None:
    task_class = state.tasks.task_class[task]
    state.tasks.accepted[task] = task_class.charged_on(state.nodes.gpu_memory[node])
    if task_input.numa:
        state.tasks.numa[task] = task_input.numa
    if task_input.claim_allocations:
        state.tasks.claim_allocations[task] = task_input.claim_allocations
