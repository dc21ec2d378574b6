"""From the snapshot to arrays: order, number and charge everything once, at the start of a cycle."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import numpy as np

from scheduler.core.cluster.axis import GPU_ROW, axis_of
from scheduler.core.cluster.classes import ClassTable, GpuMemoryRange
from scheduler.core.cluster.inputs import (
    UNKNOWN_GPU_MEMORY_MIB,
    ClusterInput,
    NodeInput,
    TaskInput,
)
from scheduler.core.cluster.nodes import Nodes
from scheduler.core.cluster.queues import Queues, flatten
from scheduler.core.cluster.state import ClusterState, hold_of
from scheduler.core.cluster.status import (
    ACTIVE_ALLOCATED,
    ACTIVE_USED,
    GATED,
    NOMINATED,
    PENDING,
    RELEASING,
)
from scheduler.core.cluster.tasks import NOWHERE
from scheduler.core.errors import InputError


def build_state(given: ClusterInput, *, full_hierarchy: bool = True) -> ClusterState:
    """Make the state of a cycle from a snapshot.

    Parameters
    ----------
    given : the snapshot
    full_hierarchy : False puts every queue directly under one unlimited root

    Returns
    -------
    a state whose nodes are charged with everything that runs; queues are charged by the session

    Raises
    ------
    InputError : two nodes, queues or pod groups of one name, or a task of an unknown pod set
    """
    axis = axis_of(given)
    queues = Queues(given.queues if full_hierarchy else flatten(given.queues))
    state = ClusterState(
        cluster_input=given,
        axis=axis,
        nodes=Nodes(given.nodes, axis),
        queues=queues,
        classes=ClassTable(axis, _gpu_memory_range(given.nodes)),
    )
    _add_pod_groups(state)
    _add_tasks(state)
    _charge_nodes(state)
    state.journal.forget()
    state.nodes.touched.clear()
    state.nodes.copy_rows()
    return state


def _gpu_memory_range(nodes: tuple[NodeInput, ...]) -> GpuMemoryRange:
    known = [n.gpu_memory_mib for n in nodes if n.gpu_memory_mib > UNKNOWN_GPU_MEMORY_MIB]
    return GpuMemoryRange(min(known, default=None), max(known, default=None))


def _add_pod_groups(state: ClusterState) -> None:
    ordered = sorted(
        state.cluster_input.pod_groups, key=lambda g: (g.created, g.uid, g.namespace, g.name)
    )
    if len({(given.namespace, given.name) for given in ordered}) < len(ordered):
        names = sorted(f"{given.namespace}/{given.name}" for given in ordered)
        twice = next(a for a, b in pairwise(names) if a == b)
        raise InputError(f"pod group {twice} is in the snapshot twice")
    state.pod_groups.fill(ordered, state.queues.index_of)


def _add_tasks(state: ClusterState) -> None:
    """Number the tasks of all pod groups, and after them the pods outside of pod groups."""
    groups, others = state.pod_groups, state.cluster_input.other_pods
    inputs: list[TaskInput] = []
    pod_set_of: list[int] = []
    group_of: list[int] = []
    for group, given in enumerate(groups.inputs):
        groups.first_task[group] = len(inputs)
        groups.task_count[group] = len(given.tasks)
        pod_set_of += _pod_sets_of(state, group)
        group_of += [group] * len(given.tasks)
        inputs += given.tasks
    own = len(inputs)
    inputs += [pod.task for pod in others]
    pod_set_of += [NOWHERE] * len(others)
    group_of += [NOWHERE] * len(others)
    class_of = state.classes.of
    state.tasks.fill(inputs, [class_of(task) for task in inputs], pod_set_of, group_of)
    state.tasks.reservations = frozenset(
        own + place for place, pod in enumerate(others) if pod.is_reservation
    )
    state.tasks.foreign = frozenset(
        own + place for place, pod in enumerate(others) if pod.is_foreign and not pod.is_reservation
    )
    _count(state, own)


def _pod_sets_of(state: ClusterState, group: int) -> list[int]:
    """Return the pod set of each task of a pod group."""
    groups, sets = state.pod_groups, state.pod_groups.pod_sets
    index_of = {sets.name[index]: index for index in groups.pod_sets_of(group)}
    if len(index_of) != groups.pod_set_count[group]:
        raise InputError(f"pod group {groups.name(group)} has two pod sets of one name")
    try:
        return [index_of[task.subgroup] for task in groups.inputs[group].tasks]
    except KeyError as error:
        lost = next(t for t in groups.inputs[group].tasks if t.subgroup not in index_of)
        raise InputError(
            f"task {lost.namespace}/{lost.name} is in subgroup {lost.subgroup!r}, "
            f"pod group {groups.name(group)} has {sorted(index_of)}"
        ) from error


def _count(state: ClusterState, own: int) -> None:
    """Put tasks into their pod sets and count how they stand."""
    groups, sets, tasks = state.pod_groups, state.pod_groups.pod_sets, state.tasks
    for task in range(own):
        status, pod_set, group = tasks.status[task], tasks.pod_set[task], tasks.pod_group[task]
        sets.tasks[pod_set].append(task)
        if status == PENDING:
            sets.pending[pod_set] += 1
            groups.pending[group] += 1
        elif ACTIVE_USED[status]:
            sets.active_used[pod_set] += 1
            if ACTIVE_ALLOCATED[status]:
                sets.active_allocated[pod_set] += 1
                groups.active_allocated[group] += 1
                if status == NOMINATED:
                    sets.nominated[pod_set] += 1
        elif status == GATED:
            sets.gated[pod_set] += 1


def _charge_nodes(state: ClusterState) -> None:
    """Charge what is on nodes: alike tasks in bulk, shared devices and odd nodes one by one."""
    tasks, nodes = state.tasks, state.nodes
    index_of = nodes.index_of
    bulk: dict[tuple[int, bool], list[int]] = defaultdict(list)
    for task, given in enumerate(tasks.inputs):
        status = tasks.status[task]
        if not given.node or not ACTIVE_USED[status]:
            continue
        node = index_of.get(given.node)
        if node is None:
            continue
        tasks.node[task] = node
        _accept(state, task, given, node)
        task_class = tasks.task_class[task]
        if (
            task_class.is_shared
            or status == NOMINATED
            or task in tasks.reservations
            or _odd(nodes, node, task_class.charge)
        ):
            state.charge(task, node, hold_of(status))
        else:
            nodes.tasks[node][task] = None
            bulk[task_class.index, status == RELEASING].append(node)
    for (index, leaving), places in bulk.items():
        counts = np.bincount(places, minlength=len(nodes)).astype(np.float64)
        for row, amount in state.classes.classes[index].charge:
            taken = counts * amount
            nodes.idle_rows[row][:] = (np.array(nodes.idle_rows[row]) - taken).tolist()
            if leaving:
                releasing = np.array(nodes.releasing_rows[row]) + taken
                nodes.releasing_rows[row][:] = releasing.tolist()
            if row == GPU_ROW:
                used = np.array(nodes.whole_gpus_used) + taken
                nodes.whole_gpus_used[:] = used.tolist()


def _odd(nodes: Nodes, node: int, charge: tuple[tuple[int, float], ...]) -> bool:
    zero = nodes.zero_rows[node]
    return bool(zero) and any(row in zero for row, _ in charge)


def _accept(state: ClusterState, task: int, given: TaskInput, node: int) -> None:
    task_class = state.tasks.task_class[task]
    state.tasks.accepted[task] = task_class.accepted_on(state.nodes.gpu_memory[node])
    if given.numa:
        state.tasks.numa[task] = given.numa
    if given.claim_allocations:
        state.tasks.claim_allocations[task] = given.claim_allocations
