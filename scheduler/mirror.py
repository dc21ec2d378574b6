"""Read the standings of pod groups, which give the mirror the reason of a waiting workload."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from queues import live
from queues.models import LiveChange
from queues.workloads.reasons import Standing
from scheduler.models import GroupStanding


def standings(groups: Collection[str]) -> Mapping[str, Standing]:
    """Return the standings of these pod groups that waited in the last cycle."""
    rows = GroupStanding.objects.in_bulk(list(groups))
    return {
        key: Standing(code=row.code, text=row.text, position=row.position)
        for key, row in rows.items()
    }


def changed_since(position: int) -> tuple[int, list[str]]:
    """Return the pod groups whose standing changed after a position of the live log, and its new end."""
    newest = live.position()
    changes = LiveChange.objects.filter(kind="standing", id__gt=position, id__lte=newest)
    return newest, list(changes.values_list("key", flat=True).distinct().order_by("key"))
