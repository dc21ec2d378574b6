"""The maximum run time of a workload, from what it and its queues state."""

from __future__ import annotations

import pytest

from queues.workloads.run_times import (
    NOTHING_STATED,
    RunTimeLimit,
    StatedRunTime,
    inherited,
    limit_of,
    stated_run_time,
)

PARENTS = {"leaf": "team", "team": "top", "top": "", "ring-a": "ring-b", "ring-b": "ring-a"}


def stated(maximum_s: float | None = None, delay_s: float | None = None) -> StatedRunTime:
    return StatedRunTime(maximum_s=maximum_s, delay_s=delay_s)


@pytest.mark.parametrize(
    ("of_queues", "expected"),
    [
        ({}, NOTHING_STATED),
        ({"top": stated(60, 5)}, stated(60, 5)),
        ({"top": stated(60, 5), "team": stated(30)}, stated(30, 5)),
        ({"top": stated(60), "leaf": stated(0)}, stated(0)),
        ({"elsewhere": stated(60)}, NOTHING_STATED),
    ],
)
def test_the_nearest_value_upward_holds(
    of_queues: dict[str, StatedRunTime], expected: StatedRunTime
) -> None:
    assert inherited("leaf", PARENTS, of_queues) == expected


def test_queues_in_a_circle_end_the_search() -> None:
    assert inherited("ring-a", PARENTS, {"top": stated(1)}) == NOTHING_STATED


@pytest.mark.parametrize(
    ("workload", "queue", "expected"),
    [
        (stated(), stated(), None),
        (stated(0), stated(0), None),
        (stated(60), stated(), RunTimeLimit(maximum_s=60)),
        (stated(60), stated(0, 9), RunTimeLimit(maximum_s=60, delay_s=9)),
        (stated(90, 1), stated(60, 5), RunTimeLimit(maximum_s=60, delay_s=5)),
        (stated(30, 7), stated(60, 5), RunTimeLimit(maximum_s=30, delay_s=7)),
        (stated(0, 7), stated(60, 5), RunTimeLimit(maximum_s=60, delay_s=7)),
    ],
)
def test_a_workload_may_be_stricter_than_its_queue_only(
    workload: StatedRunTime, queue: StatedRunTime, expected: RunTimeLimit | None
) -> None:
    assert limit_of(workload, queue) == expected


@pytest.mark.parametrize("text", ["", "soon", "-1h", "1 h", "1h" * 100])
def test_a_duration_that_cannot_be_read_states_nothing(text: str) -> None:
    assert stated_run_time({"kaiweb.dev/max-run-time": text}).maximum_s is None
