"""Queues: list, get, create, put, patch, delete. Writes state what they edit, or they are refused."""

from __future__ import annotations

import re
import time
from typing import Any, ClassVar

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from frontend.items import queues as items
from kaiweb import request_id
from kaiweb.api import pagination, parameters
from kaiweb.api.base import View, caller, flag
from kaiweb.api.errors import Problem
from kaiweb.api.schema import queues as schema
from kube.objects.meta import convert
from queues import hierarchy, live, selectors, services
from queues.cluster import gateway
from queues.errors import StaleQueueError, UnknownQueueError
from queues.mirror.rows import queue_row
from queues.mirror.views import QueueView
from queues.models import LiveChange, Queue

SORTING = pagination.Sorting(
    key="name", columns={"name": "name", "createdAt": "created_at"}, default="name"
)
WRITE = ("dryRun", "reason")
MANAGER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
SYNC_S = 0.6
SYNC_STEP_S = 0.02


class Queues(View):
    """The collection."""

    accepts: ClassVar = {"get": (*pagination.PARAMETERS, "q", "parent", "root"), "post": WRITE}

    @extend_schema(
        operation_id="listQueues", parameters=parameters.QUEUE_FILTERS, responses=schema.QueueList
    )
    def get(self, request: Request) -> Response:
        """List queues; `root` names the subtree, `parent` the direct parent, `q` part of a name."""
        rows = Queue.objects.all()
        asked = request.query_params
        if "parent" in asked:
            rows = rows.filter(parent=asked["parent"])
        if "root" in asked:
            rows = rows.filter(name__in=hierarchy.subtree(selectors.tree(), asked["root"]))
        if asked.get("q"):
            rows = rows.filter(name__icontains=asked["q"])
        return pagination.answer(request, rows, SORTING, items.items_of)

    @extend_schema(
        operation_id="createQueue",
        request=schema.QueueCreate,
        parameters=parameters.DRY_RUN,
        responses={201: schema.QueueWritten},
    )
    def post(self, request: Request) -> Response:
        """Create a queue; what is left out guarantees nothing and caps nothing."""
        edit = _object(request.data)
        name = edit.pop("name", None)
        outcome = services.queue_create(gateway(), name=name, edit=edit, order=_order(request))
        return _written(outcome, request, status=201)


class QueueDetail(View):
    """One queue."""

    accepts: ClassVar = {
        "put": (*WRITE, "fieldManager", "force"),
        "patch": WRITE,
        "delete": WRITE,
    }

    @extend_schema(operation_id="getQueue", responses=schema.Queue)
    def get(self, request: Request, name: str) -> Response:
        """Return the queue as the mirror has it; its ETag is what a write must send back."""
        row = Queue.objects.filter(name=name).first()
        if row is None:
            raise UnknownQueueError(name)
        tag = f'"{row.version}"'
        if request.headers.get("If-None-Match") == tag:
            return Response(status=304, headers={"ETag": tag})
        return Response(items.items_of([row])[0], headers={"ETag": tag})

    @extend_schema(
        operation_id="putQueue",
        request=schema.QueueWrite,
        parameters=[*parameters.DRY_RUN, *parameters.APPLY],
        responses=schema.QueueWritten,
    )
    def put(self, request: Request, name: str) -> Response:
        """Replace the editable fields, create with `If-None-Match: *`, or apply as a field manager."""
        edit = _object(request.data)
        if edit.get("name", name) != name:
            raise Problem("validation", f"name: expected '{name}' as in the address")
        edit.pop("name", None)
        manager = request.query_params.get("fieldManager", "")
        if manager:
            return self._apply(request, name, edit, manager)
        if request.headers.get("If-None-Match") == "*":
            outcome = services.queue_create(gateway(), name=name, edit=edit, order=_order(request))
            return _written(outcome, request, status=201)
        order = _order(request, needs_version=True)
        try:
            outcome = services.queue_replace(gateway(), name=name, edit=edit, order=order)
        except StaleQueueError as error:
            raise _stale(error) from error
        return _written(outcome, request)

    def _apply(self, request: Request, name: str, edit: dict[str, Any], manager: str) -> Response:
        if not MANAGER.fullmatch(manager):
            raise Problem("bad-request", f"fieldManager: expected a name, got '{manager[:40]}'")
        force = flag(request, "force")
        if force and not caller(request).is_admin:
            raise Problem("forbidden", "force needs the right 'admin'")
        try:
            outcome = services.queue_apply(
                gateway(), name=name, edit=edit, manager=manager, force=force,
                order=_order(request),
            )  # fmt: skip
        except StaleQueueError as error:
            raise _stale(error) from error
        return _written(outcome, request)

    @extend_schema(
        operation_id="patchQueue",
        request=schema.QueueWrite,
        parameters=parameters.DRY_RUN,
        responses=schema.QueueWritten,
    )
    def patch(self, request: Request, name: str) -> Response:
        """Change the named fields; null unsets, amounts merge per resource."""
        order = _order(request, needs_version=True)
        try:
            outcome = services.queue_update(
                gateway(), name=name, edit=_object(request.data), order=order
            )
        except StaleQueueError as error:
            raise _stale(error) from error
        return _written(outcome, request)

    @extend_schema(operation_id="deleteQueue", parameters=parameters.DRY_RUN, responses={204: None})
    def delete(self, request: Request, name: str) -> Response:
        """Delete a queue that has no children."""
        order = _order(request, needs_version=True)
        try:
            services.queue_delete(gateway(), name=name, order=order)
        except StaleQueueError as error:
            raise _stale(error) from error
        return Response(status=204)


def _object(data: Any) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise Problem("validation", f"the body: expected an object, got {type(data).__name__}")
    return dict(data)


def _order(request: Request, *, needs_version: bool = False) -> services.Order:
    return services.Order(
        rights=caller(request),
        now=timezone.now(),
        expected_version=_expected_version(request, is_needed=needs_version),
        dry_run=flag(request, "dryRun"),
        reason=request.query_params.get("reason", ""),
        request_id=request_id.current.get(),
    )


def _expected_version(request: Request, *, is_needed: bool) -> str:
    given = request.headers.get("If-Match", "")
    if not given:
        if is_needed:
            raise Problem(
                "precondition-required",
                "send If-Match with the ETag of the queue that you have read",
            )
        return ""
    match = re.fullmatch(r'"([0-9A-Za-z._-]+)"', given)
    if match is None:
        raise Problem("bad-request", f"If-Match: expected a quoted ETag, got '{given[:40]}'")
    return match[1]


def _stale(error: StaleQueueError) -> Problem:
    body = services.queue_read(gateway(), error.name)
    return Problem(
        "precondition-failed",
        str(error),
        extra={"current": _item(body)},
        headers={"ETag": f'"{error.current}"'},
    )


def _item(body: dict[str, Any]) -> dict[str, Any]:
    """Return the item of an object that the mirror may not have seen yet."""
    row = queue_row(convert(body, QueueView))
    return items.items_of([row])[0]


def _written(outcome: services.Outcome, request: Request, *, status: int = 200) -> Response:
    is_dry = flag(request, "dryRun")
    item = _item(outcome.body)
    headers = {"ETag": item["etag"]}
    if outcome.is_written:
        position = _mirrored_position(item["name"], int(item["etag"].strip('"') or 0))
        if position is not None:
            headers["Live-Position"] = f"{live.epoch()}:{position}"
        if status == 201:
            headers["Location"] = f"/api/v1/queues/{item['name']}"
    return Response(
        {
            "queue": item,
            "changed": bool(outcome.diff),
            "dryRun": is_dry,
            "warnings": [finding.as_dict() for finding in outcome.warnings],
            "diff": [one.as_dict() for one in outcome.diff],
        },
        status=200 if is_dry else status,
        headers=headers,
    )


def _mirrored_position(name: str, version: int) -> int | None:
    """Wait a moment for the mirror to see the write; return its position in the live log, if it did."""
    deadline = time.monotonic() + SYNC_S
    while True:
        if Queue.objects.filter(name=name, version__gte=version).exists():
            changes = LiveChange.objects.filter(kind="queue", key=name).order_by("-id")
            return changes.values_list("id", flat=True).first()
        if time.monotonic() >= deadline:
            return None
        time.sleep(SYNC_STEP_S)
