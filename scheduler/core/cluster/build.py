"""From the snapshot to arrays: order, number and charge everything once, at the start of a cycle."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from scheduler.core.cluster.axis import GPU_ROW, axis_of
from scheduler.core.cluster.classes import ClassTable, GpuMemoryRange
from scheduler.core.cluster.gpus import Hold
from scheduler.core.cluster.inputs import (
    UNKNOWN_GPU_MEMORY_MIB,
    ClusterInput,
    NodeInput,
    PodGroupInput,
    TaskInput,
)
from scheduler.core.cluster.nodes import Nodes
from scheduler.core.cluster.queues import Queues, flatten
from scheduler.core.cluster.state import ClusterState, hold_of
from scheduler.core.cluster.status import (
    ACTIVE_ALLOCATED,
    ACTIVE_USED,
    TaskStatus,
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
        given=given,
        axis=axis,
        nodes=Nodes(given.nodes, axis),
        queues=queues,
        classes=ClassTable(axis, _gpu_memory_range(given.nodes)),
    )
    _add_pod_groups(state)
    _add_other_pods(state)
    _charge_nodes(state)
    state.journal.forget()
    state.nodes.touched.clear()
    state.nodes.copy_rows()
    return state


def _gpu_memory_range(nodes: tuple[NodeInput, ...]) -> GpuMemoryRange:
    known = [n.gpu_memory_mib for n in nodes if n.gpu_memory_mib > UNKNOWN_GPU_MEMORY_MIB]
    return GpuMemoryRange(min(known, default=None), max(known, default=None))


def _add_pod_groups(state: ClusterState) -> None:
    ordered = sorted(state.given.pod_groups, key=lambda g: (g.created, g.uid, g.namespace, g.name))
    seen: set[tuple[str, str]] = set()
    queue_index = state.queues.index_of
    for given in ordered:
        key = (given.namespace, given.name)
        if key in seen:
            raise InputError(f"pod group {given.namespace}/{given.name} is in the snapshot twice")
        seen.add(key)
        group = state.groups.add(given, queue_index.get(given.queue, NOWHERE))
        _add_tasks(state, given, group)


def _add_tasks(state: ClusterState, given: PodGroupInput, group: int) -> None:
    groups, tasks, sets = state.groups, state.tasks, state.groups.pod_sets
    groups.first_task[group] = len(tasks)
    groups.task_count[group] = len(given.tasks)
    index_of = {sets.name[i]: i for i in groups.pod_sets_of(group)}
    if len(index_of) != groups.pod_set_count[group]:
        raise InputError(f"pod group {groups.name(group)} has two pod sets of one name")
    for task in given.tasks:
        pod_set = index_of.get(task.subgroup)
        if pod_set is None:
            raise InputError(
                f"task {task.namespace}/{task.name} is in subgroup {task.subgroup!r}, "
                f"pod group {groups.name(group)} has {sorted(index_of)}"
            )
        index = tasks.add(task, state.classes.of(task), pod_set, group)
        sets.tasks[pod_set].append(index)
        _count(state, group, pod_set, task.status)


def _count(state: ClusterState, group: int, pod_set: int, status: TaskStatus) -> None:
    groups, sets = state.groups, state.groups.pod_sets
    if status is TaskStatus.PENDING:
        sets.pending[pod_set] += 1
        groups.pending[group] += 1
    elif status is TaskStatus.GATED:
        sets.gated[pod_set] += 1
    elif ACTIVE_USED[status]:
        sets.active_used[pod_set] += 1
        if ACTIVE_ALLOCATED[status]:
            sets.active_allocated[pod_set] += 1
            groups.active_allocated[group] += 1
        if status is TaskStatus.NOMINATED:
            sets.nominated[pod_set] += 1


def _add_other_pods(state: ClusterState) -> None:
    reservations, foreign = set(), set()
    for pod in state.given.other_pods:
        index = state.tasks.add(pod.task, state.classes.of(pod.task), NOWHERE, NOWHERE)
        if pod.is_reservation:
            reservations.add(index)
        elif pod.is_foreign:
            foreign.add(index)
    state.tasks.reservations = frozenset(reservations)
    state.tasks.foreign = frozenset(foreign)


def _charge_nodes(state: ClusterState) -> None:
    """Charge what is on nodes: alike tasks in bulk, shared devices and odd nodes one by one."""
    tasks, nodes = state.tasks, state.nodes
    index_of = nodes.index_of
    bulk: dict[tuple[int, bool], list[int]] = defaultdict(list)
    for task, given in enumerate(tasks.inputs):
        if not given.node or not ACTIVE_USED[given.status]:
            continue
        node = index_of.get(given.node)
        if node is None:
            continue
        tasks.node[task] = node
        _accept(state, task, given, node)
        klass = tasks.klass[task]
        if klass.is_shared or task in tasks.reservations or _odd(nodes, node, klass.charge):
            state.charge(task, node, hold_of(given.status))
        elif given.status is TaskStatus.NOMINATED:
            state.charge(task, node, Hold.NOMINATED)
        else:
            nodes.tasks[node][task] = None
            bulk[klass.index, given.status is TaskStatus.RELEASING].append(node)
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
    klass = state.tasks.klass[task]
    state.tasks.accepted[task] = klass.accepted_on(state.nodes.gpu_memory[node])
    if given.numa:
        state.tasks.numa[task] = given.numa
    if given.claim_allocations:
        state.tasks.claim_allocations[task] = given.claim_allocations
