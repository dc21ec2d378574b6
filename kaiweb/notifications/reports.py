"""The usage report of a week or a month, as a webhook gets it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, time, timedelta
from typing import Any

from kaiweb.items.amounts import timestamp
from kaiweb.notifications.models import ReportPeriod
from kaiweb.usage.prices import price_list
from kaiweb.usage.ranges import Range
from kaiweb.usage.tiers import DAY
from kaiweb.usage.totals import By, usage_items
from queues.tree import hierarchy

#: After the end of a period: by then its last samples are summed up.
SETTLED_AFTER = timedelta(minutes=15)
MAX_ROWS = 100


def ended_periods(
    period: str, after: datetime, until: datetime
) -> Iterator[tuple[datetime, datetime]]:
    """Yield start and end of the periods whose report became complete after one moment and until another."""
    end = _last_start(period, until.astimezone(UTC) - SETTLED_AFTER)
    while end + SETTLED_AFTER > after:
        start = _last_start(period, end - timedelta(seconds=1))
        yield start, end
        end = start


def report(start: datetime, end: datetime, subtree: str, tree: hierarchy.Tree) -> dict[str, Any]:
    """Return the use by queue and by user, the largest first, and the total; of a subtree or of all."""
    span = Range.of(start, end, end, max_points=1000, step=DAY)
    queues = hierarchy.subtree(tree, subtree) if subtree else None
    by_queue, total = usage_items(span, By.QUEUE, tree, queues)
    by_user, _total = usage_items(span, By.OWNER, tree, queues)
    return {
        "from": timestamp(start),
        "to": timestamp(end),
        "subtree": subtree or None,
        "currency": price_list().currency,
        "total": total,
        "queues": _largest(by_queue),
        "users": _largest(by_user),
    }


def _largest(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(items, key=lambda item: (-item["gpuHours"], item["key"]))[:MAX_ROWS]


def _last_start(period: str, moment: datetime) -> datetime:
    """Return the last start of a period at or before a moment."""
    midnight = datetime.combine(moment.date(), time(), tzinfo=UTC)
    if period == ReportPeriod.WEEKLY:
        return midnight - timedelta(days=midnight.weekday())
    return midnight.replace(day=1)
