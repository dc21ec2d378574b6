"""Whether something has happened yet; `kaiweb.api.streams.waiting` asks again until it has, or time is over."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from binder.models import BindRequest
from kaiweb.api.base import Shows, View
from kaiweb.api.errors import Problem, bad_parameter
from kaiweb.api.http import parameters
from kaiweb.api.schema import queues as queue_schema
from kaiweb.api.schema import workloads as schema
from kaiweb.api.streams.waiting import MAX_TIMEOUT_S
from kaiweb.api.views.workloads import find
from queues.errors import UnknownQueueError
from queues.mirror.lone_pods import pod_of
from queues.models import Pod, PodGroup, Queue, WorkloadState
from queues.workloads.reasons import NOT_EVALUATED

ENDED = (WorkloadState.FINISHED, WorkloadState.FAILED)
MAX_GENERATION = 2**63 - 1
SYNCED = "synced"


class WorkloadWait(View):
    """Wait for a workload."""

    shows = Shows.WORKLOAD
    accepts: ClassVar = {"get": ("for", "timeout")}

    @extend_schema(
        operation_id="waitForWorkload",
        parameters=[
            OpenApiParameter(
                "for", str, required=True, enum=["explained", "scheduled", "bound", "running", "finished"],
                description="explained: started, or with a reason; scheduled: as many pods as it needs have a node or a"
                " bind request; bound: are on nodes; running: run; finished: it ended, well or not.",
            ),
            parameters.TIMEOUT,
        ],
        responses={200: schema.WorkloadWaited, 202: schema.WorkloadWaited},
    )  # fmt: skip
    def get(self, request: Request, namespace: str, name: str) -> Response:
        """Answer 200 once it is reached, 202 if it is not within the timeout, 409 if it never will be."""
        event = request.query_params.get("for", "")
        if event not in EVENTS:
            raise bad_parameter("for", f"expected {', '.join(EVENTS)}", event, [*EVENTS])
        _check_timeout(request)
        row = find(namespace, name)
        is_reached = EVENTS[event](row)
        if not is_reached and row.state in ENDED:
            raise Problem("impossible", f"'{row.key}' is {row.state}, so it will never be {event}")
        body = {
            "reached": is_reached,
            "state": row.state,
            "reason": row.reason_code,
            "reasonText": row.reason_text,
        }
        return _answer(body)


class QueueWait(View):
    """Wait until an edit of a queue is shown."""

    shows = Shows.QUEUE
    accepts: ClassVar = {"get": ("for", "generation", "timeout")}

    @extend_schema(
        operation_id="waitForQueue",
        parameters=[
            OpenApiParameter(
                "for",
                str,
                enum=[SYNCED],
                description="synced, also when absent: the mirror shows the generation.",
            ),
            OpenApiParameter(
                "generation",
                {"type": "integer", "minimum": 0, "maximum": MAX_GENERATION},
                required=True,
                description="As a write has answered it.",
            ),
            parameters.TIMEOUT,
        ],
        responses={200: queue_schema.QueueWaited, 202: queue_schema.QueueWaited},
    )
    def get(self, request: Request, name: str) -> Response:
        """Answer 200 once lists and live frames show this generation of the queue, 202 if they do not in time."""
        event = request.query_params.get("for", SYNCED)
        if event != SYNCED:
            raise bad_parameter("for", f"expected {SYNCED}", event, [SYNCED])
        awaited_generation = _number(request, "generation", MAX_GENERATION)
        _check_timeout(request)
        row = Queue.objects.filter(name=name).first()
        if row is None:
            raise UnknownQueueError(name)
        return _answer(
            {"reached": row.generation >= awaited_generation, "generation": row.generation}
        )


def _answer(body: Mapping[str, Any]) -> Response:
    if body["reached"]:
        return Response(body)
    return Response(body, status=202, headers={"Retry-After": "1"})


def _check_timeout(request: Request) -> None:
    if "timeout" in request.query_params:
        _number(request, "timeout", MAX_TIMEOUT_S)


def _number(request: Request, name: str, largest: int) -> int:
    text = request.query_params.get(name, "")
    is_number = text.isascii() and text.isdecimal() and len(text) < 20
    if not is_number or int(text) > largest:
        raise bad_parameter(name, f"expected a whole number up to {largest}", text, largest)
    return int(text)


def _pods(row: PodGroup) -> QuerySet[Pod]:
    if row.is_lone_pod:
        return Pod.objects.filter(key=pod_of(row))
    return Pod.objects.filter(group=row.key)


def _is_explained(row: PodGroup) -> bool:
    waits = row.state in (WorkloadState.PENDING, WorkloadState.GATED)
    return not waits or row.reason_code not in ("", NOT_EVALUATED)


def _is_scheduled(row: PodGroup) -> bool:
    unbound = list(_pods(row).filter(node="").values_list("key", flat=True))
    requests = BindRequest.objects.filter(pod__in=unbound).exclude(phase="Failed")
    return row.pods_bound + requests.count() >= max(1, row.min_member) or row.state in ENDED


def _is_bound(row: PodGroup) -> bool:
    return row.state in (WorkloadState.RUNNING, WorkloadState.FINISHED)


def _is_running(row: PodGroup) -> bool:
    if row.state == WorkloadState.FINISHED:
        return True
    return _pods(row).filter(phase="Running").count() >= max(1, row.min_member)


def _is_finished(row: PodGroup) -> bool:
    return row.state in ENDED


#: What can be waited for -> whether a workload has reached it.
EVENTS: Mapping[str, Callable[[PodGroup], bool]] = {
    "explained": _is_explained,
    "scheduled": _is_scheduled,
    "bound": _is_bound,
    "running": _is_running,
    "finished": _is_finished,
}
