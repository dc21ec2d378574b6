"""From what stands in the state to the decisions that leave the core."""

from __future__ import annotations

from scheduler.core.cluster.state import ClusterState
from scheduler.core.cluster.status import NOMINATED
from scheduler.core.cluster.tasks import NOWHERE
from scheduler.core.decisions import (
    ActionName,
    Bind,
    Evict,
    EvictReason,
    Nominate,
    ReceivedType,
    TaskRef,
)

_REGULAR = ReceivedType.REGULAR


def bind_decision(state: ClusterState, task: int, node: int, action: ActionName) -> Bind:
    """Tell how a task that was allocated is to be bound."""
    tasks = state.tasks
    task_class = tasks.task_class[task]
    group = state.pod_groups.inputs[tasks.pod_group[task]]
    received, count, portion = _REGULAR, int(task_class.gpu_amount), 1.0
    if task_class.is_shared:
        received, count = ReceivedType.FRACTION, task_class.devices
        portion = task_class.portion_on(state.nodes.gpu_memory[node])
    elif task_class.is_mig:
        received = ReceivedType.MIG
    return Bind(
        _ref(state, task),
        group.name,
        group.namespace,
        state.nodes.names[node],
        action,
        tasks.gpu_groups[task],
        received,
        count,
        portion,
        tasks.numa.get(task, ()),
        tasks.claim_allocations.get(task, ()),
    )


def evict_decision(state: ClusterState, task: int, node: int, reason: EvictReason) -> Evict:
    """Tell that a task must leave a node, and where it will go if a place was found."""
    tasks, names = state.tasks, state.nodes.names
    group = state.pod_groups.inputs[tasks.pod_group[task]]
    moved = tasks.status[task] == NOMINATED
    return Evict(
        _ref(state, task),
        group.name,
        group.namespace,
        names[node] if node != NOWHERE else "",
        reason,
        names[tasks.node[task]] if moved else "",
    )


def nominate_decision(
    state: ClusterState, task: int, node: int, action: ActionName, *, is_moved_victim: bool
) -> Nominate:
    """Tell that a task waits for room on a node."""
    tasks = state.tasks
    group = state.pod_groups.inputs[tasks.pod_group[task]]
    return Nominate(
        _ref(state, task),
        group.name,
        group.namespace,
        state.nodes.names[node],
        action,
        tasks.gpu_groups[task],
        is_moved_victim,
    )


def _ref(state: ClusterState, task: int) -> TaskRef:
    given = state.tasks.inputs[task]
    return TaskRef(given.namespace, given.name, given.uid)
