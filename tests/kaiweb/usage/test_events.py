"""Starts, waiting times and evictions by queue and day."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from kaiweb.usage import events
from kaiweb.usage.models import QueueDay, WorkloadEvent
from queues.models import PodGroup
from queues.selectors import tree
from tests.kaiweb.usage.conftest import MIDNIGHT, wait_for

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("mirror")]
DAY = date(2026, 11, 30)


def change(group: PodGroup, **seconds: float) -> None:
    values = {name: MIDNIGHT + timedelta(seconds=at) for name, at in seconds.items()}
    PodGroup.objects.filter(pk=group.pk).update(**values)


def note(seconds: float) -> None:
    events.note(MIDNIGHT + timedelta(seconds=seconds))


def rows(day: date = DAY) -> dict[str, tuple[object, ...]]:
    return {
        row.queue: (row.starts, row.evictions, row.waited_p50_s, row.waited_p90_s, row.waited_max_s)
        for row in events.count_day(day, tree())
    }


def test_a_start_waited_since_it_was_created_and_after_an_eviction_since_then() -> None:
    group = wait_for("team", "ada", 1)
    change(group, last_start=30)
    note(40)
    note(60)  # the same start, seen again
    change(group, last_eviction=100)
    note(110)
    change(group, last_start=190)
    note(200)
    assert WorkloadEvent.objects.count() == 3
    assert rows() == {"team": (2, 1, 30, 90, 90), "dept": (2, 1, 30, 90, 90)}


def test_an_event_that_the_mirror_saw_late_is_counted() -> None:
    early, late = wait_for("team", "ada", 1), wait_for("lab", "bob", 1)
    change(early, last_start=300)
    note(310)
    change(late, last_start=250)
    note(330)
    assert rows()["dept"][:1] == (2,)


def test_quantiles_are_waiting_times_that_occurred() -> None:
    for number in range(1, 11):
        change(wait_for("team", f"user{number}", 1), last_start=10 * number)
    note(200)
    assert rows()["team"] == (10, 0, 50, 90, 100)


def test_a_day_is_written_once_when_it_has_ended_and_old_events_go() -> None:
    change(wait_for("team", "ada", 1), last_start=30)
    note(40)
    assert events.close_days(MIDNIGHT + timedelta(hours=24, minutes=5)) == 0
    assert events.close_days(MIDNIGHT + timedelta(hours=24, minutes=10)) == 2
    assert events.close_days(MIDNIGHT + timedelta(hours=25)) == 0
    assert set(QueueDay.objects.values_list("queue", "day")) == {("team", DAY), ("dept", DAY)}
    events.close_days(MIDNIGHT + timedelta(days=5))
    assert not WorkloadEvent.objects.exists()
    assert QueueDay.objects.count() == 2
    events.close_days(MIDNIGHT + timedelta(days=1102))
    assert not QueueDay.objects.exists()
