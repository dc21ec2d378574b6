"""Build decisions from the state after a statement was kept."""

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
    """Return the decision to bind a task that was allocated."""
    tasks = state.tasks
    task_class = tasks.task_class[task]
    owner = state.pod_groups.inputs[tasks.pod_group[task]]
    received, count, portion = _REGULAR, int(task_class.gpu_amount), 1.0
    if task_class.is_shared:
        received, count = ReceivedType.FRACTION, task_class.devices
        portion = task_class.portion_on(state.nodes.gpu_memory[node])
    elif task_class.is_mig:
        received = ReceivedType.MIG
    return Bind(
        _ref(state, task),
        owner.name,
        owner.namespace,
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
    """Return the decision to evict a task; it names the new node of a task that was nominated again."""
    tasks, names = state.tasks, state.nodes.names
    owner = state.pod_groups.inputs[tasks.pod_group[task]]
    is_moved = tasks.status[task] == NOMINATED
    return Evict(
        _ref(state, task),
        owner.name,
        owner.namespace,
        names[node] if node != NOWHERE else "",
        reason,
        names[tasks.node[task]] if is_moved else "",
    )


def nominate_decision(
    state: ClusterState, task: int, node: int, action: ActionName, *, is_moved_victim: bool
) -> Nominate:
    """Return the decision that a task waits for room on a node."""
    tasks = state.tasks
    owner = state.pod_groups.inputs[tasks.pod_group[task]]
    return Nominate(
        _ref(state, task),
        owner.name,
        owner.namespace,
        state.nodes.names[node],
        action,
        tasks.gpu_groups[task],
        is_moved_victim,
    )


def _ref(state: ClusterState, task: int) -> TaskRef:
    pod = state.tasks.inputs[task]
    return TaskRef(pod.namespace, pod.name, pod.uid)
