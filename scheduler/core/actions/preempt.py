"""Preempt: a pod group takes room from less important ones of its own queue.

Fairness is not asked, since the queue keeps what it holds; priority must be strictly higher.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

from scheduler.core.actions.attempts import Attempts, evict_reason
from scheduler.core.decisions import ActionName, ActionReport, EvictReason
from scheduler.core.placement.place import Placer
from scheduler.core.session.gang import GangView
from scheduler.core.session.session import Session
from scheduler.core.solver.demand import ProbeDemand
from scheduler.core.solver.victims import Batch, VictimPool, VictimSequence


class PreemptAction:
    """Takes room inside a queue."""

    name = ActionName.PREEMPT

    def run(self, session: Session, placer: Placer, report: ActionReport) -> None:
        """Search for every pending pod group."""
        Attempts(session, placer, report, PreemptRules(session)).run()


class PreemptRules:
    """Victims are preemptible pod groups of the same leaf queue with a lower priority."""

    name = ActionName.PREEMPT
    may_lose = True

    def __init__(self, session: Session) -> None:
        self._session = session
        self._view: GangView | None = None

    def asks(self, view: GangView) -> bool:
        """Serve everyone."""
        del view
        return True

    def scope(self, view: GangView) -> object:
        """Compare with failures of the same queue."""
        return view.queue

    def begin(self, view: GangView) -> bool:
        """Nothing stands in the way."""
        self._view = view
        return True

    def may_search(self, view: GangView) -> bool:
        """Work that cannot be preempted must fit into quota before anyone is disturbed for it."""
        if self._session.state.pod_groups.preemptible[view.pod_group]:
            return True
        amount = self._session.gate_amount(view.next_chunk(include_evicted=True))
        return self._session.policy.refuse_non_preemptible(view.queue, amount) is None

    def victims(self, pool: VictimPool, passed_over: frozenset[int]) -> VictimSequence:
        """Take from less important pod groups of the queue."""
        session, asking = self._session, self._view
        if asking is None:
            return VictimSequence(session, pool, (), lambda _: False)
        priority = session.state.pod_groups.priority
        mine = priority[asking.pod_group]
        filters = session.hooks.preempt_victim_filters

        def keeps(view: GangView) -> bool:
            return (
                priority[view.pod_group] < mine
                and view.pod_group != asking.pod_group
                and all(one(view, asking) for one in filters)
            )

        has_lower = pool.lowest_priority(asking.queue) < mine
        leaves = (asking.queue,) if has_lower else ()
        return VictimSequence(session, pool, leaves, keeps, passed_over=passed_over)

    def takeable(self, batches: Sequence[Batch]) -> float:
        """Rules of amounts do not bind inside a queue."""
        del batches
        return inf

    def accepts(self, demand: ProbeDemand, victims: Mapping[int, Sequence[int]]) -> bool:
        """Ask the plugins' validators."""
        taken = [task for tasks in victims.values() for task in tasks]
        return all(one(demand.view, taken) for one in self._session.hooks.preempt_validators)

    def reason(self, victim: int, gang_size: int) -> EvictReason:
        """Name who the room is taken for."""
        del victim
        return evict_reason(self._session, self.name, self._view, gang_size)
