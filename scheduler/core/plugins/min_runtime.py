"""Minimum runtime: a pod group that has just started is safe from preempt and reclaim for a while.

Queues set how long. For preempt the nearest value upward from the victim's queue counts. For reclaim, by
default, the values between the victim's queue and the lowest common ancestor of both queues count, so that
a team may protect its pod groups longer from other teams than from its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from scheduler.core.cluster.status import ACTIVE_ALLOCATED
from scheduler.core.errors import ConfigError
from scheduler.core.plugins.spec import ArgumentTexts
from scheduler.core.session.gang import GangView
from scheduler.core.session.session import Session
from scheduler.core.times import elapsed_s

#: Minimum runtimes of queues in seconds, None where a queue sets none.
Values = Sequence[float | None]
#: For each queue its own index and those of its ancestors, leaf to root.
Paths = Sequence[Sequence[int]]


def preempt_min_runtime(paths: Paths, values: Values, victim: int, default_s: float) -> float:
    """Return the nearest value from the victim's queue upward, else the default."""
    return _nearest(paths[victim], values, default_s)


def reclaim_min_runtime(
    paths: Paths, values: Values, reclaimer: int, victim: int, default_s: float
) -> float:
    """Return the protection of a victim queue against another one, by their lowest common ancestor.

    Parameters
    ----------
    paths, values : of all queues
    reclaimer, victim : leaf queues

    Returns
    -------
    seconds: the first value from the victim's side child of the lowest common ancestor upward; in
    different trees only the top queue of the victim counts
    """
    reclaimer_path, victim_path = paths[reclaimer], paths[victim]
    if reclaimer_path[-1] != victim_path[-1]:
        return _nearest(victim_path[-1:], values, default_s)
    ancestors = set(reclaimer_path)
    common = next(index for index, queue in enumerate(victim_path) if queue in ancestors)
    return _nearest(victim_path[max(common - 1, 0) :], values, default_s)


def _nearest(path: Sequence[int], values: Values, default_s: float) -> float:
    for queue in path:
        value = values[queue]
        if value is not None:
            return value
    return default_s


@dataclass(frozen=True, slots=True, kw_only=True)
class MinRuntimeArguments:
    """How long a started pod group is safe from preempt and reclaim, where no queue sets it."""

    default_preempt_s: float = 0.0
    default_reclaim_s: float = 0.0
    reclaim_resolve_method: str = "lca"

    def __post_init__(self) -> None:
        """Refuse negative times and unknown methods."""
        for name in ("default_preempt_s", "default_reclaim_s"):
            if getattr(self, name) < 0:
                raise ConfigError(
                    f"minruntime.{name}: expected 0 or more, got {getattr(self, name)}"
                )
        if self.reclaim_resolve_method not in ("lca", "queue"):
            raise ConfigError(
                f"minruntime.reclaimResolveMethod: expected lca or queue, "
                f"got {self.reclaim_resolve_method!r}"
            )

    @classmethod
    def parse(cls, texts: ArgumentTexts) -> MinRuntimeArguments:
        """Return the arguments of a configuration; what it does not name has its default."""
        return cls(
            default_preempt_s=texts.seconds("defaultPreemptMinRuntime", 0.0),
            default_reclaim_s=texts.seconds("defaultReclaimMinRuntime", 0.0),
            reclaim_resolve_method=texts.text("reclaimResolveMethod", "lca"),
        )


class MinRuntimePlugin:
    """Excludes protected pod groups from the victims; elastic ones keep at least their gang."""

    def __init__(self, arguments: MinRuntimeArguments) -> None:
        self._arguments = arguments

    def open(self, session: Session) -> None:
        """Register filters and validators for both actions."""
        self._session = session
        inputs = session.state.queues.inputs
        self._preempt: Values = [queue.preempt_min_runtime_s for queue in inputs]
        self._reclaim: Values = [queue.reclaim_min_runtime_s for queue in inputs]
        if self._is_idle():
            return
        hooks = session.hooks
        hooks.preempt_victim_filters.append(self._may_preempt)
        hooks.reclaim_victim_filters.append(self._may_reclaim)
        hooks.preempt_validators.append(self._keeps_gangs_in_preempt)
        hooks.reclaim_validators.append(self._keeps_gangs_in_reclaim)

    def _is_idle(self) -> bool:
        """Return whether no pod group is protected, so that no hook is needed."""
        return not (
            any(self._preempt)
            or any(self._reclaim)
            or self._arguments.default_preempt_s
            or self._arguments.default_reclaim_s
        )

    def _preempt_s(self, victim: int) -> float:
        paths = self._session.policy.ledger.paths
        return preempt_min_runtime(paths, self._preempt, victim, self._arguments.default_preempt_s)

    def _reclaim_s(self, reclaimer: int, victim: int) -> float:
        paths = self._session.policy.ledger.paths
        default_s = self._arguments.default_reclaim_s
        if self._arguments.reclaim_resolve_method == "queue":
            return _nearest(paths[victim], self._reclaim, default_s)
        return reclaim_min_runtime(paths, self._reclaim, reclaimer, victim, default_s)

    def _is_protected(self, pod_group: int, min_runtime_s: float) -> bool:
        started = self._session.state.pod_groups.last_start[pod_group]
        return started is not None and elapsed_s(started, self._session.state.now) < min_runtime_s

    def _may_preempt(self, victim: GangView, evictor: GangView) -> bool:
        del evictor
        return not self._is_protected(victim.pod_group, self._preempt_s(victim.queue)) or (
            victim.is_elastic()
        )

    def _may_reclaim(self, victim: GangView, evictor: GangView) -> bool:
        min_runtime_s = self._reclaim_s(evictor.queue, victim.queue)
        return not self._is_protected(victim.pod_group, min_runtime_s) or victim.is_elastic()

    def _keeps_gangs_in_preempt(self, evictor: GangView, victims: Sequence[int]) -> bool:
        del evictor
        queue_of = self._session.state.pod_groups.queue
        return self._keeps_gangs(victims, lambda pod_group: self._preempt_s(queue_of[pod_group]))

    def _keeps_gangs_in_reclaim(self, evictor: GangView, victims: Sequence[int]) -> bool:
        queue_of = self._session.state.pod_groups.queue
        return self._keeps_gangs(
            victims, lambda pod_group: self._reclaim_s(evictor.queue, queue_of[pod_group])
        )

    def _keeps_gangs(self, victims: Sequence[int], min_runtime_of: _MinRuntimeOf) -> bool:
        """Return whether protected pod groups keep their minimum; moved victims count as lost.

        KAI counts tasks that are being evicted already as remaining, so that two evictors of one cycle
        could each take a task and together break a protected gang.
        """
        tasks, sets = self._session.state.tasks, self._session.state.pod_groups.pod_sets
        remaining: dict[int, int] = {}
        for task in victims:
            pod_set = tasks.pod_set[task]
            count = remaining.setdefault(pod_set, sets.active_allocated[pod_set])
            if ACTIVE_ALLOCATED[tasks.status[task]]:
                remaining[pod_set] = count - 1
        return not any(
            count < sets.minimum[pod_set]
            and self._is_protected(sets.pod_group[pod_set], min_runtime_of(sets.pod_group[pod_set]))
            for pod_set, count in remaining.items()
        )


class _MinRuntimeOf(Protocol):
    """Seconds a pod group is protected."""

    def __call__(self, pod_group: int, /) -> float:
        """Return the seconds."""
        ...
