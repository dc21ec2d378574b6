"""A cycle tells its caller when it opens and around each action, and obeys."""

from __future__ import annotations

from itertools import count

from scheduler.core.config import SchedulerConfig
from scheduler.core.cycle import run_cycle
from scheduler.core.decisions import ActionName
from scheduler.core.session.session import Session
from tests.builders import cluster

ALLOCATE, RECLAIM = ActionName.ALLOCATE, ActionName.RECLAIM
CONFIG = SchedulerConfig(actions=(ALLOCATE, RECLAIM))


def test_callers_see_the_open_session_then_each_action_with_what_it_decided() -> None:
    calls: list[object] = []

    def after_open(session: Session) -> None:
        calls.append(sum(session.state.pod_groups.pending))

    def before_action(name: ActionName) -> bool:
        calls.append(name)
        return True

    session = run_cycle(
        cluster().node("n").pending("p", 2).build(),
        CONFIG,
        after_open=after_open,
        before_action=before_action,
        after_action=lambda decisions: calls.append([decision.task.name for decision in decisions]),
    )
    assert calls == [2, ALLOCATE, ["p-0", "p-1"], RECLAIM, []]
    assert len(session.decisions) == 2


def test_an_action_is_skipped_if_the_caller_refuses_it() -> None:
    session = run_cycle(
        cluster().node("n").pending("p").build(),
        CONFIG,
        before_action=lambda name: name is not ALLOCATE,
    )
    assert [report.action for report in session.reports] == [RECLAIM]


def test_a_stopped_search_ends_its_action_and_its_time_stays_true() -> None:
    built = cluster().node("n", gpus=2).queue("a").queue("b", 2)
    built.running("r0", ["n"], queue="a").running("r1", ["n"], queue="a")
    ticks = count()
    session = run_cycle(
        built.pending("want", queue="b").build(),
        SchedulerConfig(actions=(RECLAIM,)),
        clock=lambda: float(next(ticks)),
        should_stop=lambda: True,
    )
    [report] = session.reports
    assert session.decisions == []
    assert report.search.results == {("not_attempted", False): 1}
    assert report.seconds == 2.0
