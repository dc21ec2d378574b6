"""How long the search for victims may take: per action, per pod group, per generator.

Budgets are checked between trials only, so that no trial is cut in half. A search also ends, as if its
time were over, when `should_stop` returns True: the scheduler interrupts searches for new work. The clock
is a parameter; one that stands still makes every budget endless.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from math import inf

from scheduler.core.decisions import ActionName
from scheduler.core.options import SearchBudgets


class SearchResult(StrEnum):
    """How the search for one pod group ended, spelled as in the metrics."""

    SOLVED = "solved"
    DEADLINE_EXHAUSTED = "deadline_exhausted"
    GENERATORS_EXHAUSTED = "generators_exhausted"
    NO_GENERATOR = "no_generator"
    NOT_ATTEMPTED = "not_attempted"

    @property
    def ends_action(self) -> bool:
        """Return whether there is no time left for further pod groups of the action."""
        return self in (SearchResult.DEADLINE_EXHAUSTED, SearchResult.NOT_ATTEMPTED)


@dataclass(slots=True)
class ActionBudget:
    """The time of one action, from the moment it starts."""

    budgets: SearchBudgets
    clock: Callable[[], float]
    should_stop: Callable[[], bool]
    deadline_s: float

    @classmethod
    def start(
        cls,
        budgets: SearchBudgets,
        action: ActionName,
        clock: Callable[[], float],
        should_stop: Callable[[], bool],
    ) -> ActionBudget:
        """Return a budget whose time begins now; 0 in the configuration means no limit."""
        limit_s = budgets.of_action(action) or inf
        return cls(budgets, clock, should_stop, clock() + limit_s)

    def for_group(self) -> GroupBudget | None:
        """Return the time one pod group may take, or None if there is none left.

        That is the smaller of what is left of the action's time and the limit of a pod group, but at least the
        configured minimum.
        """
        if self.should_stop():
            return None
        now = self.clock()
        remaining_s = self.deadline_s - now
        limit_s = self.budgets.max_pod_group_s or inf
        allowed_s = min(remaining_s, limit_s)
        if self.budgets.min_pod_group_s > 0:
            allowed_s = max(allowed_s, self.budgets.min_pod_group_s)
        if allowed_s <= 0:
            return None
        is_reduced = limit_s != inf and remaining_s < limit_s
        return GroupBudget(self.budgets, self.clock, self.should_stop, now + allowed_s, is_reduced)


@dataclass(slots=True)
class GroupBudget:
    """The time of one pod group, and of the generator that works for it now."""

    budgets: SearchBudgets
    clock: Callable[[], float]
    should_stop: Callable[[], bool]
    deadline_s: float
    is_reduced: bool
    generator_deadline_s: float = inf

    def start_generator(self, name: str) -> None:
        """Begin the time of a generator: what is left, at most its own limit."""
        limit_s = self.budgets.of_generator(name) or inf
        self.generator_deadline_s = min(self.deadline_s, self.clock() + limit_s)

    @property
    def is_exhausted(self) -> bool:
        """Return whether the pod group has no time left or the search is to stop."""
        return self.should_stop() or self.clock() >= self.deadline_s

    @property
    def is_generator_exhausted(self) -> bool:
        """Return whether the generator has no time left."""
        return self.clock() >= self.generator_deadline_s
