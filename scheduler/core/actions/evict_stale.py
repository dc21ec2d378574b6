"""Stale gangs: evict what is left of a pod group that has fallen below its minimum for too long.

A gang is stale while it has running tasks, none that succeeded, and its tree of subgroups does not run
its minimum. The first cycle that sees it notes the time; after the grace everything it runs is evicted.
"""

from __future__ import annotations

from dataclasses import replace

from scheduler.core.cluster.inputs import TaskInput
from scheduler.core.cluster.podgroups import SubgroupNode, TreeMember
from scheduler.core.cluster.status import ACTIVE_ALLOCATED, TaskStatus
from scheduler.core.decisions import ActionName, ActionReport, Evict, EvictReason, TaskRef
from scheduler.core.placement.place import Placer
from scheduler.core.session.gang import GangView
from scheduler.core.session.session import Session
from scheduler.core.session.statement import Statement
from scheduler.core.times import NOW, elapsed_s


class EvictStaleAction:
    """Evicts what is left of broken gangs."""

    name = ActionName.STALE_GANG_EVICTION

    def run(self, session: Session, placer: Placer, report: ActionReport) -> None:
        """Note, forget or act, for every pod group with tasks on nodes."""
        del placer
        groups = session.state.pod_groups
        stale = stale_groups(session)
        for group, since in enumerate(groups.stale_since):
            if since is not None and group not in stale:
                groups.stale_since[group] = None
        for group in stale:
            since = groups.stale_since[group]
            if since is None:
                since = groups.stale_since[group] = NOW
            grace = grace_s(session, group)
            if grace >= 0 and elapsed_s(since) >= grace:
                report.attempted += 1
                report.succeeded += self._evict_rest(session, group)

    def _evict_rest(self, session: Session, group: int) -> bool:
        view = session.view(group)
        rest = view.all_active_tasks()
        if not rest:
            return False
        strays = _strays(session, group)
        statement = Statement(session, self.name)
        subgroup, minimum = first_shortfall(session, view)
        why = EvictReason(
            action=self.name,
            gang_size=len(rest) + len(strays),
            stale_subgroup=subgroup,
            stale_minimum=minimum,
        )
        for task in rest:
            statement.evict(task, why)
        statement.keep()
        given = session.state.pod_groups.inputs[group]
        for stray in strays:
            ref = TaskRef(stray.namespace, stray.name, stray.uid)
            lost = replace(why, stale_subgroup=stray.subgroup, stale_minimum=None)
            session.decisions.append(Evict(ref, given.name, given.namespace, stray.node, lost))
        return True


def grace_s(session: Session, group: int) -> float:
    """Return how long a pod group may stay stale; negative means for ever."""
    own = session.state.pod_groups.inputs[group].staleness_grace_s
    return session.config.staleness_grace_s if own is None else own


def stale_groups(session: Session) -> dict[int, None]:
    """Return the pod groups that have running tasks but not their gang, and are not just finishing.

    Almost all pod groups are one pod set, whose counters answer at once; only the others have their
    tree of subgroups asked. A subgroup counts as complete by its own required number of members, so
    an optional empty subgroup does not make a gang stale, as it does in KAI.
    """
    groups, sets = session.state.pod_groups, session.state.pod_groups.pod_sets
    found: dict[int, None] = {}
    used, minimum = sets.active_used, sets.minimum
    for group, (first, count) in enumerate(
        zip(groups.first_pod_set, groups.pod_set_count, strict=True)
    ):
        if count == 1 and (not used[first] or used[first] >= minimum[first]):
            continue
        if _is_stale(session, group):
            found[group] = None
    return found


def _is_stale(session: Session, group: int) -> bool:
    if not _has_used(session, group):
        return False
    state = session.state
    first = state.pod_groups.first_task[group]
    tasks = range(first, first + state.pod_groups.task_count[group])
    if any(state.tasks.status[task] == TaskStatus.SUCCEEDED for task in tasks):
        return False
    view = session.view(group)
    return not _runs_minimum(session, view, view.root)


def first_shortfall(session: Session, view: GangView) -> tuple[str, int]:
    """Return the name (empty for the default) and minimum of the first pod set that falls short."""
    sets = session.state.pod_groups.pod_sets
    for pod_set in session.state.pod_groups.pod_sets_of(view.pod_group):
        if sets.active_used[pod_set] < sets.minimum[pod_set]:
            name = sets.name[pod_set]
            return ("" if name == "default" else name, sets.minimum[pod_set])
    return ("", 0)


def _strays(session: Session, group: int) -> list[TaskInput]:
    """Return the pods that run for a subgroup the pod group no longer has; alone they are of no use."""
    given = session.state.pod_groups.inputs[group]
    return [task for task in given.invalid_subgroup_tasks if ACTIVE_ALLOCATED[task.status]]


def _has_used(session: Session, group: int) -> bool:
    sets = session.state.pod_groups.pod_sets
    return any(sets.active_used[pod_set] for pod_set in session.state.pod_groups.pod_sets_of(group))


def _runs_minimum(session: Session, view: GangView, member: TreeMember) -> bool:
    """Count tasks that are on nodes, those that are leaving included."""
    if isinstance(member, SubgroupNode):
        complete = sum(_runs_minimum(session, view, inner) for inner in member.members)
        return complete >= view.required_members(member)
    sets = session.state.pod_groups.pod_sets
    return sets.active_used[member.index] >= sets.minimum[member.index]
