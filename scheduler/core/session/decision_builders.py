"""Build decisions from the state, after the operations of a statement were kept."""

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
    pod_group = state.pod_groups.inputs[tasks.pod_group[task]]
    received_type, gpu_count, gpu_portion = _REGULAR, int(task_class.gpu_amount), 1.0
    if task_class.is_shared:
        received_type, gpu_count = ReceivedType.FRACTION, task_class.devices
        gpu_portion = task_class.portion_on(state.nodes.gpu_memory[node])
    elif task_class.is_mig:
        received_type = ReceivedType.MIG
    return Bind(
        _ref(state, task),
        pod_group.name,
        pod_group.namespace,
        state.nodes.names[node],
        action,
        tasks.gpu_groups[task],
        received_type,
        gpu_count,
        gpu_portion,
        tasks.numa.get(task, ()),
        tasks.claim_allocations.get(task, ()),
    )


def evict_decision(state: ClusterState, task: int, node: int, reason: EvictReason) -> Evict:
    """Return the decision to evict a task; if the task was nominated elsewhere, name that node too."""
    tasks, names = state.tasks, state.nodes.names
    pod_group = state.pod_groups.inputs[tasks.pod_group[task]]
    is_moved = tasks.status[task] == NOMINATED
    return Evict(
        _ref(state, task),
        pod_group.name,
        pod_group.namespace,
        names[node] if node != NOWHERE else "",
        reason,
        names[tasks.node[task]] if is_moved else "",
    )


def nominate_decision(
    state: ClusterState, task: int, node: int, action: ActionName, *, is_moved_victim: bool
) -> Nominate:
    """Return the decision to nominate a task to a node on which it waits for room."""
    tasks = state.tasks
    pod_group = state.pod_groups.inputs[tasks.pod_group[task]]
    return Nominate(
        _ref(state, task),
        pod_group.name,
        pod_group.namespace,
        state.nodes.names[node],
        action,
        tasks.gpu_groups[task],
        is_moved_victim,
    )


def _ref(state: ClusterState, task: int) -> TaskRef:
    pod = state.tasks.inputs[task]
    return TaskRef(pod.namespace, pod.name, pod.uid)
