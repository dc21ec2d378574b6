"""Binding a lone task at once, without a trial.

A pod group of one pending task that found free room needs no statement: nothing that follows could make
it fail. The same cells change as in `Statement.allocate` and `keep`, without the journal in between;
`test_direct.py` compares the two cell by cell. On a cluster filled by thousands of small jobs this is
most of what a cycle does.
"""

from __future__ import annotations

from scheduler.core.cluster.axis import GPU_ROW
from scheduler.core.cluster.status import BINDING
from scheduler.core.cluster.tasks import NOWHERE
from scheduler.core.decisions import ActionName, Bind, ReceivedType, TaskRef
from scheduler.core.session.session import Session

_REGULAR = ReceivedType.REGULAR
_MIG = ReceivedType.MIG


def can_bind_directly(session: Session, task: int) -> bool:
    """Tell whether nothing but the core's own ledgers follows this kind of task."""
    state = session.state
    return (
        not state.tasks.task_class[task].is_shared
        and session.hooks.numa is None
        and not session.listeners_of(task)
    )


def bind_directly(session: Session, action: ActionName, task: int, node: int) -> Bind:
    """Give a pending task of a plain pod group free room on a node, for good.

    Returns
    -------
    the decision, which is also added to those of the session
    """
    state = session.state
    tasks, groups, nodes = state.tasks, state.pod_groups, state.nodes
    task_class = tasks.task_class[task]
    group, pod_set = tasks.pod_group[task], tasks.pod_set[task]

    tasks.status[task] = BINDING
    tasks.node[task] = node
    accepted = tasks.accepted[task] = task_class.accepted_on(nodes.gpu_memory[node])
    sets = groups.pod_sets
    sets.pending[pod_set] -= 1
    sets.active_allocated[pod_set] += 1
    sets.active_used[pod_set] += 1
    groups.pending[group] -= 1
    groups.active_allocated[group] += 1
    groups.version[group] += 1

    idle = nodes.idle_rows
    for row, amount in state.charge_cells(task, node):
        idle[row][node] -= amount
        if row == GPU_ROW:
            nodes.whole_gpus_used[node] += amount
    nodes.tasks[node][task] = None
    nodes.touched.append(node)

    queue = groups.queue[group]
    if queue != NOWHERE:
        session.policy.charge_for_good(queue, accepted, preemptible=groups.preemptible[group])
    given, owner = tasks.inputs[task], groups.inputs[group]
    decision = Bind(
        TaskRef(given.namespace, given.name, given.uid),
        owner.name,
        owner.namespace,
        nodes.names[node],
        action,
        tasks.gpu_groups[task],
        _MIG if task_class.is_mig else _REGULAR,
        int(task_class.gpu_amount),
    )
    session.decisions.append(decision)
    return decision
