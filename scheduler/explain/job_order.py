"""The order in which allocate would serve pod groups, for people who ask which pod group is next."""

from __future__ import annotations

from typing import Any

from scheduler.core.actions.base import pending_views
from scheduler.core.decisions import ActionName
from scheduler.core.session.order import GroupOrder
from scheduler.core.session.session import Session


def job_order(session: Session) -> dict[str, Any]:
    """Return the order allocate would use at the opening of a cycle, whole and by leaf queue."""
    depth = session.config.depth_of(ActionName.ALLOCATE)
    order = GroupOrder(session, pending_views(session), depth=depth)
    groups, names = session.state.pod_groups, session.state.queues.names
    everything: list[dict[str, Any]] = []
    by_queue: dict[str, list[dict[str, Any]]] = {}
    while (view := order.pop()) is not None:
        entry = {"id": groups.name(view.pod_group), "priority": groups.priority[view.pod_group]}
        everything.append(entry)
        by_queue.setdefault(names[view.queue], []).append(entry)
    return {"global_order": everything, "queue_order": by_queue}
