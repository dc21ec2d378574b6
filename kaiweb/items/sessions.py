"""Session items: the record of a scheduling cycle, with what it did and how long it took; and evictions."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from kaiweb.items.amounts import rounded, timestamp
from scheduler.models import EvictionRecord, SessionRecord

LISTED_SESSIONS = 200


def session_items(keys: Collection[str] | None = None) -> list[dict[str, Any]]:
    """Return the items of the sessions with these ids, or of the last two hundred; newest first."""
    rows = SessionRecord.objects.defer("decisions").order_by("-id")
    if keys is None:
        return [session_item(row) for row in rows[:LISTED_SESSIONS]]
    ids = [int(key) for key in keys if key.isdecimal()]
    return [session_item(row) for row in rows.filter(id__in=ids)]


def session_item(row: SessionRecord) -> dict[str, Any]:
    """Return the item of a session."""
    return {
        "id": row.pk,
        "shard": row.shard,
        "number": row.number,
        "startedAt": timestamp(row.started_at),
        "durationMs": rounded(row.duration_ms),
        "snapshotMs": rounded(row.snapshot_ms),
        "commitMs": rounded(row.commit_ms),
        "actions": row.actions,
        "nodes": row.nodes,
        "queues": row.queues,
        "podGroups": row.pod_groups,
        "pods": row.pods,
        "pendingBefore": row.pending_before,
        "bound": row.bound,
        "evicted": row.evicted,
        "nominated": row.nominated,
        "unschedulable": row.unschedulable,
        "decided": row.decided,
        "error": row.error,
    }


def eviction_item(row: EvictionRecord) -> dict[str, Any]:
    """Return the item of an eviction: the pods of one workload that lost their place in one session."""
    return {
        "id": row.pk,
        "session": row.session,
        "at": timestamp(row.at),
        "shard": row.shard,
        "rule": row.rule,
        "workload": row.workload,
        "queue": row.queue,
        "evictor": row.evictor,
        "evictorQueue": row.evictor_queue,
        "pods": row.pods,
        "gpu": rounded(row.gpu),
        "text": row.text,
    }
