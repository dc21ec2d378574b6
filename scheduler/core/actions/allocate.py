"""Allocate: place pending pod groups, in the order of queues, without evicting anything.

A pod group places one chunk a turn (its missing gang, or one elastic step) and goes back into the order
while it has pending tasks, so that its growth competes with the other queues each time. Pod groups for which
somebody was evicted have a turn before all others (`promises.py`).
"""

from __future__ import annotations

from scheduler.core.actions.base import pending_views
from scheduler.core.actions.promises import nodes_for, promised_views
from scheduler.core.decisions import ActionName, ActionReport
from scheduler.core.placement.place import Placer
from scheduler.core.placement.reservations import Reservations
from scheduler.core.session.direct import bind_directly
from scheduler.core.session.gang import GangView
from scheduler.core.session.nodeset import NodeSet
from scheduler.core.session.order import GroupOrder
from scheduler.core.session.session import Session
from scheduler.core.session.statement import Statement

ALLOCATE = ActionName.ALLOCATE


class AllocateAction:
    """Binds tasks on free room and nominates them on room that is being freed."""

    name = ALLOCATE

    def run(self, session: Session, placer: Placer, report: ActionReport) -> None:
        """Place pod groups until each was placed as a whole or did not fit."""
        self._keep_promises(session, placer)
        depth = session.config.depth_of(self.name)
        order = GroupOrder(session, pending_views(session), depth=depth)
        pending = session.state.pod_groups.pending
        reservations = Reservations.of(session)
        while (view := order.pop()) is not None:
            report.attempted += 1
            session.clock()  # the time does not matter: each call is a sign of life
            if _allocate_beside(reservations, session, placer, view):
                report.succeeded += 1
                if pending[view.pod_group]:
                    order.push(view)
            else:
                session.unplaced_groups.append(view.pod_group)

    def _keep_promises(self, session: Session, placer: Placer) -> None:
        """Place pod groups where room was made for them; one that does not fit there competes with all others."""
        views = promised_views(session)
        if not views:
            return
        order = GroupOrder(session, views)
        pending = session.state.pod_groups.pending
        while (view := order.pop()) is not None:
            nodes = nodes_for(session, view.next_chunk(include_evicted=False))
            if (
                _would_fit(session, placer, view, nodes)
                and place_chunk(session, placer, view, nodes)
                and pending[view.pod_group]
            ):
                order.push(view)


def _allocate_beside(
    reservations: Reservations | None, session: Session, placer: Placer, view: GangView
) -> bool:
    """Place the next chunk of a pod group beside the room that is kept for others; if it does not fit, keep room for it.

    Where the shard keeps no room, only place it.
    """
    if reservations is None:
        return allocate_chunk(session, placer, view)
    with reservations.room_available_to(view):
        is_placed = allocate_chunk(session, placer, view)
    if not is_placed:
        reservations.handle_unplaced(placer, view)
    return is_placed


def _would_fit(session: Session, placer: Placer, view: GangView, nodes: NodeSet) -> bool:
    """Return whether the next chunk fits on these nodes, without recording why not."""
    statement = Statement(session, ALLOCATE)
    chunk = view.next_chunk(include_evicted=False)
    fits = placer.place(statement, view, chunk, nodes, nominate_only=True)
    statement.discard()
    return fits


def allocate_chunk(session: Session, placer: Placer, view: GangView) -> bool:
    """Place the next chunk of a pod group and keep it; False if it does not fit."""
    pod_groups = session.state.pod_groups
    is_start = pod_groups.active_allocated[view.pod_group] == 0
    chunk = view.next_chunk(include_evicted=False)
    pod_set = view.only_pod_set
    # One task of a plain pod group is bound without a statement where it has free room.
    if (
        len(chunk) == 1
        and pod_set >= 0
        and not pod_groups.pod_sets.nominated[pod_set]
        and view.pod_group not in pod_groups.semi_preemptible
    ):
        place = placer.find_free(view, chunk[0])
        if place is not None:
            bind_directly(session, ALLOCATE, chunk[0], *place)
            if is_start:
                pod_groups.last_start[view.pod_group] = session.state.now
            return True
    return place_chunk(session, placer, view, session.all_nodes)


def place_chunk(session: Session, placer: Placer, view: GangView, nodes: NodeSet) -> bool:
    """Place the next chunk of a pod group on some of these nodes and keep it; False if it does not fit."""
    pod_groups = session.state.pod_groups
    is_start = pod_groups.active_allocated[view.pod_group] == 0
    chunk = view.next_chunk(include_evicted=False)
    statement = Statement(session, ALLOCATE)
    if not placer.place(statement, view, chunk, nodes, nominate_only=False):
        statement.discard()
        return False
    must_wait = view.should_nominate()
    if must_wait:
        statement.convert_to_nominated(view)
    statement.keep()
    if is_start and not must_wait:
        pod_groups.last_start[view.pod_group] = session.state.now
    return True
