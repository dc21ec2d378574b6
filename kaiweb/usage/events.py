"""Starts and evictions of workloads: noted from the mirror with each sample, counted by queue and day.

The scheduler writes the times of the last start and the last eviction on a pod group, so an event is seen as long
as the pod group exists and no later one of its kind replaced it between two samples.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from math import ceil

from django.db.models import Max

from kaiweb.usage import tiers
from kaiweb.usage.models import EventKind, QueueDay, WorkloadEvent
from queues.models import PodGroup
from queues.selectors import tree
from queues.tree import hierarchy
from queues.tree.shape import QueueShape

#: How far back a sample looks for events that the mirror saw late.
LOOK_BACK = timedelta(minutes=10)
#: How long the single events are kept; the counts of a day are kept longer.
KEPT = timedelta(days=3)


def note(now: datetime) -> int:
    """Write the events since the last look that are not written yet; return how many were looked at."""
    newest = WorkloadEvent.objects.aggregate(at=Max("at"))["at"]
    since = min(now, newest or now) - LOOK_BACK
    events = [*_starts(since), *_evictions(since)]
    WorkloadEvent.objects.bulk_create(events, ignore_conflicts=True)
    return len(events)


def _starts(since: datetime) -> Iterable[WorkloadEvent]:
    rows = PodGroup.objects.filter(last_start__gte=since).order_by()
    columns = ("uid", "queue", "created_at", "last_start", "last_eviction")
    for uid, queue, created_at, started_at, evicted_at in rows.values_list(*columns):
        # After an eviction the workload waits anew.
        waits_since = created_at
        if evicted_at is not None and evicted_at < started_at:
            waits_since = max(created_at, evicted_at)
        yield WorkloadEvent(
            kind=EventKind.START,
            uid=uid,
            at=started_at,
            queue=queue,
            waited_s=max(0.0, (started_at - waits_since).total_seconds()),
        )


def _evictions(since: datetime) -> Iterable[WorkloadEvent]:
    rows = PodGroup.objects.filter(last_eviction__gte=since).order_by()
    for uid, queue, at in rows.values_list("uid", "queue", "last_eviction"):
        assert at is not None
        yield WorkloadEvent(kind=EventKind.EVICTION, uid=uid, at=at, queue=queue)


@dataclass(slots=True)
class DayCount:
    """What happened in one queue on one day."""

    waited_s: list[float] = field(default_factory=list)
    evictions: int = 0

    def as_row(self, queue: str, day: date) -> QueueDay:
        """Return the row; quantiles are nearest-rank."""
        waited = sorted(self.waited_s)
        return QueueDay(
            day=day,
            queue=queue,
            starts=len(waited),
            evictions=self.evictions,
            waited_p50_s=_quantile(waited, 0.5),
            waited_p90_s=_quantile(waited, 0.9),
            waited_max_s=waited[-1] if waited else None,
        )


def _quantile(ordered: list[float], part: float) -> float | None:
    return ordered[max(0, ceil(part * len(ordered)) - 1)] if ordered else None


def count_day(day: date, shapes: Mapping[str, QueueShape]) -> list[QueueDay]:
    """Return the rows of one day from the events that are still kept; a parent counts all queues below it."""
    start = datetime.combine(day, time(), tzinfo=UTC)
    events = WorkloadEvent.objects.filter(at__gte=start, at__lt=start + timedelta(days=1))
    counts: dict[str, DayCount] = defaultdict(DayCount)
    for queue, waited_s in events.order_by().values_list("queue", "waited_s"):
        for name in hierarchy.ancestors(shapes, queue) or [queue]:
            if waited_s is None:
                counts[name].evictions += 1
            else:
                counts[name].waited_s.append(waited_s)
    return [counts[name].as_row(name, day) for name in sorted(counts)]


def first_open_day(now: datetime) -> date:
    """Return the first day whose events may not all be known yet."""
    return (now - LOOK_BACK).date()


def open_days(now: datetime) -> list[date]:
    """Return the days whose events are kept and may not be counted yet."""
    first = (now - KEPT).date()
    return [first + timedelta(days=number) for number in range((now.date() - first).days + 1)]


def close_days(now: datetime) -> int:
    """Write the rows of days that have ended, and delete old events and rows; return how many rows were written."""
    until = first_open_day(now)
    last = QueueDay.objects.aggregate(day=Max("day"))["day"]
    day = (now - KEPT).date()
    if last is not None:
        day = max(day, last + timedelta(days=1))
    shapes = tree()
    written = 0
    while day < until:
        rows = QueueDay.objects.bulk_create(count_day(day, shapes))
        written += len(rows)
        day += timedelta(days=1)
    WorkloadEvent.objects.filter(at__lt=now - KEPT).delete()
    QueueDay.objects.filter(day__lt=(now - tiers.retention(tiers.DAY)).date()).delete()
    return written
