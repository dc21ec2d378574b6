"""Reclaim: a queue takes back from other queues what fairness says it should have.

Whether the pod group may look at all, which queues it may look at and whether the victims of a trial
are just is decided on fair shares; the state of queues from before the search counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    holdings_before,
    is_just,
    leaves_with_victims,
    may_start,
    takeable_gpus,
)
from scheduler.core.solver.victims import Batch, VictimPool, VictimSequence


class ReclaimAction:
    """Takes room from other queues."""

    name = ActionName.RECLAIM

    def run(self, session: Session, placer: Placer, report: ActionReport) -> None:
        """Search for every pending pod group whose queue is below its share."""
        Attempts(session, placer, report, ReclaimRules(session)).run()


class ReclaimRules:
    """Victims are preemptible pod groups of other leaf queues that hold more than their due."""

    name = ActionName.RECLAIM
    may_lose = True

    def __init__(self, session: Session) -> None:
        self._session = session
        self._view: GangView | None = None
        self._reclaimer = Reclaimer(queue=-1, required=(0.0, 0.0, 0.0), preemptible=True)
        self._leaves: list[int] = []
        self._before = Holdings(allocated=(), allocated_non_preemptible=())
        self._reasons: dict[int, EvictReason] = {}

    def asks(self, view: GangView) -> bool:
        """Serve everyone."""
        del view
        return True

    def scope(self, view: GangView) -> object:
        """Compare with failures of the same queue."""
        return view.queue

    def begin(self, view: GangView) -> bool:
        """Its queue must stay within its fair share with the chunk."""
        self._view = view
        self._reclaimer = Reclaimer(
            queue=view.queue,
            required=self._session.requested_by(view.next_chunk(include_evicted=True)),
            preemptible=self._session.state.pod_groups.preemptible[view.pod_group],
        )
        return may_start(self._session, self._reclaimer)

    def may_search(self, view: GangView) -> bool:
        """Nothing more stands in the way."""
        del view
        return True

    def victims(self, pool: VictimPool, passed_over: frozenset[int]) -> VictimSequence:
        """Take from other queues that hold more than their due."""
        session, asking = self._session, self._view
        self._leaves = leaves_with_victims(session, self._reclaimer, pool.leaves)
        self._before = holdings_before(session, [self._reclaimer.queue, *self._leaves])
        self._reasons.clear()
        filters = session.hooks.reclaim_victim_filters

        def keeps(view: GangView) -> bool:
            return asking is None or all(one(view, asking) for one in filters)

        return VictimSequence(session, pool, self._leaves, keeps, passed_over=passed_over)

    def takeable(self, batches: Sequence[Batch]) -> float:
        """Queues lose only what they hold beyond their due, and one chunk more."""
        return takeable_gpus(self._session, self._reclaimer, batches)

    def accepts(self, demand: ProbeDemand, victims: Mapping[int, Sequence[int]]) -> bool:
        """The losers must be just, and acceptable to the plugins."""
        reclaimer = replace(self._reclaimer, required=demand.required)
        if not is_just(self._session, self._before, reclaimer, victims):
            return False
        validators = self._session.hooks.reclaim_validators
        if not validators:
            return True
        taken = [task for tasks in victims.values() for task in tasks]
        return all(one(demand.view, taken) for one in validators)

    def reason(self, victim: int, gang_size: int) -> EvictReason:
        """Name who the room is taken for, and what both sides hold."""
        queue = self._session.state.pod_groups.queue[self._session.state.tasks.pod_group[victim]]
        found = self._reasons.get(queue)
        if found is None:
            plain = evict_reason(self._session, self.name, self._view, gang_size)
            victim_side, evictor_side = self._sides(queue)
            found = replace(plain, victim_side=victim_side, evictor_side=evictor_side)
            self._reasons[queue] = found
        if found.gang_size != gang_size:
            found = self._reasons[queue] = replace(found, gang_size=gang_size)
        return found

    def _sides(self, victim_queue: int) -> tuple[QueueSide, QueueSide]:
        """Return both queues if they are siblings, else the parent of each."""
        ledger = self._session.policy.ledger
        mine = self._reclaimer.queue
        if ledger.parents[mine] != ledger.parents[victim_queue]:
            mine, victim_queue = (
                ledger.parents[queue] if ledger.parents[queue] >= 0 else queue
                for queue in (mine, victim_queue)
            )
        return self._side(victim_queue), self._side(mine)

    def _side(self, queue: int) -> QueueSide:
        ledger = self._session.policy.ledger
        return QueueSide(
            name=ledger.display_names[queue],
            allocated=_triple(ledger.allocated[queue]),
            quota=_triple(ledger.quotas[queue]),
            fair_share=_triple(ledger.fair_shares[queue]),
            priority=ledger.priorities[queue],
        )


def _triple(amounts: Sequence[float]) -> tuple[float, float, float]:
    return (amounts[0], amounts[1], amounts[2])
