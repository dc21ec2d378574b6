"""The loop that consolidation, reclaim and preempt share: one search per pending pod group.

Pod groups come in the order of queues. What cannot be easier than something that failed is passed
over, as is what no eviction can help. A solution stays in the session, so that later pod groups and
actions see it; a search that ran out of time ends the action.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from scheduler.core.actions.base import pending_views
from scheduler.core.decisions import ActionName, ActionReport, EvictReason
from scheduler.core.placement.place import Placer
from scheduler.core.session.fit import DelayRefusal, GangShortfall, GroupFit, GroupReason
from scheduler.core.session.gang import GangView
from scheduler.core.session.order import GroupOrder
from scheduler.core.session.session import Session
from scheduler.core.solver.budget import ActionBudget, GroupBudget, SearchResult
from scheduler.core.solver.demand import ProbeDemand
from scheduler.core.solver.search import Search, SearchTask
from scheduler.core.solver.signatures import FailedSearches
from scheduler.core.solver.trial import TrialRunner
from scheduler.core.solver.turns import PendingBoard
from scheduler.core.solver.victims import Batch, VictimPool, VictimSequence
from scheduler.core.times import NOW, remaining_s


class EvictionRules(Protocol):
    """What makes an evicting action this action; made anew for each run of it."""

    name: ActionName
    #: Whether any victim may end without a place.
    may_lose: bool

    def asks(self, view: GangView) -> bool:
        """Tell whether the action serves such a pod group at all."""
        ...

    def scope(self, view: GangView) -> object:
        """Return among which failures a like pod group is looked for."""
        ...

    def begin(self, view: GangView) -> bool:
        """Prepare for one pod group; False if its search is not worth (or not allowed) starting."""
        ...

    def may_search(self, view: GangView) -> bool:
        """Tell, after the signature test, whether the search itself may start."""
        ...

    def victims(self, pool: VictimPool, passed_over: frozenset[int]) -> VictimSequence:
        """Return who may be taken for the pod group begun with, in order."""
        ...

    def takeable(self, batches: Sequence[Batch]) -> float:
        """Return a number of GPUs that the rules never let go together."""
        ...

    def accepts(self, demand: ProbeDemand, victims: Mapping[int, Sequence[int]]) -> bool:
        """Tell whether the outcome of the trial under way is acceptable."""
        ...

    def reason(self, victim: int, gang_size: int) -> EvictReason:
        """Return why a task would be evicted; asked before anything is."""
        ...


@dataclass(frozen=True, slots=True)
class _Workshop:
    """What all searches of one action share."""

    pool: VictimPool
    board: PendingBoard
    runner: TrialRunner


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
        self._workshop: _Workshop | None = None

    def run(self) -> None:
        """Give every pending pod group its search."""
        views = [view for view in pending_views(self._session) if self._may_ask(view)]
        if not views:
            return
        order = GroupOrder(
            self._session, views, depth=self._session.config.depth_of(self._rules.name)
        )
        while (view := order.pop()) is not None:
            if not self._attempt(view):
                break

    def _attempt(self, view: GangView) -> bool:
        """Search for one pod group; False ends the action."""
        session, rules = self._session, self._rules
        if not rules.begin(view):
            return True
        uses_signatures = session.config.use_scheduling_signatures
        if uses_signatures and not self._failed.is_worth_a_search(rules.scope(view), view):
            return True
        if self._is_beyond_help(view):
            return True
        self._report.attempted += 1
        budget = self._budget.for_group()
        result = self._search(view, budget)
        is_reduced = budget is not None and budget.is_reduced
        results = self._report.search.results
        results[str(result), is_reduced] = results.get((str(result), is_reduced), 0) + 1
        if result is SearchResult.SOLVED:
            self._report.succeeded += 1
        elif result.ends_action:
            return False
        elif uses_signatures:
            self._failed.note_failure(rules.scope(view), view)
        return True

    def _search(self, view: GangView, budget: GroupBudget | None) -> SearchResult:
        rules = self._rules
        if not rules.may_search(view):
            return SearchResult.GENERATORS_EXHAUSTED
        if budget is None:
            return SearchResult.NOT_ATTEMPTED
        shop = self._open_workshop()
        pool = shop.pool
        task = SearchTask(
            view=view,
            make_sequence=lambda passed_over: rules.victims(pool, passed_over),
            accepts=rules.accepts,
            reason_of=rules.reason,
            takeable=rules.takeable,
            may_lose=rules.may_lose,
        )
        outcome = Search(self._session, shop.runner, task, budget).run()
        if outcome.statement is not None:
            changed = self._groups_of(outcome.victims, view)
            outcome.statement.keep()
            pool.refresh(changed)
            shop.board.refresh(changed)
        return outcome.result

    def _open_workshop(self) -> _Workshop:
        """Collect victims and pending pod groups when the first search really starts."""
        if self._workshop is None:
            session = self._session
            board = PendingBoard.of(session)
            runner = TrialRunner(
                session, self._placer, board, self._rules.name, self._report.search
            )
            self._workshop = _Workshop(VictimPool.of(session), board, runner)
        return self._workshop

    def _is_beyond_help(self, view: GangView) -> bool:
        """Tell whether something no eviction can cure keeps the pod group away; record what."""
        failed = [
            task
            for task in view.next_chunk(include_evicted=True)
            if self._placer.failed_check(task, victim_invariant=True)
        ]
        known = self._session.fit.pod_groups.get(view.pod_group, ())
        if failed and not any(isinstance(fit.evidence, GangShortfall) for fit in known):
            why = GroupFit(GroupReason.POD_SCHEDULING_ERRORS, GangShortfall(failed[0]))
            self._session.fit.add_pod_group(view.pod_group, why)
        return bool(failed)

    def _may_ask(self, view: GangView) -> bool:
        return self._rules.asks(view) and not self._is_delayed(view)

    def _is_delayed(self, view: GangView) -> bool:
        """Tell whether the pod group may not cause evictions yet; record until when."""
        left_s = remaining_delay_s(self._session, view.pod_group)
        if left_s <= 0:
            return False
        delay_s = self._session.state.pod_groups.inputs[view.pod_group].preemption_delay_s
        refusal = DelayRefusal(delay_s, NOW + left_s)
        self._session.fit.add_pod_group(
            view.pod_group, GroupFit(GroupReason.PREEMPTION_DELAY, refusal)
        )
        return True

    def _groups_of(self, victims: Sequence[int], view: GangView) -> list[int]:
        group_of = self._session.state.tasks.pod_group
        return list(dict.fromkeys([view.pod_group, *(group_of[task] for task in victims)]))


def evict_reason(
    session: Session, action: ActionName, view: GangView | None, gang_size: int
) -> EvictReason:
    """Return a reason without queue details."""
    given = None if view is None else session.state.pod_groups.inputs[view.pod_group]
    return EvictReason(
        action=action,
        gang_size=gang_size,
        evictor="" if given is None else given.name,
        evictor_namespace="" if given is None else given.namespace,
    )


def remaining_delay_s(session: Session, group: int) -> float:
    """Return for how many seconds more a pod group may not cause evictions; 0 or less: it may.

    The delay counts from creation, and again from the last time it was evicted itself.
    """
    groups = session.state.pod_groups
    given = groups.inputs[group]
    if given.preemption_delay_s <= 0:
        return 0.0
    evicted = groups.last_eviction[group]
    since = given.created if evicted is None else max(given.created, evicted)
    return remaining_s(since + given.preemption_delay_s)
