"""Time limits of the search, on a clock that is set by hand."""

from __future__ import annotations

from math import inf

import pytest

from scheduler.core.decisions import ActionName
from scheduler.core.options import SearchBudgets
from scheduler.core.session.session import run_to_the_end
from scheduler.core.solver.budget import ActionBudget, SearchResult


class HandClock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def start(clock: HandClock, **budgets) -> ActionBudget:
    return ActionBudget.start(SearchBudgets(**budgets), ActionName.RECLAIM, clock, run_to_the_end)


def test_a_pod_group_gets_its_limit_or_what_is_left_of_the_action() -> None:
    clock = HandClock()
    budget = start(clock, default_action_s=10.0, max_pod_group_s=4.0)
    first = budget.for_group()
    assert (first.deadline_s, first.is_reduced) == (104.0, False)
    clock.now = 108.0
    second = budget.for_group()
    assert (second.deadline_s, second.is_reduced) == (110.0, True)
    clock.now = 110.0
    assert budget.for_group() is None


def test_the_minimum_is_granted_even_after_the_end_of_the_action() -> None:
    clock = HandClock()
    budget = start(clock, default_action_s=10.0, max_pod_group_s=4.0, min_pod_group_s=1.0)
    clock.now = 111.0
    assert budget.for_group().deadline_s == 112.0


@pytest.mark.parametrize("unlimited", [0.0, inf])
def test_no_limit_never_ends(unlimited) -> None:
    clock = HandClock()
    budget = start(clock, default_action_s=unlimited, max_pod_group_s=unlimited)
    clock.now = 1e9
    group = budget.for_group()
    assert not group.is_exhausted
    assert not group.is_reduced


def test_a_generator_ends_with_its_own_limit_or_with_the_pod_group() -> None:
    clock = HandClock()
    group = start(
        clock,
        default_action_s=10.0,
        max_pod_group_s=4.0,
        generator_s={"MultiNodeGang": 2.0},
        default_generator_s=9.0,
    ).for_group()
    group.start_generator("MultiNodeGang")
    clock.now = 102.0
    assert group.is_generator_exhausted
    assert not group.is_exhausted
    group.start_generator("NodeLocalGreedy")
    assert not group.is_generator_exhausted
    clock.now = 104.0
    assert group.is_generator_exhausted
    assert group.is_exhausted


def test_a_stop_ends_the_pod_group_and_the_action_whatever_time_is_left() -> None:
    stops = [False]
    budgets = SearchBudgets(max_pod_group_s=4.0, min_pod_group_s=1.0)
    budget = ActionBudget.start(budgets, ActionName.RECLAIM, HandClock(), lambda: stops[0])
    group = budget.for_group()
    assert not group.is_exhausted
    stops[0] = True
    assert group.is_exhausted
    assert budget.for_group() is None


def test_an_action_has_its_own_limit_if_one_is_set() -> None:
    clock = HandClock()
    budget = start(
        clock, default_action_s=10.0, action_s={ActionName.RECLAIM: 3.0}, max_pod_group_s=inf
    )
    assert budget.for_group().deadline_s == 103.0


def test_only_a_lack_of_time_ends_the_action() -> None:
    assert [result for result in SearchResult if result.ends_action] == [
        SearchResult.DEADLINE_EXHAUSTED,
        SearchResult.NOT_ATTEMPTED,
    ]
