"""Promises: room that evictions made for a pod group is its own until it runs, or somebody goes before it.

Victims leave at different times, so the room comes in parts, over several cycles. Meanwhile the pod group is pending,
and others of the order - a pod group that fits into the part that is free, the replacement of a victim - could take it;
then the pod group would evict anew, and so on. `status.nominatedNodeName` of its pods remembers the promise.

Before anybody else has a turn, allocate places promised pod groups on the nodes promised to them: bound when all is
free, nominated again otherwise. Pod groups of higher priority in the same queue take part, and so go first.
"""

from __future__ import annotations

from itertools import compress, count

from scheduler.core.actions.base import pending_views
from scheduler.core.cluster.status import TaskStatus
from scheduler.core.session.gang import GangView
from scheduler.core.session.nodeset import NodeSet
from scheduler.core.session.session import Session


def promised_views(session: Session) -> list[GangView]:
    """Return the pod groups with a promise, and those of higher priority in their queues; none without a promise."""
    groups = promised_pod_groups(session)
    if not groups:
        return []
    priority, views = session.state.pod_groups.priority, pending_views(session)
    least: dict[int, int] = {}
    for view in views:
        if view.pod_group in groups:
            group_priority = priority[view.pod_group]
            least[view.queue] = min(least.get(view.queue, group_priority), group_priority)
    return [
        view
        for view in views
        if view.pod_group in groups
        or (view.queue in least and priority[view.pod_group] > least[view.queue])
    ]


def promised_pod_groups(session: Session) -> set[int]:
    """Return the pod groups with a pending task that has a nominated node."""
    tasks, groups = session.state.tasks, session.state.pod_groups
    return {
        group
        for group in compress(count(), groups.pending)
        if any(
            tasks.inputs[task].nominated_node and tasks.status[task] == TaskStatus.PENDING
            for task in groups.tasks_of(group)
        )
    }


def nodes_for(session: Session, chunk: list[int]) -> NodeSet:
    """Return the nodes that are promised to the tasks of a chunk; all nodes if one has no promise that can be kept."""
    state = session.state
    index_of = state.nodes.index_of
    nodes = {index_of.get(state.tasks.inputs[task].nominated_node) for task in chunk}
    promised_nodes = [node for node in nodes if node is not None]
    return NodeSet.of(promised_nodes) if len(promised_nodes) == len(nodes) else session.all_nodes
