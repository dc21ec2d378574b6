"""Stale gangs: evict what is left of a pod group that has been below its minimum for too long.

A gang is stale while it has running tasks, none that succeeded, and its tree of subgroups does not run
its minimum. The first cycle that sees it records the time. After the grace period, everything that runs of
it is evicted. A gang that runs its minimum is also stale while an optional subgroup runs some tasks, but
fewer than its own minimum; then only the tasks of such subgroups are evicted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from scheduler.core.cluster.inputs import TaskInput
from scheduler.core.cluster.podgroups import SubgroupNode, TreeMember
from scheduler.core.cluster.status import ACTIVE_ALLOCATED, TaskStatus
from scheduler.core.decisions import ActionName, ActionReport, Evict, EvictReason, TaskRef
from scheduler.core.placement.place import Placer
from scheduler.core.session.gang import GangView
from scheduler.core.session.session import Session
from scheduler.core.session.statement import Statement
from scheduler.core.times import elapsed_s


class EvictStaleAction:
    """Evicts what is left of broken gangs."""

    name = ActionName.STALE_GANG_EVICTION

    def run(self, session: Session, placer: Placer, report: ActionReport) -> None:
        """Record since when each gang is stale, and evict those whose grace period has elapsed."""
        del placer
        now, stale_since = session.state.now, session.state.pod_groups.stale_since
        stale = stale_pod_groups(session)
        # In most cycles no gang is stale: to count costs a tenth of the loop.
        if stale_since.count(None) < len(stale_since):
            for pod_group, since in enumerate(stale_since):
                if since is not None and pod_group not in stale:
                    stale_since[pod_group] = None
        for pod_group in stale:
            since = stale_since[pod_group]
            if since is None:
                since = stale_since[pod_group] = now
            grace = grace_s(session, pod_group)
            if grace >= 0 and elapsed_s(since, now) >= grace:
                report.attempted += 1
                report.succeeded += self._evict_rest(session, pod_group)

    def _evict_rest(self, session: Session, pod_group: int) -> bool:
        view = session.view(pod_group)
        broken = _broken_members(session, view, view.root)
        leaves = [pod_set for member in broken for pod_set in _pod_sets_below(member)]
        tasks = self._allowed(
            session, [task for pod_set in leaves for task in view.active_tasks(pod_set)]
        )
        if not tasks:
            return False
        orphans = _orphan_pods(session, pod_group) if broken == [view.root] else []
        statement = Statement(session, self.name)
        subgroup, minimum = first_shortfall(session, leaves)
        why = EvictReason(
            action=self.name,
            gang_size=len(tasks) + len(orphans),
            stale_subgroup=subgroup,
            stale_minimum=minimum,
        )
        for task in tasks:
            statement.evict(task, why)
        statement.keep()
        inputs = session.state.pod_groups.inputs[pod_group]
        for pod in orphans:
            ref = TaskRef(pod.namespace, pod.name, pod.uid)
            reason = replace(why, stale_subgroup=pod.subgroup, stale_minimum=None)
            session.decisions.append(Evict(ref, inputs.name, inputs.namespace, pod.node, reason))
        return True

    def _allowed(self, session: Session, tasks: list[int]) -> list[int]:
        """Return the tasks that the disruption limits let go now; the others are left for later cycles."""
        ledger = session.disruptions
        if not ledger.exceeded(tasks):
            return tasks
        allowed: list[int] = []
        for task in tasks:
            if not ledger.exceeded((*allowed, task)):
                allowed.append(task)
        return allowed


def grace_s(session: Session, pod_group: int) -> float:
    """Return how long a pod group may stay stale; negative means for ever."""
    grace = session.state.pod_groups.inputs[pod_group].staleness_grace_s
    return session.config.staleness_grace_s if grace is None else grace


def stale_pod_groups(session: Session) -> dict[int, None]:
    """Return the pod groups that run fewer tasks than their gang needs, and are not just finishing.

    Almost all pod groups are one pod set, whose counters are enough; only for the others the tree of
    subgroups is examined. A subgroup is complete when it has its own required number of members, so an
    optional empty subgroup does not make a gang stale, as it does in KAI. One that is neither empty nor
    complete does.
    """
    pod_groups, pod_sets = session.state.pod_groups, session.state.pod_groups.pod_sets
    stale: dict[int, None] = {}
    used, minimum = pod_sets.active_used, pod_sets.minimum
    for pod_group, (first, count) in enumerate(
        zip(pod_groups.first_pod_set, pod_groups.pod_set_count, strict=True)
    ):
        if count == 1 and (not used[first] or used[first] >= minimum[first]):
            continue
        if _is_stale(session, pod_group):
            stale[pod_group] = None
    return stale


def _is_stale(session: Session, pod_group: int) -> bool:
    if not _has_used(session, pod_group):
        return False
    state = session.state
    first = state.pod_groups.first_task[pod_group]
    tasks = range(first, first + state.pod_groups.task_count[pod_group])
    if any(state.tasks.status[task] == TaskStatus.SUCCEEDED for task in tasks):
        return False
    view = session.view(pod_group)
    return bool(_broken_members(session, view, view.root))


def _broken_members(session: Session, view: GangView, member: TreeMember) -> list[TreeMember]:
    """Return the topmost members that run some tasks but not their minimum: the whole tree, or parts."""
    if not _runs_minimum(session, view, member):
        active_used = session.state.pod_groups.pod_sets.active_used
        return [member] if any(active_used[index] for index in _pod_sets_below(member)) else []
    if not isinstance(member, SubgroupNode):
        return []
    return [broken for inner in member.members for broken in _broken_members(session, view, inner)]


def _pod_sets_below(member: TreeMember) -> list[int]:
    """Return the indices of the pod sets of a member, in their order."""
    leaves = member.pod_sets() if isinstance(member, SubgroupNode) else [member]
    return sorted(leaf.index for leaf in leaves)


def first_shortfall(session: Session, pod_sets: Iterable[int]) -> tuple[str, int]:
    """Return the name (empty for the default) and minimum of the first pod set below its minimum."""
    sets = session.state.pod_groups.pod_sets
    for pod_set in pod_sets:
        if sets.active_used[pod_set] < sets.minimum[pod_set]:
            name = sets.name[pod_set]
            return ("" if name == "default" else name, sets.minimum[pod_set])
    return ("", 0)


def _orphan_pods(session: Session, pod_group: int) -> list[TaskInput]:
    """Return the running pods of subgroups that the pod group no longer has; they are evicted too."""
    inputs = session.state.pod_groups.inputs[pod_group]
    return [task for task in inputs.invalid_subgroup_tasks if ACTIVE_ALLOCATED[task.status]]


def _has_used(session: Session, pod_group: int) -> bool:
    pod_groups = session.state.pod_groups
    active_used = pod_groups.pod_sets.active_used
    return any(active_used[pod_set] for pod_set in pod_groups.pod_sets_of(pod_group))


def _runs_minimum(session: Session, view: GangView, member: TreeMember) -> bool:
    """Return whether a subgroup runs its minimum, counting also tasks that are being evicted."""
    if isinstance(member, SubgroupNode):
        complete = sum(_runs_minimum(session, view, inner) for inner in member.members)
        return complete >= view.required_members(member)
    sets = session.state.pod_groups.pod_sets
    return sets.active_used[member.index] >= sets.minimum[member.index]
