"""Preempt: a pod group takes room from pod groups of its own queue that have a lower priority.

Fair shares are not checked, since the queue keeps what it holds.
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
    """The action that takes room inside a queue."""

    name = ActionName.PREEMPT

    def run(self, session: Session, placer: Placer, report: ActionReport) -> None:
        """Search victims for each pending pod group in turn."""
        Attempts(session, placer, report, PreemptRules(session)).run()


class PreemptRules:
    """Victims are preemptible pod groups of the same leaf queue with a lower priority."""

    name = ActionName.PREEMPT
    #: A victim may end without a new place.
    may_lose = True

    def __init__(self, session: Session) -> None:
        self._session = session

    def serves(self, view: GangView) -> bool:
        """Return True: every pod group is served."""
        del view
        return True

    def failure_scope(self, view: GangView) -> int:
        """Return the queue of the pod group: only failed searches in it count."""
        return view.queue

    def begin(self, view: GangView) -> PreemptAttempt:
        """Return the rules for one pod group; preemption has them for every pod group."""
        return PreemptAttempt(self._session, view)


class PreemptAttempt:
    """The rules for one preemptor."""

    def __init__(self, session: Session, preemptor: GangView) -> None:
        self._session = session
        self._preemptor = preemptor

    def may_search(self) -> bool:
        """Return whether a non-preemptible pod group fits into the quota; a preemptible one always may search."""
        preemptor = self._preemptor
        if self._session.is_next_preemptible(preemptor.pod_group):
            return True
        amount = self._session.gate_amount(preemptor.next_chunk(include_evicted=True))
        return self._session.policy.refuse_over_quota(preemptor.queue, amount) is None

    def victims(self, pool: VictimPool, passed_over: frozenset[int]) -> VictimSequence:
        """Return the tasks of pod groups in the same queue that have a lower priority."""
        session, preemptor = self._session, self._preemptor
        priority = session.state.pod_groups.priority
        own_priority = priority[preemptor.pod_group]
        filters = session.hooks.preempt_victim_filters

        def may_evict(view: GangView) -> bool:
            return (
                priority[view.pod_group] < own_priority
                and view.pod_group != preemptor.pod_group
                and all(victim_filter(view, preemptor) for victim_filter in filters)
            )

        has_lower = pool.lowest_priority(preemptor.queue) < own_priority
        leaves = (preemptor.queue,) if has_lower else ()
        return VictimSequence(session, pool, leaves, may_evict, passed_over=passed_over)

    def takeable(self, batches: Sequence[Batch]) -> float:
        """Return infinity: inside a queue no rule limits how many GPUs may be evicted."""
        del batches
        return inf

    def accepts(self, demand: ProbeDemand, victims: Mapping[int, Sequence[int]]) -> bool:
        """Return whether the plugins' validators accept the victims."""
        victim_tasks = [task for tasks in victims.values() for task in tasks]
        validators = self._session.hooks.preempt_validators
        return all(validator(demand.view, victim_tasks) for validator in validators)

    def reason(self, victim: int, gang_size: int) -> EvictReason:
        """Return a reason that names the preemptor."""
        del victim
        return evict_reason(self._session, ActionName.PREEMPT, self._preemptor, gang_size)
