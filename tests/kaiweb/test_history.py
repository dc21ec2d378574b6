"""What is dropped with a scheduler, and what stays."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from kaiweb.history import forget_shards, trim_evictions
from queues.models import LiveChange
from scheduler.models import EvictionRecord, GroupStanding, QueueShare, SessionRecord

pytestmark = pytest.mark.django_db


def test_shares_and_standings_of_ended_schedulers_go_and_their_sessions_stay() -> None:
    for number, shard in enumerate(("amber", "default")):
        QueueShare.objects.create(shard=shard, queue=f"q-{shard}", cycle=1)
        GroupStanding.objects.create(shard=shard, key=f"ns/pg-{shard}", code="waiting")
        SessionRecord.objects.create(
            shard=shard, number=number, started_at=datetime(2026, 1, 1, tzinfo=UTC), duration_ms=1
        )
    forget_shards({"default"})
    assert [row.queue for row in QueueShare.objects.all()] == ["q-default"]
    assert [row.key for row in GroupStanding.objects.all()] == ["ns/pg-default"]
    assert SessionRecord.objects.count() == 2
    recorded = {(change.kind, change.key) for change in LiveChange.objects.all()}
    assert recorded == {("queue", "q-amber"), ("standing", "ns/pg-amber")}


def test_nothing_is_deleted_while_every_scheduler_runs() -> None:
    QueueShare.objects.create(shard="default", queue="q", cycle=1)
    forget_shards({"default"})
    assert QueueShare.objects.count() == 1
    assert not LiveChange.objects.exists()


def test_evictions_are_kept_for_a_month() -> None:
    now = datetime(2026, 3, 1, tzinfo=UTC)
    for days in (30, 32):
        EvictionRecord.objects.create(
            session=days, at=now - timedelta(days=days), shard="default", rule="reclaim",
            workload="ns/w", pods=1, gpu=1,
        )  # fmt: skip
    assert trim_evictions(now) == 1
    assert EvictionRecord.objects.get().session == 30
