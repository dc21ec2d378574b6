"""What happened to a workload: its start, evictions, requests by people, and the events of the cluster, in one order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from kaiweb.api.base import Shows, View, caller_visibility
from kaiweb.api.schema import details as schema
from kaiweb.api.views.details.manifests import events_about
from kaiweb.api.views.workloads import find
from kaiweb.items.amounts import timestamp
from kaiweb.items.masks import masked_eviction
from kaiweb.items.sessions import eviction_item
from kaiweb.items.visibility import Visibility
from queues.models import AuditKind, PodGroup, QuotaChange
from scheduler.models import EvictionRecord

#: The newest of each kind.
LISTED = 200


class WorkloadTimeline(View):
    """The story of one workload."""

    shows = Shows.WORKLOAD
    accepts: ClassVar = {"get": ()}

    @extend_schema(operation_id="getWorkloadTimeline", responses=schema.Timeline)
    def get(self, request: Request, namespace: str, name: str) -> Response:
        """List what happened to the workload, newest first; the newest 200 of each kind."""
        row = find(namespace, name)
        moments = [
            *_own(row),
            *_evictions(row, caller_visibility(request)),
            *_requests(row),
            *_events(row),
        ]
        moments.sort(key=lambda moment: str(moment["at"]), reverse=True)
        return Response({"items": moments})


def _moment(time: object, kind: str, event_text: str, **more: Any) -> dict[str, Any]:
    empty = {"about": "", "text": "", "actor": None, "session": None, "count": 1}
    return {"at": time, "kind": kind, "what": event_text, **empty, **more}


def _own(row: PodGroup) -> Iterator[dict[str, Any]]:
    yield _moment(timestamp(row.created_at), "created", "created")
    if row.started_at is not None:
        yield _moment(timestamp(row.started_at), "started", "started")


def _evictions(row: PodGroup, visibility: Visibility) -> Iterator[dict[str, Any]]:
    records = EvictionRecord.objects.filter(workload=row.key, at__gte=row.created_at)
    for record in records.order_by("-at")[:LISTED]:
        item = masked_eviction(eviction_item(record), visibility)
        yield _moment(
            item["at"], "evicted", item["rule"],
            about=item["evictor"], text=item["text"], session=item["session"], count=item["pods"],
        )  # fmt: skip


def _requests(row: PodGroup) -> Iterator[dict[str, Any]]:
    entries = QuotaChange.objects.filter(
        kind=AuditKind.WORKLOAD, target=row.key, at__gte=row.created_at
    )
    for entry in entries.order_by("-at")[:LISTED]:
        yield _moment(
            timestamp(entry.at), "request", entry.action, text=entry.reason, actor=entry.actor
        )


def _events(row: PodGroup) -> Iterator[dict[str, Any]]:
    for event in events_about(row):
        if event["lastSeen"]:
            yield _moment(
                event["lastSeen"], "event", event["reason"],
                about=event["about"], text=event["text"], count=event["count"],
            )  # fmt: skip
