"""Rules about evictions: somebody gets the room, and needs all of it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from scheduler.core.cluster.inputs import PodGroupInput
from scheduler.core.decisions import ActionName, Bind, Evict, Nominate
from tests.scheduler.fuzz.cycles import Finding, Played, Pod
from tests.scheduler.fuzz.exact import bounds, exceeds, overdrawn
from tests.scheduler.fuzz.queues import Books
from tests.scheduler.fuzz.room import foreign_holders


def evictions_have_an_evictor(played: Played) -> Iterator[Finding]:
    """Whoever evicts gets a place in the same cycle."""
    served = {
        decision.pod_group
        for decision in played.session.decisions
        if isinstance(decision, Bind | Nominate)
    }
    for eviction in played.evictions:
        reason = eviction.reason
        if reason.action != ActionName.STALE_GANG_EVICTION and reason.evictor not in served:
            text = f"{eviction.task.name} went for {reason.evictor}, which got nothing"
            yield Finding("evicted for nobody", text)


def nothing_is_bound_and_evicted(played: Played) -> Iterator[Finding]:
    """A pod that a cycle binds stays there in that cycle."""
    bound = {each.task.name for each in played.session.decisions if isinstance(each, Bind)}
    for eviction in played.evictions:
        if eviction.task.name in bound:
            text = f"{eviction.task.name} by {eviction.reason.action} for {eviction.reason.evictor}"
            yield Finding("bound and evicted in one cycle", text)


def evictions_are_needed(played: Played) -> Iterator[Finding]:
    """The pods that a pod group lost to the last evictor could not all have stayed where they were.

    What earlier evictors of the cycle took may become needless when a later one makes more room.
    """
    for group, pods in _victims_of_last_evictor(played, is_moved=False):
        if not _overdraws_nodes(played, pods) and not _passes_bounds(played, pods):
            names = [pod.name for pod in pods]
            yield Finding("evicted needlessly", f"{group} lost {names}, and nobody uses the room")


def moves_are_needed(played: Played) -> Iterator[Finding]:
    """The pods of a pod group that the last evictor moved could not all have stayed where they were.

    A pod that asks for GPU memory takes less of its queue's limit on a larger device.
    """
    for group, pods in _victims_of_last_evictor(played, is_moved=True):
        if not _overdraws_nodes(played, pods) and not _passes_bounds(played, pods):
            names = [f"{pod.name} {pod.home}->{pod.node}" for pod in pods]
            yield Finding("moved needlessly", f"{group} moved {names}, and nobody uses the room")


def _victims_of_last_evictor(played: Played, *, is_moved: bool) -> list[tuple[str, list[Pod]]]:
    """Return what the last search took, by pod group, without pods that this cycle bound.

    An evictor that grows may be served by several actions, one search each.
    Nothing where more than room and queues decides: topology, terms about other pods. Nor where a later search
    took the place that an earlier one had promised, which evicts nobody but makes room too.
    """
    evictions = [e for e in played.evictions if e.reason.action != ActionName.STALE_GANG_EVICTION]
    if not evictions or any(_is_choosy(group) for group in played.cluster.pod_groups):
        return []
    if _breaks_a_promise(played):
        return []
    victims: dict[str, list[Pod]] = defaultdict(list)
    for eviction in evictions:
        pod = played.pods[eviction.task.name]
        is_last = _search_of(eviction) == _search_of(evictions[-1])
        if is_last and pod.home and bool(eviction.moved_to) == is_moved:
            victims[eviction.pod_group].append(pod)
    return sorted(victims.items())


def _breaks_a_promise(played: Played) -> bool:
    return any(
        not played.pods[each.task.name].holds_after
        for each in played.session.decisions
        if isinstance(each, Nominate)
    )


def _search_of(eviction: Evict) -> tuple[ActionName, str]:
    return eviction.reason.action, eviction.reason.evictor


def _is_choosy(group: PodGroupInput) -> bool:
    constraints = [task.constraints for task in group.tasks]
    if any(each.pod_affinity or each.pod_anti_affinity for each in constraints):
        return True
    return group.root.topology is not None and bool(group.root.topology.required_level)


def _overdraws_nodes(played: Played, back: list[Pod]) -> bool:
    """Return whether a node would be overdrawn if these pods stayed at home."""
    holders, returning = foreign_holders(played), {pod.name for pod in back}
    for pod in played.pods.values():
        if pod.name in returning:
            holders[pod.home].append((pod.request, pod.gpu_groups_before))
        elif pod.holds_after and pod.node:
            holders[pod.node].append((pod.request, pod.gpu_groups))
    return any(overdrawn(node, holders[node.name]) for node in played.cluster.nodes)


def _passes_bounds(played: Played, back: list[Pod]) -> bool:
    """Return whether a queue would pass its limit if these pods stayed."""
    books = Books.opened(played)
    books.close()
    for pod in back:
        if pod.holds_after and pod.node:
            books.charge(pod, pod.node, -1)
        books.charge(pod, pod.home)
    return any(
        exceeds(books.held[name], bounds(books.queues[name], "limit"))
        for pod in back
        for name in books.paths[pod.queue]
    )


@dataclass(slots=True)
class RepeatedEvictions:
    """Follows a cluster over cycles and reports pods that are evicted twice for the same evictor.

    An evictor that has run since may need room again, and newcomers or work that ended change what is
    right, so these end what is counted.
    """

    taken: Counter[tuple[str, str]] = field(default_factory=Counter)

    def watch(self, played: Played, *, is_disturbed: bool) -> Iterator[Finding]:
        """Look at one more cycle."""
        if is_disturbed:
            self.taken.clear()
        for eviction in played.evictions:
            reason = eviction.reason
            if reason.action not in (ActionName.RECLAIM, ActionName.PREEMPT) or eviction.moved_to:
                continue
            pair = (eviction.task.name, reason.evictor)
            self.taken[pair] += 1
            if self.taken[pair] > 1:
                yield Finding("evicted twice for one evictor", f"{pair[0]} again for {pair[1]}")
        for pair in list(self.taken):
            if all(pod.held_before for pod in played.pods_of(pair[1])):
                del self.taken[pair]
