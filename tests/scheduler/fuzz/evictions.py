"""Rules about evictions: the evictor gets a place, and needs the room of all its victims."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from scheduler.core.cluster.inputs import PodGroupInput
from scheduler.core.decisions import ActionName, Bind, Evict, Nominate
from tests.scheduler.fuzz.cycles import CycleRun, Finding, Pod
from tests.scheduler.fuzz.exact import bounds, exceeds, overdrawn
from tests.scheduler.fuzz.queues import QueueAccounts
from tests.scheduler.fuzz.room import foreign_holders


def evictions_have_an_evictor(cycle_run: CycleRun) -> Iterator[Finding]:
    """A pod group that pods are evicted for gets a place in the same cycle."""
    served = {
        decision.pod_group
        for decision in cycle_run.session.decisions
        if isinstance(decision, Bind | Nominate)
    }
    for eviction in cycle_run.evictions:
        reason = eviction.reason
        if reason.action != ActionName.STALE_GANG_EVICTION and reason.evictor not in served:
            text = f"{eviction.task.name} was evicted for {reason.evictor}, which got no place"
            yield Finding("evicted for nobody", text)


def nothing_is_bound_and_evicted(cycle_run: CycleRun) -> Iterator[Finding]:
    """A pod that a cycle binds stays there in that cycle."""
    bound = {
        decision.task.name for decision in cycle_run.session.decisions if isinstance(decision, Bind)
    }
    for eviction in cycle_run.evictions:
        if eviction.task.name in bound:
            text = f"{eviction.task.name} by {eviction.reason.action} for {eviction.reason.evictor}"
            yield Finding("bound and evicted in one cycle", text)


def evictions_are_needed(cycle_run: CycleRun) -> Iterator[Finding]:
    """The pods that a pod group lost to the last evictor could not all have stayed where they were.

    What earlier evictors of the cycle took may become needless when a later one makes more room.
    """
    for group, pods in _victims_of_last_evictor(cycle_run, is_moved=False):
        if not _overdraws_nodes(cycle_run, pods) and not _exceeds_limits(cycle_run, pods):
            names = [pod.name for pod in pods]
            yield Finding("evicted needlessly", f"{group} lost {names}, and nobody uses the room")


def moves_are_needed(cycle_run: CycleRun) -> Iterator[Finding]:
    """The pods of a pod group that the last evictor moved could not all have stayed where they were.

    A pod that asks for GPU memory takes less of its queue's limit on a larger device.
    """
    for group, pods in _victims_of_last_evictor(cycle_run, is_moved=True):
        if not _overdraws_nodes(cycle_run, pods) and not _exceeds_limits(cycle_run, pods):
            names = [f"{pod.name} {pod.home}->{pod.node}" for pod in pods]
            yield Finding("moved needlessly", f"{group} moved {names}, and nobody uses the room")


def _victims_of_last_evictor(cycle_run: CycleRun, *, is_moved: bool) -> list[tuple[str, list[Pod]]]:
    """Return the victims of the last search, by pod group, without pods that this cycle bound.

    An elastic evictor may be served by several actions, each with a search of its own. The result is empty
    where more than room and queues decides (topology, pod affinity), and where a later search took the place
    that an earlier one had promised: that evicts nobody, but makes room too.
    """
    evictions = [
        e for e in cycle_run.evictions if e.reason.action != ActionName.STALE_GANG_EVICTION
    ]
    if not evictions or any(_has_placement_rules(group) for group in cycle_run.cluster.pod_groups):
        return []
    if _breaks_a_promise(cycle_run):
        return []
    victims: dict[str, list[Pod]] = defaultdict(list)
    for eviction in evictions:
        pod = cycle_run.pods[eviction.task.name]
        is_last = _search_of(eviction) == _search_of(evictions[-1])
        if is_last and pod.home and bool(eviction.moved_to) == is_moved:
            victims[eviction.pod_group].append(pod)
    return sorted(victims.items())


def _breaks_a_promise(cycle_run: CycleRun) -> bool:
    return any(
        not cycle_run.pods[decision.task.name].holds_after
        for decision in cycle_run.session.decisions
        if isinstance(decision, Nominate)
    )


def _search_of(eviction: Evict) -> tuple[ActionName, str]:
    return eviction.reason.action, eviction.reason.evictor


def _has_placement_rules(group: PodGroupInput) -> bool:
    constraints = [task.constraints for task in group.tasks]
    if any(constraint.pod_affinity or constraint.pod_anti_affinity for constraint in constraints):
        return True
    return group.root.topology is not None and bool(group.root.topology.required_level)


def _overdraws_nodes(cycle_run: CycleRun, returning: list[Pod]) -> bool:
    """Return whether a node would be overdrawn if these pods stayed at home."""
    holders, names = foreign_holders(cycle_run), {pod.name for pod in returning}
    for pod in cycle_run.pods.values():
        if pod.name in names:
            holders[pod.home].append((pod.request, pod.gpu_groups_before))
        elif pod.holds_after and pod.node:
            holders[pod.node].append((pod.request, pod.gpu_groups))
    return any(overdrawn(node, holders[node.name]) for node in cycle_run.cluster.nodes)


def _exceeds_limits(cycle_run: CycleRun, returning: list[Pod]) -> bool:
    """Return whether a queue would exceed its limit if these pods stayed at home."""
    accounts = QueueAccounts.before_cycle(cycle_run)
    accounts.recount_after_cycle()
    for pod in returning:
        if pod.holds_after and pod.node:
            accounts.charge(pod, pod.node, -1)
        accounts.charge(pod, pod.home)
    return any(
        exceeds(accounts.held[name], bounds(accounts.queues[name], "limit"))
        for pod in returning
        for name in accounts.paths[pod.queue]
    )


@dataclass(slots=True)
class RepeatedEvictions:
    """Follows a cluster over cycles and reports pods that are evicted twice for the same evictor.

    Counting starts anew for an evictor that ran in between, because it may need room again, and for all pods
    after work arrived or ended, because another choice may be right then.

    Attributes
    ----------
    counts : how often a pod was evicted for an evictor, by (pod, evictor)
    """

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)

    def watch(self, cycle_run: CycleRun, *, is_disturbed: bool) -> Iterator[Finding]:
        """Count the evictions of one more cycle; `is_disturbed` if work arrived or ended before it."""
        if is_disturbed:
            self.counts.clear()
        for eviction in cycle_run.evictions:
            reason = eviction.reason
            if reason.action not in (ActionName.RECLAIM, ActionName.PREEMPT) or eviction.moved_to:
                continue
            pair = (eviction.task.name, reason.evictor)
            self.counts[pair] += 1
            if self.counts[pair] > 1:
                yield Finding("evicted twice for one evictor", f"{pair[0]} again for {pair[1]}")
        for pair in list(self.counts):
            if all(pod.held_before for pod in cycle_run.pods_of(pair[1])):
                del self.counts[pair]
