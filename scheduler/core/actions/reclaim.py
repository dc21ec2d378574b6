"""Reclaim: a queue takes back from other queues what it should have by its fair share.

Fair shares decide whether a pod group may search, which queues it may take from, and whether the victims
of a trial are acceptable. What queues held before the search counts. A shard may also let queues of higher
priority take within their quota what siblings of lower priority hold within theirs (ADR 29).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from scheduler.core.actions.attempts import Attempts, evict_reason
from scheduler.core.decisions import ActionName, ActionReport, EvictReason, QueueSide
from scheduler.core.fairshare.reclaimable import Reclaimer
from scheduler.core.fairshare.shares import Holdings
from scheduler.core.placement.place import Placer
from scheduler.core.session.gang import GangView
from scheduler.core.session.session import Session
from scheduler.core.solver.demand import ProbeDemand
from scheduler.core.solver.reclaim_rules import (
    are_losses_allowed,
    holdings_before,
    is_taken_in_quota,
    leaves_with_victims,
    may_start,
    takeable_gpus,
)
from scheduler.core.solver.victims import Batch, VictimPool, VictimSequence

#: CPU, memory and GPUs as a reason shows them.
Triple = tuple[float, float, float]


class ReclaimAction:
    """Takes room from other queues."""

    name = ActionName.RECLAIM

    def run(self, session: Session, placer: Placer, report: ActionReport) -> None:
        """Search for every pending pod group whose queue is below its share."""
        Attempts(session, placer, report, ReclaimRules(session)).run()


class ReclaimRules:
    """Victims are preemptible pod groups of other leaf queues that hold more than their share."""

    name = ActionName.RECLAIM
    may_lose = True

    def __init__(self, session: Session) -> None:
        self._session = session
        #: Queue -> its quota and its fair share, rounded for reasons.
        self._bounds: dict[int, tuple[Triple, Triple]] = {}

    def serves(self, view: GangView) -> bool:
        """Return True: every pod group is served."""
        del view
        return True

    def failure_scope(self, view: GangView) -> int:
        """Count the failures of the same queue."""
        return view.queue

    def begin(self, view: GangView) -> ReclaimAttempt | None:
        """Start if its queue stays within its fair share with the chunk."""
        reclaimer = Reclaimer(
            queue=view.queue,
            required=self._session.requested_by(view.next_chunk(include_evicted=True)),
            preemptible=self._session.is_next_preemptible(view.pod_group),
            by_priority=self._session.config.reclaim_in_quota_by_priority,
        )
        if not may_start(self._session, reclaimer):
            return None
        return ReclaimAttempt(self._session, view, reclaimer, self.side)

    def side(self, queue: int) -> QueueSide:
        """Return what a queue holds now, beside what it may hold."""
        ledger = self._session.policy.ledger
        bounds = self._bounds.get(queue)
        if bounds is None:
            bounds = (_triple(ledger.quotas[queue]), _triple(ledger.fair_shares[queue]))
            self._bounds[queue] = bounds
        return QueueSide(
            name=ledger.display_names[queue],
            allocated=_triple(ledger.allocated[queue]),
            quota=bounds[0],
            fair_share=bounds[1],
            priority=ledger.priorities[queue],
        )


class ReclaimAttempt:
    """The rules for one reclaimer."""

    def __init__(
        self,
        session: Session,
        view: GangView,
        reclaimer: Reclaimer,
        side: Callable[[int], QueueSide],
    ) -> None:
        self._side = side
        self._session = session
        self._view = view
        self._reclaimer = reclaimer
        #: What the queues concerned held before anything was tried; set by `victims`.
        self._before: Holdings
        #: victim queue -> reason of its latest victim
        self._reasons: dict[int, EvictReason] = {}

    def may_search(self) -> bool:
        """Return True: every reclaimer may search."""
        return True

    def victims(self, pool: VictimPool, passed_over: frozenset[int]) -> VictimSequence:
        """Take from other queues that hold more than their share."""
        session, reclaimer = self._session, self._view
        leaves = leaves_with_victims(session, self._reclaimer, pool.leaves)
        self._before = holdings_before(session, [self._reclaimer.queue, *leaves])
        self._reasons.clear()
        filters = session.hooks.reclaim_victim_filters

        def may_evict(view: GangView) -> bool:
            return all(allows(view, reclaimer) for allows in filters)

        return VictimSequence(session, pool, leaves, may_evict, passed_over=passed_over)

    def takeable(self, batches: Sequence[Batch]) -> float:
        """Bound by what queues hold above their share, and one chunk more each."""
        return takeable_gpus(self._session, self._reclaimer, batches)

    def accepts(self, demand: ProbeDemand, victims: Mapping[int, Sequence[int]]) -> bool:
        """Return whether fair shares and the plugins' validators allow the victims."""
        reclaimer = self._reclaimer
        if demand.required != reclaimer.required:
            reclaimer = replace(reclaimer, required=demand.required)
        if not are_losses_allowed(self._session, self._before, reclaimer, victims):
            return False
        validators = self._session.hooks.reclaim_validators
        if not validators:
            return True
        evicted = [task for tasks in victims.values() for task in tasks]
        return all(is_valid(demand.view, evicted) for is_valid in validators)

    def reason(self, victim: int, gang_size: int) -> EvictReason:
        """Name the reclaimer, and what both sides hold."""
        queue = self._session.state.pod_groups.queue[self._session.state.tasks.pod_group[victim]]
        reason = self._reasons.get(queue)
        if reason is None:
            victim_side, evictor_side = self._sides(queue)
            reason = self._reasons[queue] = evict_reason(
                self._session,
                ActionName.RECLAIM,
                self._view,
                gang_size,
                victim_side=victim_side,
                evictor_side=evictor_side,
                in_quota=is_taken_in_quota(self._session, self._before, self._reclaimer, queue),
            )
        if reason.gang_size != gang_size:
            reason = self._reasons[queue] = replace(reason, gang_size=gang_size)
        return reason

    def _sides(self, victim_queue: int) -> tuple[QueueSide, QueueSide]:
        """Return both queues if they are siblings, else the parent of each."""
        ledger = self._session.policy.ledger
        queue = self._reclaimer.queue
        if ledger.parents[queue] != ledger.parents[victim_queue]:
            queue, victim_queue = (
                ledger.parents[index] if ledger.parents[index] >= 0 else index
                for index in (queue, victim_queue)
            )
        return self._side(victim_queue), self._side(queue)


def _triple(amounts: Sequence[float]) -> Triple:
    """Return CPU, memory and GPUs, rounded: the order in which pods were summed must not show in a reason."""
    return (round(amounts[0], 6), round(amounts[1], 6), round(amounts[2], 6))
