"""What an action is, and which pod groups an action looks at."""

from __future__ import annotations

from typing import Protocol

from scheduler.core.cluster.tasks import NOWHERE
from scheduler.core.decisions import ActionName, ActionReport
from scheduler.core.placement.place import Placer
from scheduler.core.session.gang import GangView
from scheduler.core.session.session import Session


class Action(Protocol):
    """One step of a cycle."""

    name: ActionName

    def run(self, session: Session, placer: Placer, report: ActionReport) -> None:
        """Decide; decisions are added to the session as statements are kept."""
        ...


def pending_views(session: Session) -> list[GangView]:
    """Return the pod groups that want places: ready, with a pending task, in a leaf queue."""
    state = session.state
    groups, queues = state.pod_groups, state.queues
    sets, only_pod_set = groups.pod_sets, groups.only_pod_set
    is_leaf = [queues.is_leaf(queue) for queue in range(len(queues))]
    found = []
    for group, pending in enumerate(groups.pending):
        if not pending:
            continue
        queue = groups.queue[group]
        if queue == NOWHERE or not is_leaf[queue]:
            continue
        only = only_pod_set[group]
        if only >= 0:
            if pending >= sets.minimum[only] - sets.active_allocated[only]:
                found.append(session.view(group))
        elif session.view(group).is_ready_to_run():
            found.append(session.view(group))
    return found
