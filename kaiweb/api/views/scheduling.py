"""Sessions (scheduling cycles), evictions, bind requests, and the cluster as one item."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, ClassVar

from django.db.models import Count, Q, QuerySet, Sum
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from binder.models import BindRequest
from kaiweb.api.base import Shows, View, caller_visibility, filtered, words
from kaiweb.api.errors import Problem
from kaiweb.api.http import pagination, parameters, periods
from kaiweb.api.schema import scheduling as schema
from kaiweb.items.amounts import rounded, timestamp
from kaiweb.items.cluster import cluster_item
from kaiweb.items.masks import masked_cluster, masked_eviction
from kaiweb.items.sessions import eviction_item, session_item
from kaiweb.items.visibility import Visibility
from queues.models import Pod, PodGroup
from queues.selectors import row_with_number
from scheduler.models import EvictionRecord, SessionRecord

PERIOD = ("from", "to")
#: Parameter -> column.
EVICTION_COLUMNS = {
    "queue": "queue",
    "evictorQueue": "evictor_queue",
    "rule": "rule",
    "workload": "workload",
    "evictor": "evictor",
}
DECISION_FIELDS = ("kind", "queue", "workload")
EVICTOR_FILTERS = frozenset({"evictor", "evictorQueue"})
EVICTIONS = pagination.Sorting(key="id", columns={"id": "id"}, default="-id")
SESSIONS = pagination.Sorting(key="id", columns={"id": "id"}, default="-id")
BIND_REQUESTS = pagination.Sorting(
    key="key", columns={"name": "key", "createdAt": "created_at"}, default="name"
)


class Sessions(View):
    """The collection."""

    shows = Shows.ITSELF
    accepts: ClassVar = {"get": (*pagination.PARAMETERS, "shard")}
    repeatable: ClassVar = frozenset({"shard"})

    @extend_schema(
        operation_id="listSessions",
        parameters=parameters.SESSION_FILTERS,
        responses=schema.SessionList,
    )
    def get(self, request: Request) -> Response:
        """List sessions, newest first."""
        rows = SessionRecord.objects.defer("decisions")
        shards = words(request, "shard")
        if shards:
            rows = rows.filter(shard__in=shards)
        return pagination.answer(
            request, rows, SESSIONS, lambda page: [session_item(row) for row in page]
        )


class SessionDetail(View):
    """One session."""

    shows = Shows.ITSELF

    @extend_schema(operation_id="getSession", responses=schema.SessionDetail)
    def get(self, request: Request, pk: int) -> Response:
        """Return what the session did, with what it decided about each workload."""
        row = _session(pk)
        decisions = _decisions(row, caller_visibility(request))
        return Response({**session_item(row), "decisions": decisions})


class SessionDecisions(View):
    """What one session decided."""

    shows = Shows.ITSELF
    accepts: ClassVar = {"get": DECISION_FIELDS}
    repeatable: ClassVar = frozenset(DECISION_FIELDS)

    @extend_schema(
        operation_id="listSessionDecisions",
        parameters=parameters.DECISION_FILTERS,
        responses=schema.DecisionList,
    )
    def get(self, request: Request, pk: int) -> Response:
        """List what the session decided about workloads, in its order; at most its first 300 decisions."""
        decisions = _decisions(_session(pk), caller_visibility(request))
        for name in DECISION_FIELDS:
            values = words(request, name)
            if values:
                decisions = [entry for entry in decisions if entry[name] in values]
        return Response({"items": decisions})


def _session(pk: int) -> SessionRecord:
    row = row_with_number(SessionRecord.objects.all(), pk)
    if row is None:
        raise Problem("not-found", f"session {pk} does not exist (any more)")
    return row


def _decisions(row: SessionRecord, visibility: Visibility) -> list[dict[str, Any]]:
    decisions = [masked_eviction(entry, visibility) for entry in row.decisions]
    return [entry for entry in decisions if not visibility.is_partial or entry["queue"]]


class Evictions(View):
    """The collection."""

    shows = Shows.ITSELF
    accepts: ClassVar = {"get": (*pagination.PARAMETERS, *PERIOD, *EVICTION_COLUMNS)}
    repeatable: ClassVar = frozenset(EVICTION_COLUMNS)

    @extend_schema(
        operation_id="listEvictions",
        parameters=parameters.EVICTION_FILTERS,
        responses=schema.EvictionList,
    )
    def get(self, request: Request) -> Response:
        """List evictions of a span of time, newest first."""
        start, end = _period(request)
        visibility = caller_visibility(request)
        rows = visibility.rows(EvictionRecord.objects.filter(at__gte=start, at__lt=end))
        if EVICTOR_FILTERS & set(request.query_params):
            rows = visibility.rows(rows, "evictor_queue")
        return pagination.answer(
            request,
            filtered(request, rows, EVICTION_COLUMNS),
            EVICTIONS,
            lambda page: [masked_eviction(eviction_item(row), visibility) for row in page],
        )


class EvictionDetail(View):
    """One eviction."""

    shows = Shows.ITSELF

    @extend_schema(operation_id="getEviction", responses=schema.Eviction)
    def get(self, request: Request, pk: int) -> Response:
        """Return whose pods lost their place, to whom, by which rule."""
        visibility = caller_visibility(request)
        row = row_with_number(visibility.rows(EvictionRecord.objects.all()), pk)
        if row is None:
            raise Problem("not-found", f"eviction {pk} does not exist (any more)")
        return Response(masked_eviction(eviction_item(row), visibility))


class EvictionMatrix(View):
    """Who evicted from whom."""

    shows = Shows.ITSELF
    accepts: ClassVar = {"get": PERIOD}

    @extend_schema(
        operation_id="getEvictionMatrix",
        parameters=parameters.EVICTION_PERIOD,
        responses=schema.EvictionMatrix,
    )
    def get(self, request: Request) -> Response:
        """Return evictions summed by the two queues and the rule."""
        start, end = _period(request)
        visibility = caller_visibility(request)
        rows = (
            visibility.rows(EvictionRecord.objects.filter(at__gte=start, at__lt=end))
            .values("queue", "evictor_queue", "rule")
            .annotate(evictions=Count("id"), all_pods=Sum("pods"), gpus=Sum("gpu"))
            .order_by("queue", "evictor_queue", "rule")
        )
        items = [
            {
                "queue": row["queue"],
                "evictorQueue": row["evictor_queue"]
                if visibility.shows(row["evictor_queue"])
                else "",
                "rule": row["rule"],
                "evictions": row["evictions"],
                "pods": row["all_pods"],
                "gpu": rounded(row["gpus"]),
            }
            for row in rows
        ]
        return Response({"start": timestamp(start), "end": timestamp(end), "items": items})


def _period(request: Request) -> tuple[datetime, datetime]:
    """Return the span of `from` and `to`; by default the last day."""
    end = periods.moment(request, "to") or timezone.now()
    return periods.start_before(request, end, timedelta(days=1)), end


class BindRequests(View):
    """The collection."""

    shows = Shows.ITSELF
    accepts: ClassVar = {"get": (*pagination.PARAMETERS, "namespace", "phase", "node")}
    repeatable: ClassVar = frozenset({"namespace", "phase", "node"})

    @extend_schema(
        operation_id="listBindRequests",
        parameters=parameters.BIND_REQUEST_FILTERS,
        responses=schema.BindRequestList,
    )
    def get(self, request: Request) -> Response:
        """List the decisions that are being carried out or have failed."""
        rows = _visible_requests(caller_visibility(request))
        rows = filtered(request, rows, ("namespace", "phase", "node"))
        return pagination.answer(request, rows, BIND_REQUESTS, _bind_request_items)


class BindRequestDetail(View):
    """One bind request."""

    shows = Shows.ITSELF

    @extend_schema(operation_id="getBindRequest", responses=schema.BindRequest)
    def get(self, request: Request, namespace: str, name: str) -> Response:
        """Return the decision: the pod, the node, and how far carrying it out is."""
        rows = _visible_requests(caller_visibility(request))
        row = rows.filter(namespace=namespace, name=name).first()
        if row is None:
            raise Problem("not-found", f"bind request '{namespace}/{name}' does not exist")
        return Response(_bind_request_items([row])[0])


def _visible_requests(visibility: Visibility) -> QuerySet[BindRequest]:
    """Return the bind requests of pods whose queue may be seen: that of the pod group, or by the label of a lone pod."""
    rows = BindRequest.objects.all()
    if not visibility.is_partial:
        return rows
    groups = visibility.rows(PodGroup.objects.all()).values("key")
    lone = visibility.rows(Pod.objects.filter(group=""))
    pods = Pod.objects.filter(Q(group__in=groups) | Q(key__in=lone.values("key")))
    return rows.filter(pod__in=pods.values("key"))


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

    shows = Shows.ITSELF

    @extend_schema(operation_id="getCluster", responses=schema.Cluster)
    def get(self, request: Request) -> Response:
        """Return GPUs, nodes, workloads, who starves and who borrows."""
        item = masked_cluster(cluster_item(), caller_visibility(request))
        return Response({**item, "asOf": pagination.as_of()})
