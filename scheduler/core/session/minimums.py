"""Semi-preemptible pod groups: their minimum is charged as non-preemptible, only what is above it may be evicted.

The minimum of a pod group is the part of its tree that its gang needs: the required members of each subgroup, and of each
pod set as many tasks as its minimum. Which tasks these are may change whenever a task comes or goes, so the queue is then
charged with the difference.
"""

from __future__ import annotations

from scheduler.core.arrays import NO_AMOUNTS
from scheduler.core.cluster.podgroups import PodSetLeaf, TreeMember
from scheduler.core.cluster.tasks import NOWHERE
from scheduler.core.fairshare.shares import minus
from scheduler.core.session.gang import GangView
from scheduler.core.session.session import Session


def protected_tasks(view: GangView) -> list[int]:
    """Return the tasks that hold a place in the minimum of a pod group."""
    return _protected_below(view, view.root)


def _protected_below(view: GangView, member: TreeMember) -> list[int]:
    if isinstance(member, PodSetLeaf):
        return view.active_tasks(member.index)[: view.minimum(member.index)]
    # Victims are taken from the last members first, so the first satisfied ones stay.
    members = sorted(view.ordered_members(member), key=lambda inner: not view.is_satisfied(inner))
    required = members[: view.required_members(member)]
    return [task for inner in required for task in _protected_below(view, inner)]


def charge_all_minimums(session: Session) -> None:
    """Charge every queue with the minimums of its semi-preemptible pod groups, when a session opens."""
    for pod_group in session.state.pod_groups.semi_preemptible:
        charge_minimum(session, pod_group)
    session.state.journal.forget()


def charge_minimum(session: Session, pod_group: int) -> None:
    """Charge the queue of a semi-preemptible pod group with what its minimum holds more or less than before."""
    state = session.state
    queue = state.pod_groups.queue[pod_group]
    if queue == NOWHERE:
        return
    charged_amounts = state.pod_groups.semi_preemptible
    minimum_amounts = session.held_by(protected_tasks(session.view(pod_group)))
    change = minus(minimum_amounts, charged_amounts[pod_group])
    if change == NO_AMOUNTS:
        return
    state.journal.put(charged_amounts, pod_group, minimum_amounts)
    session.policy.charge_non_preemptible(state.journal, queue, change)
