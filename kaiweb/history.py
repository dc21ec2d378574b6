"""How long scheduling sessions stay on record."""

from __future__ import annotations

from datetime import datetime, timedelta

from scheduler.models import Cycle

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
