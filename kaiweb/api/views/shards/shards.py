"""Shards: list and get for everybody, create, replace, patch and delete for admins."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from kaiweb.api import idempotency
from kaiweb.api.base import Shows, View, caller, flag
from kaiweb.api.errors import Problem
from kaiweb.api.http import parameters
from kaiweb.api.schema import shards as schema
from kaiweb.api.versions import expected_tag
from kaiweb.api.views.simulations import is_simulated, preview_of
from kaiweb.api.writes import require_admin, stale_problem, write_request, written_answer
from kaiweb.planning.change_sets import PREVIEW_CYCLES
from kaiweb.shards.items import shard_item
from kaiweb.shards.reading import all_shards, find_shard, read_config
from kaiweb.shards.writes import (
    InvalidShardError,
    StaleShardError,
    create_shard,
    delete_shard,
    edit_shard,
)
from queues.cluster import gateway
from queues.editing.edits import merge_patch
from queues.editing.write_requests import WriteRequest, WriteResult
from queues.tree.findings import Finding, shown
from scheduler.tools.simulate.what_if.edited import merged

WRITE = ("dryRun", "reason")
EDIT = (*WRITE, "simulate")


class Shards(View):
    """The collection."""

    shows = Shows.NOTHING
    accepts: ClassVar = {"post": WRITE}

    @extend_schema(operation_id="listShards", responses=schema.ShardList)
    def get(self, request: Request) -> Response:
        """List the shards of the cluster, as it has them now."""
        config, is_admin = read_config(gateway()), caller(request).is_admin
        shards = all_shards(gateway()).values()
        return Response({"items": [shard_item(body, config, is_admin=is_admin) for body in shards]})

    @extend_schema(
        operation_id="createShard",
        request=schema.ShardCreate,
        parameters=[parameters.ONLY_DRY_RUN, parameters.REASON, parameters.IDEMPOTENCY_KEY],
        responses={201: schema.ShardWritten},
    )
    def post(self, request: Request) -> Response:
        """Create a shard, which gets a scheduler of its own."""
        require_admin(request, "creating shards")
        return idempotency.answer_once(request, lambda: self._create(request))

    def _create(self, request: Request) -> Response:
        body = _fields(request, required=("name",), optional=("spec",))
        result = create_shard(gateway(), body["name"], body.get("spec", {}), write_request(request))
        return _written(result, request, status=201)


class ShardDetail(View):
    """One shard."""

    shows = Shows.NOTHING
    accepts: ClassVar = {"put": EDIT, "patch": EDIT, "delete": WRITE}

    @extend_schema(operation_id="getShard", responses=schema.Shard)
    def get(self, request: Request, name: str) -> Response:
        """Return the shard; its ETag is what a write must send back."""
        body = find_shard(gateway(), name)
        item = shard_item(body, read_config(gateway()), is_admin=caller(request).is_admin)
        return Response(item, headers={"ETag": item["etag"]})

    @extend_schema(
        operation_id="putShard",
        request=schema.ShardWrite,
        parameters=[*parameters.SHARD_WRITE, parameters.SIMULATE],
        responses=schema.ShardWritten,
    )
    def put(self, request: Request, name: str) -> Response:
        """Replace the spec."""
        return _edited(request, name, lambda _current, spec: spec)

    @extend_schema(
        operation_id="patchShard",
        request=schema.ShardWrite,
        parameters=[*parameters.SHARD_WRITE, parameters.SIMULATE],
        responses=schema.ShardWritten,
    )
    def patch(self, request: Request, name: str) -> Response:
        """Change the spec by a merge patch (RFC 7396): what it does not name stays, null removes."""

        def edit(current: Any, patch: Any) -> object:
            return merged(current, patch) if isinstance(patch, dict) else patch

        return _edited(request, name, edit)

    @extend_schema(
        operation_id="deleteShard",
        parameters=parameters.SHARD_WRITE,
        responses={200: schema.ShardWritten, 204: None},
    )
    def delete(self, request: Request, name: str) -> Response:
        """Delete the shard; a dry run answers 200 with what would happen."""
        write = _versioned(request, "deleting shards")
        try:
            result = delete_shard(gateway(), name, write)
        except StaleShardError as error:
            raise _stale(error) from error
        return _written(result, request) if write.dry_run else Response(status=204)


def _edited(request: Request, name: str, edit: Callable[[Any, Any], object]) -> Response:
    is_simulated(request)  # refuses a wrong parameter before anything is written
    write = _versioned(request, "editing shards")
    spec = _fields(request, required=("spec",))["spec"]
    try:
        before = find_shard(gateway(), name)
        result = edit_shard(gateway(), name, lambda current: edit(current, spec), write)
    except StaleShardError as error:
        raise _stale(error) from error
    settings = merge_patch(before.get("spec") or {}, result.body.get("spec") or {})
    question = {"shard": name, "settings": settings, "cycles": PREVIEW_CYCLES}
    return _written(result, request, preview=preview_of(request, question))


def _versioned(request: Request, what: str) -> WriteRequest:
    require_admin(request, what)
    return write_request(request, expected_tag=expected_tag(request, "shard"))


def _fields(
    request: Request, *, required: tuple[str, ...], optional: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Return the body, an object with these members and no others."""
    body = request.data
    if not isinstance(body, dict):
        raise Problem("validation", f"the body: expected an object, got {type(body).__name__}")
    for name in required:
        if name not in body:
            raise _fault(f"/{name}", "required", f"{name}: expected a value", None)
    for name in sorted(set(body) - {*required, *optional}):
        allowed_fields = ", ".join((*required, *optional))
        text = f"the body: expected {allowed_fields}, got '{shown(name)}'"
        raise _fault(f"/{shown(name)}", "unknown-field", text, shown(name))
    return dict(body)


def _fault(pointer: str, code: str, message: str, value: object) -> InvalidShardError:
    return InvalidShardError((Finding(pointer=pointer, code=code, message=message, given=value),))


def _stale(error: StaleShardError) -> Problem:
    item = shard_item(error.current, read_config(gateway()), is_admin=True)
    return stale_problem(error, item)


def _written(
    result: WriteResult,
    request: Request,
    *,
    status: int = 200,
    preview: Mapping[str, Any] = MappingProxyType({}),
) -> Response:
    is_dry = flag(request, "dryRun")
    item = shard_item(result.body, read_config(gateway()), is_admin=True)
    headers = {"ETag": item["etag"]}
    if status == 201 and not is_dry:
        headers["Location"] = f"/api/v1/shards/{item['name']}"
    return Response(
        {**written_answer("shard", item, result, is_dry=is_dry), **preview},
        status=status,
        headers=headers,
    )
