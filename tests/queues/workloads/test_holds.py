"""Holds and requeues as annotations of a pod group state them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from queues.workloads.holds import (
    Hold,
    annotations_of_hold,
    annotations_of_requeue,
    hold_of,
    requeue_before,
)

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "hold", [Hold("budget"), Hold(""), Hold("night", NOON), Hold("ran", NOON, "max-run-time")]
)
def test_a_hold_is_read_as_it_was_written(hold: Hold) -> None:
    assert hold_of(annotations_of_hold(hold)) == hold


def test_a_release_removes_all_annotations() -> None:
    assert annotations_of_hold(None) == {
        "kaiweb.dev/hold": None,
        "kaiweb.dev/hold-until": None,
        "kaiweb.dev/held-by": None,
    }
    assert hold_of({"kaiweb.dev/hold-until": "2026-11-29T12:00:00Z"}) is None


def test_a_hold_ends_at_its_time_and_one_without_a_readable_time_does_not() -> None:
    hold = Hold("night", NOON)
    assert [hold.applies(NOON - timedelta(seconds=1)), hold.applies(NOON)] == [True, False]
    unreadable = hold_of({"kaiweb.dev/hold": "", "kaiweb.dev/hold-until": "soon"})
    assert unreadable is not None
    assert unreadable.applies(NOON + timedelta(days=999))


def test_a_requeue_is_in_whole_seconds_so_that_a_pod_created_after_it_is_younger() -> None:
    annotations = annotations_of_requeue(NOON.replace(microsecond=999_999))
    assert requeue_before(annotations) == NOON.timestamp()
    assert requeue_before({}) is None
