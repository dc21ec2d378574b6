"""What is dropped with a scheduler, and what stays."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from kaiweb.history import forget_shards, trim_evictions, trim_placements
from queues.models import LiveChange, PodGroup
from scheduler.models import (
    EvictionRecord,
    GroupStanding,
    PlacementRecord,
    QueueShare,
    SessionRecord,
)

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


def test_placements_are_kept_while_their_workload_exists_and_for_an_hour() -> None:
    now = datetime(2026, 3, 1, tzinfo=UTC)
    PodGroup.objects.create(key="ns/lives", namespace="ns", name="lives", created_at=now, version=1)
    for workload, hours in (("lives", 99), ("gone", 2), ("unknown-yet", 0)):
        PlacementRecord.objects.create(
            pod=f"ns/{workload}-0", workload=f"ns/{workload}", shard="default", node="n",
            at=now - timedelta(hours=hours),
        )  # fmt: skip
    assert trim_placements(now) == 1
    assert {row.pod for row in PlacementRecord.objects.all()} == {"ns/lives-0", "ns/unknown-yet-0"}
