"""Searches rest in proportion to their cost, give way to new work, and are not starved by it."""

from __future__ import annotations

from scheduler.core.decisions import ActionName, ActionReport
from scheduler.core.options import DEFAULT_ACTIONS
from scheduler.loop.pacing import SEARCHING, Pacer

RECLAIM = ActionName.RECLAIM


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def searches(pacer: Pacer) -> bool:
    return set(SEARCHING) <= set(pacer.begin(DEFAULT_ACTIONS))


def search(pacer: Pacer, clock: Clock, seconds: float, *, solved: int = 0) -> None:
    assert pacer.may_start(ActionName.ALLOCATE)
    assert pacer.may_start(RECLAIM)
    clock.now += seconds
    pacer.end([ActionReport(RECLAIM, seconds=seconds, succeeded=solved)])


def made() -> tuple[Pacer, Clock]:
    clock = Clock()
    return Pacer(clock), clock


def test_fruitless_search_is_followed_by_a_rest_of_four_times_its_cost() -> None:
    pacer, clock = made()
    assert searches(pacer)
    search(pacer, clock, 2.0)
    clock.now += 7.9
    assert pacer.begin(DEFAULT_ACTIONS) == (
        ActionName.ALLOCATE,
        ActionName.STALE_GANG_EVICTION,
    )
    pacer.end([])
    clock.now += 0.2
    assert searches(pacer)


def test_search_that_found_something_goes_on_at_once() -> None:
    pacer, clock = made()
    searches(pacer)
    search(pacer, clock, 2.0, solved=1)
    assert searches(pacer)


def test_a_relevant_change_stops_a_long_search_and_defers_the_next() -> None:
    pacer, clock = made()
    searches(pacer)
    pacer.may_start(ActionName.CONSOLIDATION)
    clock.now += 0.05
    pacer.interrupt()
    assert not pacer.should_stop()  # too short to be worth it
    clock.now += 0.06
    assert pacer.should_stop()
    assert not pacer.may_start(RECLAIM)
    assert pacer.may_start(ActionName.STALE_GANG_EVICTION)
    pacer.end([ActionReport(ActionName.CONSOLIDATION, seconds=0.11)])
    assert not searches(pacer)
    assert not pacer.should_stop()


def test_changes_before_the_cycle_do_not_stop_a_search() -> None:
    pacer, clock = made()
    pacer.interrupt()
    searches(pacer)
    pacer.may_start(RECLAIM)
    clock.now += 1.0
    assert not pacer.should_stop()


def test_steady_changes_cannot_starve_the_search() -> None:
    pacer, clock = made()
    ran = interrupted = 0
    for _ in range(400):  # a pod every quarter of a second, a search that needs two seconds
        clock.now += 0.25
        if not searches(pacer):
            pacer.end([])
            continue
        ran += 1
        assert pacer.may_start(RECLAIM)
        for _ in range(20):
            clock.now += 0.1
            pacer.interrupt()
            if pacer.should_stop():
                interrupted += 1
                break
        pacer.end([])
    assert interrupted > 10
    assert ran - interrupted >= 2  # ran to the end, though news came all the time


def test_cheap_searches_run_in_every_cycle() -> None:
    pacer, clock = made()
    for _ in range(20):
        assert searches(pacer)
        search(pacer, clock, 0.01)
        clock.now += 1.0
