"""Sessions (scheduling cycles), bind requests, and the cluster as one item."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from binder.models import BindRequest
from kaiweb.api.base import View, filtered, words
from kaiweb.api.errors import Problem
from kaiweb.api.http import pagination, parameters
from kaiweb.api.schema import scheduling as schema
from kaiweb.items.amounts import timestamp
from kaiweb.items.cluster import cluster_item
from kaiweb.items.sessions import session_item
from scheduler.models import SessionRecord

SESSIONS = pagination.Sorting(key="id", columns={"id": "id"}, default="-id")
BIND_REQUESTS = pagination.Sorting(
    key="key", columns={"name": "key", "createdAt": "created_at"}, default="name"
)


class Sessions(View):
    """The collection."""

    accepts: ClassVar = {"get": (*pagination.PARAMETERS, "shard")}
    repeatable: ClassVar = frozenset({"shard"})

    @extend_schema(
        operation_id="listSessions",
        parameters=parameters.SESSION_FILTERS,
        responses=schema.SessionList,
    )
    def get(self, request: Request) -> Response:
        """List sessions, newest first."""
        rows = SessionRecord.objects.all()
        shards = words(request, "shard")
        if shards:
            rows = rows.filter(shard__in=shards)
        return pagination.answer(
            request, rows, SESSIONS, lambda page: [session_item(row) for row in page]
        )


class SessionDetail(View):
    """One session."""

    @extend_schema(operation_id="getSession", responses=schema.Session)
    def get(self, request: Request, pk: int) -> Response:
        """Return what the session did."""
        row = SessionRecord.objects.filter(pk=pk).first()
        if row is None:
            raise Problem("not-found", f"session {pk} does not exist (any more)")
        return Response(session_item(row))


class BindRequests(View):
    """The collection."""

    accepts: ClassVar = {"get": (*pagination.PARAMETERS, "namespace", "phase", "node")}
    repeatable: ClassVar = frozenset({"namespace", "phase", "node"})

    @extend_schema(
        operation_id="listBindRequests",
        parameters=parameters.BIND_REQUEST_FILTERS,
        responses=schema.BindRequestList,
    )
    def get(self, request: Request) -> Response:
        """List the decisions that are being carried out or have failed."""
        rows = filtered(request, BindRequest.objects.all(), ("namespace", "phase", "node"))
        return pagination.answer(request, rows, BIND_REQUESTS, _bind_request_items)


def _bind_request_items(rows: Sequence[BindRequest]) -> list[dict[str, Any]]:
    return [
        {
            "namespace": row.namespace,
            "name": row.name,
            "pod": row.pod.partition("/")[2],
            "node": row.node,
            "phase": row.phase,
            "reason": row.reason,
            "failedAttempts": row.failed_attempts,
            "resourceType": row.resource_type,
            "gpuGroups": row.gpu_groups,
            "createdAt": timestamp(row.created_at),
        }
        for row in rows
    ]


class Cluster(View):
    """The overview."""

    @extend_schema(operation_id="getCluster", responses=schema.Cluster)
    def get(self, request: Request) -> Response:
        """Return GPUs, nodes, workloads, who starves and who borrows."""
        return Response({**cluster_item(), "asOf": pagination.as_of()})
