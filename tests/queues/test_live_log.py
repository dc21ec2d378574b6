"""The change log: written with the change, trimmed as promised, named by its epoch."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import transaction
from django.utils import timezone

from queues import live
from queues.models import LiveChange
from queues.tasks import trim_live_log

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)


@pytest.mark.django_db(transaction=True)
def test_a_change_is_only_recorded_together_with_what_changes() -> None:
    with pytest.raises(transaction.TransactionManagementError, match=r"live\.record\('queue'\)"):
        live.record("queue", ["a"])
    live.record("queue", [])
    with transaction.atomic():
        live.record("queue", ["a"])
        transaction.set_rollback(True)
    assert live.position() == 0


@pytest.mark.django_db(transaction=True)
def test_readers_are_woken_after_the_commit_and_not_before(monkeypatch: pytest.MonkeyPatch) -> None:
    woken: list[int] = []
    monkeypatch.setattr(live, "wake", lambda: woken.append(live.position()))
    with transaction.atomic():
        live.record("queue", ["b", "a", "b"])
        assert woken == []
    assert len(woken) == 1
    changes = live.changes_after(0, limit=10)
    assert [(change.kind, change.key) for change in changes] == [("queue", "a"), ("queue", "b")]
    assert live.changes_after(changes[0].position, limit=10) == changes[1:]
    assert woken == [changes[-1].position]


@pytest.mark.django_db
def test_the_log_keeps_ten_minutes_and_the_last_changes_whatever_their_age(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(live, "MAX_STORED_CHANGES", 3)
    for age_min in (30, 20, 9, 8, 7, 6):
        LiveChange.objects.create(
            kind="node", key=str(age_min), at=NOON - timedelta(minutes=age_min)
        )
    oldest = live.changes_after(0, limit=1)[0].position
    assert live.reaches_back_to(oldest - 1)
    assert live.trim(NOON) == 2
    assert [change.key for change in live.changes_after(0, limit=9)] == ["9", "8", "7", "6"]
    assert not live.reaches_back_to(oldest - 1)
    assert live.reaches_back_to(oldest + 1)
    assert not live.reaches_back_to(live.position() + 1)
    assert live.trim(NOON + timedelta(days=1)) == 1


@pytest.mark.django_db
def test_positions_are_never_used_twice() -> None:
    LiveChange.objects.create(kind="node", key="a", at=NOON)
    first = live.position()
    LiveChange.objects.all().delete()
    LiveChange.objects.create(kind="node", key="b", at=NOON)
    assert live.position() > first


@pytest.mark.django_db
def test_an_epoch_stays_until_a_new_one_is_started() -> None:
    first = live.epoch()
    assert live.epoch() == first
    LiveChange.objects.create(kind="node", key="a", at=timezone.now())
    assert live.start_epoch() != first
    assert live.position() == 0


@pytest.mark.django_db
def test_an_empty_log_resumes_only_from_its_beginning() -> None:
    assert live.reaches_back_to(0)
    assert not live.reaches_back_to(7)


@pytest.mark.django_db
def test_the_task_is_a_doorway() -> None:
    assert trim_live_log() == 0


@pytest.mark.django_db(transaction=True)
def test_a_broker_that_is_away_never_fails_a_write(monkeypatch: pytest.MonkeyPatch) -> None:
    class Away:
        async def group_send(self, *_args: object) -> None:
            raise ConnectionRefusedError("connection refused")

    monkeypatch.setattr(live, "get_channel_layer", Away)
    monkeypatch.setattr(live, "_waker", live._Waker())
    with transaction.atomic():
        live.record("queue", ["a"])
    assert live.position() > 0
