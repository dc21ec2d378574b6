"""Rules over many cycles: nobody is evicted twice for one evictor, promised room is kept, evictions end."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from scheduler.core.cluster.status import TaskStatus
from scheduler.core.decisions import ActionName, Bind, Evict, Nominate
from scheduler.core.session.session import Session
from scheduler.tools.simulate.living import LivingCluster


@dataclass(frozen=True, slots=True)
class Promise:
    """How many tasks of a pod group shall run, since which cycle."""

    since: int
    running: int


@dataclass(slots=True)
class Watch:
    """What happened so far in a living cluster, and which rules it broke.

    What an eviction made room for is promised to the evictor: until as many of its tasks run, every cycle nominates
    or binds some of them, or serves a pod group of higher priority in its queue. A disturbance - somebody new, somebody gone - ends promises and counts, because newcomers
    may be entitled to the room.

    Attributes
    ----------
    evictions : of each cycle
    broken : what went against a rule, with the cycle
    """

    evictions: list[int] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    evicted: Counter[str] = field(default_factory=Counter)
    _taken: Counter[tuple[str, str]] = field(default_factory=Counter)
    _promised: dict[str, Promise] = field(default_factory=dict)

    def look(self, here: LivingCluster, session: Session, *, is_disturbed: bool = False) -> None:
        """Judge one more cycle, after its decisions were applied."""
        session.state.validate()
        if is_disturbed:
            self._taken.clear()
            self._promised.clear()
        cycle = len(self.evictions)
        evictions = [decision for decision in session.decisions if isinstance(decision, Evict)]
        self.evictions.append(len(evictions))
        self._count(evictions, cycle)
        served = _served(session)
        for group, promise in list(self._promised.items()):
            if running_count(here, group) >= promise.running:
                del self._promised[group]
            elif group not in served:
                del self._promised[group]
                if _is_outranked(here, session, group):
                    continue
                self.broken.append(f"cycle {cycle}: {group} lost the room of {promise.since}")
        for eviction in evictions:
            evictor = eviction.reason.evictor
            if eviction.reason.action is not ActionName.STALE_GANG_EVICTION:
                tasks = running_count(here, evictor) + served[evictor]
                self._promised.setdefault(evictor, Promise(cycle, tasks))
        self._forget_running(here)

    def _count(self, evictions: list[Evict], cycle: int) -> None:
        for eviction in evictions:
            reason = eviction.reason
            self.evicted[eviction.task.uid] += 1
            if reason.action not in (ActionName.RECLAIM, ActionName.PREEMPT) or eviction.moved_to:
                continue
            pair = (eviction.task.uid, reason.evictor)
            self._taken[pair] += 1
            if self._taken[pair] > 1:
                self.broken.append(f"cycle {cycle}: {pair[0]} was evicted again for {pair[1]}")

    def _forget_running(self, here: LivingCluster) -> None:
        running = {name for name in here.groups if here.is_running(name)}
        for pair in [pair for pair in self._taken if pair[1] in running]:
            del self._taken[pair]


def _served(session: Session) -> Counter[str]:
    """Return how many tasks of each pod group wait for promised room."""
    return Counter(
        decision.pod_group for decision in session.decisions if isinstance(decision, Nominate)
    )


def _is_outranked(here: LivingCluster, session: Session, group: str) -> bool:
    """Return whether the cycle served a pod group of higher priority in the same queue."""
    own = here.groups[group]
    served = {
        decision.pod_group
        for decision in session.decisions
        if isinstance(decision, Bind | Nominate)
    }
    others = [here.groups[name] for name in served if name in here.groups]
    return any(other.queue == own.queue and other.priority > own.priority for other in others)


def running_count(here: LivingCluster, group: str) -> int:
    """Return how many tasks of a pod group run."""
    tasks = here.groups[group].tasks if group in here.groups else ()
    return sum(here.places[task.uid].status is TaskStatus.RUNNING for task in tasks)


def running_tasks(here: LivingCluster) -> set[str]:
    """Return the uids of the tasks that run."""
    return {uid for uid, place in here.places.items() if place.status is TaskStatus.RUNNING}
