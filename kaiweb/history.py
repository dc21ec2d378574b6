"""Delete old records of schedulers, and the shares and standings of schedulers that no longer run."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from queues import live
from queues.models import PodGroup
from scheduler.models import (
    EvictionRecord,
    GroupStanding,
    PlacementRecord,
    QueueShare,
    SessionRecord,
)

STORED_CYCLES = 5_000
STORED_FOR = timedelta(hours=24)
#: The matrix of evictions covers a month.
EVICTIONS_STORED_FOR = timedelta(days=31)
#: Placements of workloads that are gone; the mirror may not know a new workload yet.
PLACEMENTS_STORED_FOR = timedelta(hours=1)
ROWS_PER_DELETE = 1_000


def trim_cycles(now: datetime) -> int:
    """Delete cycles that are older than a day and not among the last 5,000; return how many.

    In steps, so that other writers of the database never wait long.
    """
    newest = SessionRecord.objects.order_by("-id").values_list("id", flat=True)[
        STORED_CYCLES : STORED_CYCLES + 1
    ]
    floor = next(iter(newest), 0)
    return _delete(SessionRecord.objects.filter(id__lte=floor, started_at__lt=now - STORED_FOR))


def trim_evictions(now: datetime) -> int:
    """Delete the records of evictions older than a month; return how many."""
    return _delete(EvictionRecord.objects.filter(at__lt=now - EVICTIONS_STORED_FOR))


def trim_placements(now: datetime) -> int:
    """Delete the records of placements whose workload is gone; return how many."""
    workloads = PodGroup.objects.filter(key=OuterRef("workload"))
    old = PlacementRecord.objects.filter(at__lt=now - PLACEMENTS_STORED_FOR)
    return _delete(old.filter(~Exists(workloads)))


def _delete(rows: QuerySet[Any]) -> int:
    """Delete rows, oldest key first, and return how many."""
    deleted = 0
    while keys := list(rows.order_by("pk").values_list("pk", flat=True)[:ROWS_PER_DELETE]):
        count, _by_model = rows.model.objects.filter(pk__in=keys).delete()
        deleted += count
    return deleted


def forget_shards(remaining: Collection[str]) -> None:
    """Delete shares and standings of shards without a scheduler; the records of their cycles stay.

    Parameters
    ----------
    remaining : the shards that still have a scheduler
    """
    with transaction.atomic():
        shares = QueueShare.objects.exclude(shard__in=remaining)
        standings = GroupStanding.objects.exclude(shard__in=remaining)
        live.record("queue", list(shares.values_list("queue", flat=True)))
        live.record("standing", list(standings.values_list("key", flat=True)))
        shares.delete()
        standings.delete()
