"""Queues: list, get, create, put, patch, delete. A write names the version that it edits, or is refused."""

from __future__ import annotations

import logging
import re
from typing import Any, ClassVar

import msgspec
from django.db import DatabaseError
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from kaiweb.api import idempotency
from kaiweb.api.base import Shows, View, caller, caller_visibility, flag
from kaiweb.api.bounded_wait import wait_until
from kaiweb.api.errors import Problem, bad_parameter
from kaiweb.api.http import pagination, parameters
from kaiweb.api.schema import queues as schema
from kaiweb.api.schema.queue_writes import QueueWritten
from kaiweb.api.versions import expected_tag
from kaiweb.api.views.simulations import is_simulated, preview_of
from kaiweb.api.writes import stale_problem, write_request, written_answer
from kaiweb.items import queues as items
from kaiweb.planning.change_sets import PREVIEW_CYCLES
from kaiweb.planning.plan import edit_between
from kube.objects.meta import convert
from kube.store import version_of
from queues import live, selectors, services
from queues.access.rights import APPLY_FORCE
from queues.cluster import gateway
from queues.editing.bodies import read_or_none
from queues.editing.tags import tag_of_row
from queues.editing.write_requests import WriteRequest, WriteResult
from queues.errors import StaleQueueError, UnknownQueueError
from queues.mirror.rows import queue_row
from queues.mirror.views import QueueView
from queues.models import LiveChange, Queue
from queues.tree import hierarchy
from queues.tree.shape import shown
from scheduler.tools.simulate.what_if.question import QueueEdit

log = logging.getLogger(__name__)

SORTING = pagination.Sorting(
    key="name", columns={"name": "name", "createdAt": "created_at"}, default="name"
)
WRITE = ("dryRun", "simulate", "reason")
MANAGER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
MIRROR_WAIT_S = 0.6


class Queues(View):
    """The collection."""

    shows = Shows.ITSELF
    accepts: ClassVar = {"get": (*pagination.PARAMETERS, "q", "parent", "root"), "post": WRITE}

    @extend_schema(
        operation_id="listQueues", parameters=parameters.QUEUE_FILTERS, responses=schema.QueueList
    )
    def get(self, request: Request) -> Response:
        """List queues; `root` names the subtree, `parent` the direct parent, `q` part of a name."""
        rows = caller_visibility(request).rows(Queue.objects.all(), "name")
        filters = request.query_params
        if "parent" in filters:
            rows = rows.filter(parent=filters["parent"])
        if "root" in filters:
            rows = rows.filter(name__in=hierarchy.subtree(selectors.tree(), filters["root"]))
        if filters.get("q"):
            rows = rows.filter(name__icontains=filters["q"])
        return pagination.answer(request, rows, SORTING, items.items_of)

    @extend_schema(
        operation_id="createQueue",
        request=schema.QueueCreate,
        parameters=[*parameters.DRY_RUN, parameters.IDEMPOTENCY_KEY],
        responses={201: QueueWritten},
    )
    def post(self, request: Request) -> Response:
        """Create a queue; what is left out guarantees nothing and caps nothing."""
        if "If-Match" in request.headers:
            raise Problem("bad-request", "If-Match: a creation edits no version, so expected none")
        return idempotency.answer_once(request, lambda: self._create(request))

    def _create(self, request: Request) -> Response:
        edit = _object(request.data)
        name = edit.pop("name", None)
        result = services.queue_create(
            gateway(), name=name, edit=edit, request=_write_request(request)
        )
        return _written(result, request, status=201)


class QueueDetail(View):
    """One queue."""

    shows = Shows.QUEUE
    accepts: ClassVar = {
        "put": (*WRITE, "fieldManager", "force"),
        "patch": WRITE,
        "delete": WRITE,
    }

    @extend_schema(operation_id="getQueue", responses=schema.Queue)
    def get(self, request: Request, name: str) -> Response:
        """Return the queue as the mirror has it; its ETag is what a write must send back.

        A write compares only the part of it before the dot, the version of what people edit, which stays while
        status and use change.
        """
        row = Queue.objects.filter(name=name).first()
        if row is None:
            raise UnknownQueueError(name)
        return Response(items.items_of([row])[0], headers={"ETag": f'"{tag_of_row(row)}"'})

    @extend_schema(
        operation_id="putQueue",
        request=schema.QueueWrite,
        parameters=[*parameters.DRY_RUN, *parameters.APPLY],
        responses={200: QueueWritten, 201: QueueWritten},
    )
    def put(self, request: Request, name: str) -> Response:
        """Replace the editable fields, create with `If-None-Match: *`, or apply as a field manager."""
        edit = _object(request.data)
        if edit.get("name", name) != name:
            raise _field_fault("/name", f"name: expected '{name}' as in the address", edit["name"])
        edit.pop("name", None)
        manager = request.query_params.get("fieldManager", "")
        is_creation = _is_creation(request, manager)
        if manager:
            return self._apply(request, name, edit, manager)
        if "force" in request.query_params:
            raise bad_parameter("force", "expected only together with fieldManager", "force")
        if is_creation:
            result = services.queue_create(
                gateway(), name=name, edit=edit, request=_write_request(request)
            )
            return _written(result, request, status=201)
        checked = _write_request(request, needs_version=True)
        try:
            result = services.queue_replace(gateway(), name=name, edit=edit, request=checked)
        except StaleQueueError as error:
            raise _stale(error) from error
        return _written(result, request)

    def _apply(self, request: Request, name: str, edit: dict[str, Any], manager: str) -> Response:
        if not MANAGER.fullmatch(manager):
            raise bad_parameter("fieldManager", "expected a name", manager)
        force = flag(request, "force")
        if force and not caller(request).may_force:
            detail = f"force needs the right 'admin', and a token the scope '{APPLY_FORCE}'"
            raise Problem("forbidden", detail)
        try:
            result = services.queue_apply(
                gateway(), name=name, edit=edit, manager=manager, force=force,
                request=_write_request(request),
            )  # fmt: skip
        except StaleQueueError as error:
            raise _stale(error) from error
        return _written(result, request)

    @extend_schema(
        operation_id="patchQueue",
        request=schema.QueueWrite,
        parameters=parameters.DRY_RUN,
        responses=QueueWritten,
    )
    def patch(self, request: Request, name: str) -> Response:
        """Change the named fields; null unsets, amounts merge per resource."""
        checked = _write_request(request, needs_version=True)
        try:
            result = services.queue_update(
                gateway(), name=name, edit=_object(request.data), request=checked
            )
        except StaleQueueError as error:
            raise _stale(error) from error
        return _written(result, request)

    @extend_schema(
        operation_id="deleteQueue",
        parameters=parameters.DRY_RUN,
        responses={200: QueueWritten, 204: None},
    )
    def delete(self, request: Request, name: str) -> Response:
        """Delete a queue that has no children; a dry run answers 200 with what would happen."""
        checked = _write_request(request, needs_version=True)
        try:
            result = services.queue_delete(gateway(), name=name, request=checked)
        except StaleQueueError as error:
            raise _stale(error) from error
        if checked.dry_run:
            return _written(result, request, is_deletion=True)
        return Response(status=204, headers=_warning_header(result))


def _object(data: Any) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise _field_fault("", f"the body: expected an object, got {type(data).__name__}", None)
    return dict(data)


def _field_fault(pointer: str, message: str, value: object) -> Problem:
    entry = {
        "pointer": pointer,
        "code": "type",
        "message": message,
        "given": shown(value),
        "allowed": None,
    }
    return Problem("validation", message, errors=[entry])


def _is_creation(request: Request, manager: str) -> bool:
    condition = request.headers.get("If-None-Match")
    if condition is None:
        return False
    if condition != "*":
        raise Problem("bad-request", f"If-None-Match: expected *, got '{shown(condition)}'")
    if manager or "If-Match" in request.headers:
        raise Problem("bad-request", "If-None-Match: expected without If-Match and fieldManager")
    return True


def _write_request(request: Request, *, needs_version: bool = False) -> WriteRequest:
    is_simulated(request)  # refuses a wrong parameter before anything is written
    tag = expected_tag(request, "queue", is_needed=needs_version)
    return write_request(request, expected_tag=tag)


def _stale(error: StaleQueueError) -> Problem:
    item = _item(services.queue_read(gateway(), error.name))
    return stale_problem(error, item)


def _item(body: dict[str, Any]) -> dict[str, Any]:
    """Return the item of an object that may not be in the mirror yet."""
    row = queue_row(convert(body, QueueView))
    try:
        return items.items_of([row])[0]
    except DatabaseError as error:
        # The write has succeeded, so the answer must not be an error. The item lacks what the database adds.
        log.warning("cannot read what the mirror adds to queue '%s': %s", row.name, error)
        return items.bare_item(row)


def _warning_header(result: WriteResult) -> dict[str, str]:
    if services.UNRECORDED not in result.warnings:
        return {}
    return {"Warning": f'199 kaiweb "{services.UNRECORDED.message}"'}


def _written(
    result: WriteResult, request: Request, *, status: int = 200, is_deletion: bool = False
) -> Response:
    is_dry = flag(request, "dryRun")
    item = _item(result.body)
    preview = _preview(request, result.body, is_deletion=is_deletion)
    headers = {"ETag": item["etag"], **_warning_header(result)}
    if result.is_written:
        version = version_of(convert(result.body, QueueView))
        position = _mirrored_position(item["name"], version)
        if position is not None:
            headers["Live-Position"] = position
        if status == 201:
            headers["Location"] = f"/api/v1/queues/{item['name']}"
    return Response(
        {**written_answer("queue", item, result, is_dry=is_dry), **preview},
        status=status,
        headers=headers,
    )


def _preview(request: Request, body: dict[str, Any], *, is_deletion: bool) -> dict[str, Any]:
    """Return what the scheduler would do after the write, if the caller asks for it with `simulate`."""
    if not is_simulated(request):
        return {}
    name = body["metadata"]["name"]
    edit = QueueEdit(name=name, action="delete")
    if not is_deletion:
        edit = edit_between(name, read_or_none(gateway(), name), body)
    return preview_of(request, {"queues": [msgspec.to_builtins(edit)], "cycles": PREVIEW_CYCLES})


def _mirrored_position(name: str, version: int) -> str | None:
    """Return the position of the write in the live log; None if the mirror has not seen it in time.

    The log is looked at directly. The hub of the live sockets gathers changes for longer than a write should
    wait, and stops when no socket is open.
    """

    def is_mirrored() -> bool:
        return Queue.objects.filter(name=name, version__gte=version).exists()

    try:
        if not wait_until(is_mirrored, timeout_s=MIRROR_WAIT_S):
            return None
        changes = LiveChange.objects.filter(kind="queue", key=name).order_by("-id")
        newest = changes.values_list("id", flat=True).first()
        return None if newest is None else f"{live.epoch()}:{newest}"
    except DatabaseError as error:
        log.warning("cannot read the position of queue '%s' in the live log: %s", name, error)
        return None
