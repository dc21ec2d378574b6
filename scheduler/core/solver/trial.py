"""One trial: evict a set of victims, let the evictor and the victims find places, see which victims lost.

A trial runs inside a statement, on the real placement with all its rules. The evictor (the pod group that
room is made for) and the victims take turns in fair order. A victim that gets its own place back was
never evicted, one that finds another place was moved, one that finds none loses its place. Moves that turn
out needless in the end are taken back (`back_home.py`). If the evictor finds room and the rules of the
action accept the losses, the statement stays open for the caller to keep.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from scheduler.core.cluster.status import NOMINATED, RELEASING
from scheduler.core.decisions import (
    REJECTED,
    SOLVED,
    UNSOLVED,
    ActionName,
    EvictReason,
    SearchReport,
)
from scheduler.core.placement.place import Placer
from scheduler.core.placement.rules import ClassRules
from scheduler.core.session.gang import GangView
from scheduler.core.session.nodeset import NodeSet
from scheduler.core.session.session import Session
from scheduler.core.session.statement import Statement
from scheduler.core.solver.back_home import take_back_moves
from scheduler.core.solver.demand import ProbeDemand
from scheduler.core.solver.turns import PendingTable, TurnOrder

#: (demand, victims by pod group) -> whether the action accepts the outcome of a trial.
OutcomeCheck = Callable[[ProbeDemand, Mapping[int, Sequence[int]]], bool]


@dataclass(frozen=True, slots=True)
class Trial:
    """What is tried: the demand, the tasks evicted for it, and why each would be evicted.

    `may_lose` False: the action accepts no loss, so the first victim without a place ends the trial.
    """

    demand: ProbeDemand
    victims: tuple[int, ...]
    nodes: NodeSet
    #: (victim, number of victims) -> why it is evicted; called before any eviction.
    reason_of: Callable[[int, int], EvictReason]
    may_lose: bool = True


@dataclass(frozen=True, slots=True)
class Success:
    """A trial that worked.

    Attributes
    ----------
    statement : still open
    victims : those that lost or changed their place, and all other victims of the same pod groups, or a
        gang could lose some pods and keep the rest
    is_exact : whether these are all victims of the trial
    """

    statement: Statement
    victims: tuple[int, ...]
    is_exact: bool


class TrialRunner:
    """Runs trials of one action and reports each.

    Attributes
    ----------
    generator : name of the generator that proposes the next trials, for the report
    """

    def __init__(
        self,
        session: Session,
        placer: Placer,
        pending: PendingTable,
        action: ActionName,
        report: SearchReport,
    ) -> None:
        self._session = session
        self.report = report
        self._placer = placer
        self._pending = pending
        self._action = action
        self.generator = ""

    def rules_of(self, task: int) -> ClassRules:
        """Return the rules of plugins for the class of a task."""
        return self._placer.rules(self._session.state.tasks.task_class[task], task)

    def run(self, trial: Trial, accepts: OutcomeCheck) -> Success | None:
        """Try one set of victims.

        Parameters
        ----------
        trial : the demand and the victims
        accepts : the action's rules on the outcome, called while the statement is open

        Returns
        -------
        None if the pod group found no room or the outcome breaks a rule; nothing is changed then
        """
        if not trial.victims:
            return None
        clock = self._session.clock
        started = clock()
        result, success = self._run(trial, accepts)
        self.report.trials.append((self.generator, result, clock() - started))
        return success

    def fits_once_all_left(self, trial: Trial) -> bool:
        """Return whether the demand finds room once the victims have left and before any of them looks for a place.

        If not, no part of these victims is enough either: more victims only leave more room.
        """
        statement = Statement(self._session, self._action)
        self._evict(statement, trial)
        view = trial.demand.view
        chunk = view.next_chunk(include_evicted=True)
        fits = self._placer.place(statement, view, chunk, trial.nodes, nominate_only=True)
        statement.discard()
        return fits

    def _run(self, trial: Trial, accepts: OutcomeCheck) -> tuple[str, Success | None]:
        session = self._session
        statement = Statement(session, self._action)
        by_group = self._evict(statement, trial)
        if not self._take_turns(statement, trial, by_group):
            statement.discard()
            return UNSOLVED, None
        take_back_moves(session, self._placer, statement, trial.nodes)
        if self._exceeds_limits(trial) or not accepts(trial.demand, by_group):
            statement.discard()
            return REJECTED, None
        victims = self._victims_of_changed_groups(trial)
        is_exact = len(victims) == len(trial.victims)
        return SOLVED, Success(statement, victims, is_exact)

    def _exceeds_limits(self, trial: Trial) -> bool:
        """Return whether more tasks lost or changed their place than disruption limits allow; note which."""
        ledger = self._session.disruptions
        if not ledger:
            return False
        exceeded = ledger.exceeded(self._changed(trial))
        ledger.in_the_way |= exceeded
        return bool(exceeded)

    def _changed(self, trial: Trial) -> list[int]:
        """Return the victims that lost or changed their place."""
        status = self._session.state.tasks.status
        return [task for task in trial.victims if status[task] in (RELEASING, NOMINATED)]

    def _victims_of_changed_groups(self, trial: Trial) -> tuple[int, ...]:
        tasks = self._session.state.tasks
        changed = {tasks.pod_group[task] for task in self._changed(trial)}
        return tuple(task for task in trial.victims if tasks.pod_group[task] in changed)

    def _evict(self, statement: Statement, trial: Trial) -> dict[int, list[int]]:
        """Evict the victims; return them by pod group."""
        pod_group_of = self._session.state.tasks.pod_group
        by_group: dict[int, list[int]] = {}
        count = len(trial.victims)
        reasons = [trial.reason_of(task, count) for task in trial.victims]
        for task, reason in zip(trial.victims, reasons, strict=True):
            by_group.setdefault(pod_group_of[task], []).append(task)
            statement.evict(task, reason)
        return by_group

    def _has_evicted(self, tasks: Sequence[int]) -> bool:
        """Return whether some victims of a pod group have no place yet.

        They get another turn, one step at a time as in allocation; KAI gives every victim one turn
        only, so that a pod group that lost two elastic tasks can never get both back.
        """
        status = self._session.state.tasks.status
        return any(status[task] == RELEASING for task in tasks)

    def _take_turns(
        self, statement: Statement, trial: Trial, victims: Mapping[int, Sequence[int]]
    ) -> bool:
        """Place the evictor and the victims in turns.

        Returns
        -------
        whether the evictor found room and no victim lost its place that may not
        """
        session, evictor = self._session, trial.demand.view
        views: list[GangView] = [session.view(pod_group) for pod_group in victims]
        order = TurnOrder(session, self._pending, [*views, evictor])
        has_room = False
        while (view := order.pop()) is not None:
            placed = self._placer.place(
                statement,
                view,
                view.next_chunk(include_evicted=True),
                trial.nodes,
                nominate_only=True,
            )
            if view is evictor:
                if not placed:
                    return False
                has_room = True
            elif placed and self._has_evicted(victims[view.pod_group]):
                order.push(view)
            elif not placed and not trial.may_lose:
                return False
        return has_room
