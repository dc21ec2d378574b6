"""What schedulers have told stays on record for a while; what they say of the present goes with them."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from django.db import transaction

from queues import live
from scheduler.models import Cycle, GroupStanding, QueueShare

KEPT_CYCLES = 5_000
KEPT_FOR = timedelta(hours=24)
STEP = 1_000


def trim_cycles(now: datetime) -> int:
    """Drop sessions that are older than a day and not among the last 5,000; return how many.

    In steps, so that the writers of the database never wait long.
    """
    newest = Cycle.objects.order_by("-id").values_list("id", flat=True)[
        KEPT_CYCLES : KEPT_CYCLES + 1
    ]
    floor = next(iter(newest), 0)
    old = Cycle.objects.filter(id__lte=floor, started_at__lt=now - KEPT_FOR)
    dropped = 0
    while keys := list(old.order_by("id").values_list("id", flat=True)[:STEP]):
        count, _by_model = Cycle.objects.filter(id__in=keys).delete()
        dropped += count
    return dropped


def forget_shards(kept: Collection[str]) -> None:
    """Drop what schedulers that are no more have said of queues and pod groups; their sessions stay.

    Parameters
    ----------
    kept : the shards that still have a scheduler
    """
    with transaction.atomic():
        shares = QueueShare.objects.exclude(shard__in=kept)
        standings = GroupStanding.objects.exclude(shard__in=kept)
        live.record("queue", list(shares.values_list("queue", flat=True)))
        live.record("standing", list(standings.values_list("key", flat=True)))
        shares.delete()
        standings.delete()
