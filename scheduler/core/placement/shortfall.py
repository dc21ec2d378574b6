"""What is recorded of a pod group that was not placed: its queue refused it, or too few of its tasks found nodes."""

from __future__ import annotations

from scheduler.core.fairshare.capacity import CapacityReason, CapacityRefusal
from scheduler.core.session.fit import GangShortfall, GroupFit, GroupReason
from scheduler.core.session.gang import GangView

_REASON_OF = {
    CapacityReason.OVER_LIMIT: GroupReason.OVER_LIMIT,
    CapacityReason.NON_PREEMPTIBLE_OVER_QUOTA: GroupReason.NON_PREEMPTIBLE_OVER_QUOTA,
}


def fit_of_refusal(refusal: CapacityRefusal) -> GroupFit:
    """Return what is recorded if a capacity gate refused the chunk."""
    return GroupFit(_REASON_OF[refusal.reason], refusal)


def fit_of_shortfall(
    view: GangView, task: int, pod_set: int, placed_in_set: int, placed: int
) -> GroupFit:
    """Return which task found no node, and for a gang how many others were placed of how many it needs.

    Parameters
    ----------
    pod_set : that of the task
    placed_in_set, placed : how many tasks were placed before, of this pod set and of all
    """
    groups = view.state.pod_groups
    is_gang = any(view.minimum(index) > 1 for index in groups.pod_sets_of(view.pod_group))
    minimum = view.minimum(pod_set)
    if not is_gang or view.active(pod_set) >= minimum:
        evidence = GangShortfall(task)
    elif groups.pod_set_count[view.pod_group] == 1:
        evidence = GangShortfall(task, placed_in_set, minimum)
    else:
        evidence = GangShortfall(task, placed, minimum, groups.pod_sets.name[pod_set])
    return GroupFit(GroupReason.POD_SCHEDULING_ERRORS, evidence)
