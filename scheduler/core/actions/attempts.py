"""The loop that consolidation, reclaim and preempt share: one search per pending pod group.

Pod groups come in the order of queues. A pod group is skipped if no eviction can help it, or if a similar
one that asked for no more has failed. A solution stays in the session, so that later pod groups and
actions see it. A search that ran out of time ends the action.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from scheduler.core.actions.base import pending_views
from scheduler.core.decisions import ActionName, ActionReport, EvictReason, QueueSide
from scheduler.core.placement.place import Placer
from scheduler.core.placement.reservations import room_available_to
from scheduler.core.session.fit import (
    DelayRefusal,
    DisruptionRefusal,
    GangShortfall,
    GroupFit,
    GroupReason,
)
from scheduler.core.session.gang import GangView
from scheduler.core.session.order import GroupOrder
from scheduler.core.session.session import Session
from scheduler.core.solver.budget import ActionBudget, GroupBudget, SearchResult
from scheduler.core.solver.demand import ProbeDemand
from scheduler.core.solver.exchange import Exchange
from scheduler.core.solver.search import Search, SearchTask
from scheduler.core.solver.signatures import FailedSearches
from scheduler.core.solver.trial import TrialRunner
from scheduler.core.solver.turns import PendingTable
from scheduler.core.solver.victims import Batch, VictimPool, VictimSequence
from scheduler.core.times import remaining_s


class EvictionRules(Protocol):
    """What makes an evicting action this action; a new object for each run of it."""

    name: ActionName
    #: Whether any victim may end without a place.
    may_lose: bool

    def serves(self, view: GangView) -> bool:
        """Return whether the action searches for such a pod group at all."""
        ...

    def failure_scope(self, view: GangView) -> int | None:
        """Return the queue whose failed searches count for the pod group; None: those of all queues."""
        ...

    def begin(self, view: GangView) -> Attempt | None:
        """Return the rules for one pod group; None if it may not evict or a search is not worth it."""
        ...


class Attempt(Protocol):
    """The rules of an action, applied to the one pod group that wants room."""

    def may_search(self) -> bool:
        """Return whether the search may start; called only if no similar pod group has failed."""
        ...

    def victims(self, pool: VictimPool, passed_over: frozenset[int]) -> VictimSequence:
        """Return the tasks that may be evicted, in order."""
        ...

    def takeable(self, batches: Sequence[Batch]) -> float:
        """Return an exclusive upper bound on the GPUs that may be evicted together."""
        ...

    def accepts(self, demand: ProbeDemand, victims: Mapping[int, Sequence[int]]) -> bool:
        """Return whether the outcome of the trial under way is acceptable."""
        ...

    def reason(self, victim: int, gang_size: int) -> EvictReason:
        """Return why a task would be evicted; called before anything is evicted."""
        ...


@dataclass(frozen=True, slots=True)
class _SearchContext:
    """What all searches of one action share."""

    pool: VictimPool
    pending: PendingTable
    runner: TrialRunner
    exchange: Exchange


class Attempts:
    """One run of one evicting action."""

    def __init__(
        self, session: Session, placer: Placer, report: ActionReport, rules: EvictionRules
    ) -> None:
        self._session = session
        self._placer = placer
        self._report = report
        self._rules = rules
        self._failed = FailedSearches(session)
        self._budget = ActionBudget.start(
            session.config.budgets, rules.name, session.clock, session.should_stop
        )
        self._context: _SearchContext | None = None

    def run(self) -> None:
        """Search for every pending pod group in turn."""
        if not len(self._session.state.nodes):
            return  # Victims on nodes that are gone free no room.
        views = [view for view in pending_views(self._session) if self._is_served(view)]
        if not views:
            return
        depth = self._session.config.depth_of(self._rules.name)
        order = GroupOrder(self._session, views, depth=depth)
        while (view := order.pop()) is not None:
            if not self._try(view):
                break

    def _try(self, view: GangView) -> bool:
        """Search for one pod group; False ends the action."""
        attempt = self._rules.begin(view)
        if attempt is None:
            return True
        uses_signatures = self._session.config.use_scheduling_signatures
        scope = self._rules.failure_scope(view)
        if uses_signatures and not self._failed.is_worth_a_search(scope, view):
            self._record(view, self._failed.cause(scope, view))
            return True
        if self._is_beyond_help(view):
            return True
        self._report.attempted += 1
        budget = self._budget.for_group()
        with room_available_to(self._session, view):
            result = self._search(view, attempt, budget)
        self._count(result, budget)
        if result is SearchResult.SOLVED:
            self._report.succeeded += 1
            return True
        cause = self._limits_in_the_way()
        self._record(view, cause)
        if result.ends_action:
            return False
        if uses_signatures:
            self._failed.note_failure(scope, view, cause)
        return True

    def _limits_in_the_way(self) -> GroupFit | None:
        """Return the disruption limits that excluded victims of the search that has just failed."""
        ledger = self._session.disruptions
        limits = ledger.named(ledger.in_the_way)
        ledger.in_the_way.clear()
        return (
            GroupFit(GroupReason.DISRUPTION_BUDGET, DisruptionRefusal(limits)) if limits else None
        )

    def _record(self, view: GangView, cause: GroupFit | None) -> None:
        if cause is not None:
            self._session.fit.add_pod_group(view.pod_group, cause)

    def _count(self, result: SearchResult, budget: GroupBudget | None) -> None:
        results = self._report.search.results
        key = (str(result), budget is not None and budget.is_reduced)
        results[key] = results.get(key, 0) + 1

    def _search(self, view: GangView, attempt: Attempt, budget: GroupBudget | None) -> SearchResult:
        if not attempt.may_search():
            return SearchResult.GENERATORS_EXHAUSTED
        if budget is None:
            return SearchResult.NOT_ATTEMPTED
        context = self._search_context()
        pool = context.pool
        task = SearchTask(
            view=view,
            make_sequence=lambda passed_over: attempt.victims(pool, passed_over),
            accepts=attempt.accepts,
            reason_of=attempt.reason,
            takeable=attempt.takeable,
            may_lose=self._rules.may_lose,
        )
        outcome = context.exchange.run(task, budget)
        if outcome is None:
            outcome = Search(self._session, context.runner, task, budget).run()
        if outcome.statement is not None:
            changed = self._groups_of(outcome.victims, view)
            outcome.statement.keep()
            pool.refresh(changed)
            context.pending.refresh(changed)
        return outcome.result

    def _search_context(self) -> _SearchContext:
        """Collect victims and pending pod groups when the first search really starts."""
        if self._context is None:
            session = self._session
            pending = PendingTable.of(session)
            action, report = self._rules.name, self._report.search
            self._context = _SearchContext(
                VictimPool.of(session),
                pending,
                TrialRunner(session, self._placer, pending, action, report),
                Exchange(session, self._placer, pending, action, report),
            )
        return self._context

    def _is_beyond_help(self, view: GangView) -> bool:
        """Return whether a task fails a check that no eviction can cure; record that task."""
        failed = [
            task
            for task in view.next_chunk(include_evicted=True)
            if self._placer.failed_check(task, victim_invariant=True)
        ]
        if not failed:
            return False
        recorded = self._session.fit.pod_groups.get(view.pod_group, ())
        if not any(isinstance(fit.evidence, GangShortfall) for fit in recorded):
            why = GroupFit(GroupReason.POD_SCHEDULING_ERRORS, GangShortfall(failed[0]))
            self._session.fit.add_pod_group(view.pod_group, why)
        return True

    def _is_served(self, view: GangView) -> bool:
        return self._rules.serves(view) and not note_delay(self._session, view.pod_group)

    def _groups_of(self, victims: Sequence[int], view: GangView) -> list[int]:
        group_of = self._session.state.tasks.pod_group
        return list(dict.fromkeys([view.pod_group, *(group_of[task] for task in victims)]))


def evict_reason(
    session: Session,
    action: ActionName,
    view: GangView,
    gang_size: int,
    *,
    victim_side: QueueSide | None = None,
    evictor_side: QueueSide | None = None,
    in_quota: bool = False,
) -> EvictReason:
    """Return the reason of an eviction for a pod group."""
    pod_group = session.state.pod_groups.inputs[view.pod_group]
    return EvictReason(
        action=action,
        gang_size=gang_size,
        evictor=pod_group.name,
        evictor_namespace=pod_group.namespace,
        victim_side=victim_side,
        evictor_side=evictor_side,
        in_quota=in_quota,
    )


def note_delay(session: Session, pod_group: int) -> bool:
    """Return whether a pod group may not cause evictions yet; if so, record until when."""
    left_s = remaining_delay_s(session, pod_group)
    if left_s <= 0:
        return False
    delay_s = session.state.pod_groups.inputs[pod_group].preemption_delay_s
    refusal = DelayRefusal(delay_s, left_s)
    session.fit.add_pod_group(pod_group, GroupFit(GroupReason.PREEMPTION_DELAY, refusal))
    return True


def remaining_delay_s(session: Session, pod_group: int) -> float:
    """Return for how many seconds more a pod group may not cause evictions; 0 or less: it may.

    The delay counts from its creation, and again from the last time it was evicted itself.
    """
    pod_groups = session.state.pod_groups
    inputs = pod_groups.inputs[pod_group]
    if inputs.preemption_delay_s <= 0:
        return 0.0
    evicted = pod_groups.last_eviction[pod_group]
    since = inputs.created if evicted is None else max(inputs.created, evicted)
    return remaining_s(since + inputs.preemption_delay_s, session.state.now)
