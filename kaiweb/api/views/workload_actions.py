"""Actions on a workload: hold, release, requeue, and another attempt for failed binds.

This process may not write pods. Each action is an annotation of the pod group, which the scheduler obeys.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from msgspec import Meta
from rest_framework.request import Request
from rest_framework.response import Response

from kaiweb.api import idempotency
from kaiweb.api.base import Shows, View, caller
from kaiweb.api.errors import Problem
from kaiweb.api.http import parameters
from kaiweb.api.schema import workloads as schema
from kaiweb.api.views.simulations import is_simulated, preview_of
from kaiweb.api.views.workloads import find
from kaiweb.api.writes import write_request
from kaiweb.items.amounts import timestamp
from kaiweb.planning.change_sets import PREVIEW_CYCLES
from kaiweb.shards.reading import shard_of_pool
from kube.keys import BINDS_RESET_AT, REQUEUE_BEFORE
from kube.values.times import format_time, time_or_none
from queues import selectors
from queues.cluster import gateway
from queues.editing.workload_writes import annotate
from queues.models import AuditAction, PodGroup
from queues.tree import hierarchy
from queues.workloads import holds
from queues.workloads.holds import MAX_REASON_LENGTH
from queues.workloads.holds import Hold as HoldRequest
from scheduler.tools.simulate.what_if.question import Struct, read_body

Reason = Annotated[str, Meta(max_length=MAX_REASON_LENGTH, pattern=r"^[^\x00-\x1f\x7f]*$")]
Moment = Annotated[datetime, Meta(tz=True)]
PARAMETERS = [parameters.ONLY_DRY_RUN, parameters.SIMULATE, parameters.IDEMPOTENCY_KEY]


class _Body(Struct, frozen=True, kw_only=True):
    reason: Reason = ""


class _BodyWithEnd(_Body, frozen=True, kw_only=True):
    until: Moment | None = None


class Hold(View):
    """Keep waiting pods from starting."""

    shows = Shows.WORKLOAD
    accepts: ClassVar = {"post": ("dryRun", "simulate")}

    @extend_schema(
        operation_id="holdWorkload",
        request=schema.HoldWrite,
        parameters=PARAMETERS,
        responses=schema.WorkloadActed,
    )
    def post(self, request: Request, namespace: str, name: str) -> Response:
        """Keep pods that wait from starting, until a time or until it is released; running pods go on."""
        body = read_body(request.data or {}, _BodyWithEnd)
        hold = HoldRequest(body.reason, _future(body.until))
        annotations = holds.annotations_of_hold(hold)
        row = _find_own(request, namespace, name)
        return _act(request, row, AuditAction.HOLD, body.reason, annotations)


class Release(View):
    """End a hold."""

    shows = Shows.WORKLOAD
    accepts: ClassVar = {"post": ("dryRun", "simulate")}

    @extend_schema(
        operation_id="releaseWorkload",
        request=schema.ReleaseWrite,
        parameters=PARAMETERS,
        responses=schema.WorkloadActed,
    )
    def post(self, request: Request, namespace: str, name: str) -> Response:
        """End the hold; a workload that is not held stays as it is."""
        body = read_body(request.data or {}, _Body)
        row = _find_own(request, namespace, name)
        annotations = holds.annotations_of_hold(None)
        return _act(request, row, AuditAction.RELEASE, body.reason, annotations)


class Requeue(View):
    """Evict and wait again."""

    shows = Shows.WORKLOAD
    accepts: ClassVar = {"post": ("dryRun", "simulate")}

    @extend_schema(
        operation_id="requeueWorkload",
        request=schema.HoldWrite,
        parameters=PARAMETERS,
        responses=schema.WorkloadActed,
    )
    def post(self, request: Request, namespace: str, name: str) -> Response:
        """Evict its pods, so that what their owner creates anew waits in the queue; `until` holds it as long.

        Disruption budgets are kept to, minimum run times are not. Refused if nothing would create the pods again.
        """
        body = read_body(request.data or {}, _BodyWithEnd)
        annotations = holds.annotations_of_requeue(timezone.now())
        if body.until is not None:
            hold = HoldRequest(body.reason, _future(body.until))
            annotations |= holds.annotations_of_hold(hold)
        row = _find_own(request, namespace, name)
        if row.owner_kind == "Pod":
            raise Problem("wrong-state", f"nothing would create the pods of '{row.key}' again")
        return _act(request, row, AuditAction.REQUEUE, body.reason, annotations)


class RetryBind(View):
    """Another attempt for pods whose bind failed."""

    shows = Shows.WORKLOAD
    accepts: ClassVar = {"post": ("dryRun",)}

    @extend_schema(
        operation_id="retryWorkloadBind",
        request=None,
        parameters=[parameters.ONLY_DRY_RUN],
        responses={204: None},
    )
    def post(self, request: Request, namespace: str, name: str) -> Response:
        """Forget the failed binds of its pods, so that the next cycle tries them again."""
        row = _find_own(request, namespace, name)
        annotations = {BINDS_RESET_AT: format_time(timezone.now())}
        annotate(gateway(), row, AuditAction.RETRY_BIND, annotations, write_request(request))
        return Response(status=204)


def _act(
    request: Request,
    row: PodGroup,
    action: AuditAction,
    reason: str,
    annotations: Mapping[str, Any],
) -> Response:
    is_simulated(request)  # refuses a wrong parameter before anything is written

    def write() -> Response:
        checked = write_request(request, reason=reason)
        item = _item(row, annotate(gateway(), row, action, annotations, checked))
        question = {
            "shard": shard_of_pool(gateway(), row.pool),
            "workloads": {action.value: [row.key]},
            "cycles": PREVIEW_CYCLES,
        }
        return Response({**item, **preview_of(request, question)})

    return idempotency.answer_once(request, write)


def _find_own(request: Request, namespace: str, name: str) -> PodGroup:
    """Return a pod group on which the caller may act."""
    row = find(namespace, name)
    path = hierarchy.ancestors(selectors.tree(), row.queue)
    if not caller(request).may_act_on_work_in(path):
        raise Problem("forbidden", f"you may not act on the workloads of queue '{row.queue}'")
    if row.is_lone_pod:
        raise Problem(
            "bad-request", f"'{row.key}' is a pod without a pod group; nothing schedules it"
        )
    return row


def _future(moment: datetime | None) -> datetime | None:
    if moment is None:
        return None
    if moment <= timezone.now():
        raise Problem("validation", f"until: expected a time in the future, got {moment}")
    return moment.astimezone(UTC)


def _item(row: PodGroup, body: Mapping[str, Any]) -> dict[str, Any]:
    annotations = body["metadata"].get("annotations") or {}
    hold = holds.hold_of(annotations)
    return {
        "namespace": row.namespace,
        "name": row.name,
        "hold": {"reason": hold.reason, "until": timestamp(hold.until), "by": hold.by}
        if hold
        else None,
        "requeueBefore": timestamp(time_or_none(annotations.get(REQUEUE_BEFORE))),
    }
