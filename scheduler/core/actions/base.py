"""What an action is, and which pod groups an action looks at."""

from __future__ import annotations

from itertools import compress, count
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
        """Run the action; its decisions are added to the session as statements are kept."""
        ...


def pending_views(session: Session) -> list[GangView]:
    """Return the pod groups to place: with a pending task, enough tasks for a gang, in a leaf queue."""
    state = session.state
    pod_groups, queues = state.pod_groups, state.queues
    pod_sets, only_pod_set = pod_groups.pod_sets, pod_groups.only_pod_set
    is_leaf = [queues.is_leaf(queue) for queue in range(len(queues))]
    views = []
    for pod_group in compress(count(), pod_groups.pending):
        queue = pod_groups.queue[pod_group]
        if queue == NOWHERE or not is_leaf[queue]:
            continue
        pod_set = only_pod_set[pod_group]
        if pod_set >= 0:
            pending = pod_groups.pending[pod_group]
            if pending >= pod_sets.minimum[pod_set] - pod_sets.active_allocated[pod_set]:
                views.append(session.view(pod_group))
        elif session.view(pod_group).is_ready_to_run():
            views.append(session.view(pod_group))
    return views
