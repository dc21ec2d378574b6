"""Binding a single task at once, without a statement.

A chunk of one pending task that found free room needs no statement, because nothing that follows could
make it fail. The state changes exactly as by `Statement.allocate` and `keep`, but without the journal;
`test_direct.py` compares the two. On a cluster filled by thousands of small pod groups, most of the
time of a cycle is spent here.
"""

from __future__ import annotations

from scheduler.core.cluster.axis import GPU_ROW
from scheduler.core.cluster.gpus import NORMAL_HOLD, join_shared_gpu
from scheduler.core.cluster.state import ClusterState
from scheduler.core.cluster.status import BINDING
from scheduler.core.cluster.tasks import NOWHERE
from scheduler.core.decisions import ActionName, Bind, ReceivedType, TaskRef
from scheduler.core.session.decision_builders import bind_decision
from scheduler.core.session.session import Session

_REGULAR = ReceivedType.REGULAR
_MIG = ReceivedType.MIG


def can_bind_directly(session: Session, task: int) -> bool:
    """Return whether no plugin chooses NUMA zones for the task or keeps a ledger of such tasks (`TaskListener`)."""
    return session.hooks.numa is None and not session.listeners_of(task)


def bind_directly(
    session: Session, action: ActionName, task: int, node: int, gpu_groups: tuple[str, ...] = ()
) -> Bind:
    """Bind a pending task, whose pod group has one pod set and is not semi-preemptible, to free room on a node.

    Parameters
    ----------
    gpu_groups : the GPU group ids of the devices that it shares

    Returns
    -------
    the decision, which is also appended to those of the session
    """
    state = session.state
    tasks, pod_groups, nodes = state.tasks, state.pod_groups, state.nodes
    task_class = tasks.task_class[task]
    pod_group, pod_set = tasks.pod_group[task], tasks.pod_set[task]

    tasks.status[task] = BINDING
    tasks.bound_now.add(task)
    tasks.node[task] = node
    accepted = tasks.accepted[task] = task_class.charged_on(nodes.gpu_memory[node])
    sets = pod_groups.pod_sets
    sets.pending[pod_set] -= 1
    sets.active_allocated[pod_set] += 1
    sets.active_used[pod_set] += 1
    pod_groups.pending[pod_group] -= 1
    pod_groups.active_allocated[pod_group] += 1
    pod_groups.version[pod_group] += 1

    idle = nodes.idle_rows
    for row, amount in state.charge_amounts(task, node):
        idle[row][node] -= amount
        if row == GPU_ROW:
            nodes.whole_gpus_used[node] += amount
    if gpu_groups:
        _join(state, task, node, gpu_groups)
    nodes.tasks[node][task] = None
    nodes.touched.append(node)

    queue = pod_groups.queue[pod_group]
    if queue != NOWHERE:
        session.policy.charge_for_good(
            queue, accepted, preemptible=pod_groups.preemptible[pod_group]
        )
    if gpu_groups:
        decision = bind_decision(state, task, node, action)
    else:  # what `bind_decision` would return, written out because most binds come this way
        task_input, pod_group_input = tasks.inputs[task], pod_groups.inputs[pod_group]
        decision = Bind(
            TaskRef(task_input.namespace, task_input.name, task_input.uid),
            pod_group_input.name,
            pod_group_input.namespace,
            nodes.names[node],
            action,
            tasks.gpu_groups[task],
            _MIG if task_class.is_mig else _REGULAR,
            int(task_class.gpu_amount),
        )
    session.decisions.append(decision)
    return decision


def _join(state: ClusterState, task: int, node: int, gpu_groups: tuple[str, ...]) -> None:
    """Charge the devices that a task shares; only this writes to the journal, which is empty before and after."""
    state.tasks.gpu_groups[task] = gpu_groups
    memory = state.tasks.task_class[task].memory_on(state.nodes.gpu_memory[node])
    for gpu_group in gpu_groups:
        join_shared_gpu(state.nodes, state.journal, node, gpu_group, memory, NORMAL_HOLD)
    state.journal.forget()
