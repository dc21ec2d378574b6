"""What happened in a span of time that a webhook is told about."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import DateTimeField, Max
from django.db.models.functions import Coalesce, Greatest

from kaiweb.items.amounts import rounded, timestamp
from kaiweb.models import ChangeSet, ChangeSetState
from kaiweb.notifications import reports
from kaiweb.notifications.models import Event, Webhook
from queues.models import PodGroup, WorkloadState
from queues.tree import hierarchy
from scheduler.models import EvictionRecord, SessionRecord

#: A scheduler records a session at least every ten seconds.
SILENT_AFTER = timedelta(minutes=2)
#: Sessions older than this say nothing about a shard: it may have been deleted.
FORGOTTEN_AFTER = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One event: its facts as they are sent, and a key that is the same however often it is seen."""

    key: str
    facts: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Window:
    """For whom, and from when (exclusive) to when, events are looked for."""

    webhook: Webhook
    tree: hierarchy.Tree
    start: datetime
    end: datetime

    def concerns(self, queue: str) -> bool:
        """Return whether a queue is the subtree of the webhook or below it."""
        subtree = self.webhook.subtree
        return not subtree or subtree == queue or subtree in hierarchy.ancestors(self.tree, queue)

    def has(self, moment: datetime) -> bool:
        """Return whether a moment is in the window."""
        return self.start < moment <= self.end


def occurrences(event: str, window: Window) -> Iterator[Occurrence]:
    """Yield the events of one kind in a window."""
    return FINDERS[event](window)


def _waits(window: Window) -> Iterator[Occurrence]:
    patience = timedelta(minutes=window.webhook.wait_minutes)
    since = Greatest(
        "created_at", Coalesce("last_eviction", "created_at"), output_field=DateTimeField()
    )
    rows = PodGroup.objects.filter(state=WorkloadState.PENDING, is_held=False).order_by()
    rows = rows.annotate(since=since).filter(
        since__gt=window.start - patience, since__lte=window.end - patience
    )
    columns = ("uid", "key", "queue", "user", "gpu", "reason_code", "reason_text", "since")
    for uid, workload, queue, user, gpu, code, text, waits_since in rows.values_list(*columns):
        if window.concerns(queue):
            facts = {
                "workload": workload, "queue": queue, "user": user, "gpu": rounded(gpu),
                "waitingSince": timestamp(waits_since), "reason": code, "reasonText": text[:500],
            }  # fmt: skip
            yield Occurrence(f"{uid} {timestamp(waits_since)}", facts)


def _evicted(window: Window) -> Iterator[Occurrence]:
    rows = EvictionRecord.objects.filter(at__gt=window.start, at__lte=window.end)
    for row in rows.order_by("id").iterator(chunk_size=1000):
        if window.concerns(row.queue):
            facts = {
                "workload": row.workload, "queue": row.queue, "rule": row.rule,
                "evictor": row.evictor or None, "evictorQueue": row.evictor_queue or None,
                "pods": row.pods, "gpu": rounded(row.gpu), "at": timestamp(row.at),
            }  # fmt: skip
            yield Occurrence(f"{row.pk}", facts)


def _changes(state: ChangeSetState) -> Callable[[Window], Iterator[Occurrence]]:
    def find(window: Window) -> Iterator[Occurrence]:
        rows = ChangeSet.objects.filter(
            state=state, changed_at__gt=window.start, changed_at__lte=window.end
        )
        for row in rows.select_related("author").order_by("id"):
            queues = [str(edit.get("name", "")) for edit in row.edits]
            if any(map(window.concerns, queues)):
                facts = {
                    "change": row.pk, "title": row.title, "author": row.author.get_username(),
                    "queues": queues[:20], "state": row.state, "at": timestamp(row.changed_at),
                }  # fmt: skip
                yield Occurrence(f"{row.pk} {timestamp(row.changed_at)}", facts)

    return find


def _silent_shards(window: Window) -> Iterator[Occurrence]:
    rows = SessionRecord.objects.filter(started_at__gt=window.end - FORGOTTEN_AFTER).order_by()
    for shard, last in rows.values_list("shard").annotate(last=Max("started_at")):
        if window.has(last + SILENT_AFTER):
            facts = {"shard": shard, "lastSession": timestamp(last)}
            yield Occurrence(f"{shard} {timestamp(last)}", facts)


def _usage(window: Window) -> Iterator[Occurrence]:
    for start, end in reports.ended_periods(window.webhook.report, window.start, window.end):
        facts = reports.report(start, end, window.webhook.subtree, window.tree)
        yield Occurrence(f"{timestamp(end)}", facts)


FINDERS: Mapping[str, Callable[[Window], Iterator[Occurrence]]] = {
    Event.WORKLOAD_WAITS.value: _waits,
    Event.WORKLOAD_EVICTED.value: _evicted,
    Event.CHANGE_REQUESTED.value: _changes(ChangeSetState.REQUESTED),
    Event.CHANGE_APPLIED.value: _changes(ChangeSetState.APPLIED),
    Event.SHARD_NOT_READY.value: _silent_shards,
    Event.USAGE_REPORT.value: _usage,
}
