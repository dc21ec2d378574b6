"""POST, PUT, PATCH and DELETE on collections and objects."""

from __future__ import annotations

from typing import Any

import orjson

from sandbox.apiserver.access.rbac import AccessAttributes
from sandbox.apiserver.handlers.parts import ServerParts
from sandbox.apiserver.handlers.reads import find, select
from sandbox.apiserver.handlers.views import render_list, render_object, view_of
from sandbox.apiserver.lifecycle.writes import WriteOptions
from sandbox.apiserver.model import errors
from sandbox.apiserver.model.entry import Entry, Obj
from sandbox.apiserver.model.resources import ServedResource
from sandbox.apiserver.model.user import ANONYMOUS
from sandbox.apiserver.patch.apply import apply_config
from sandbox.apiserver.patch.merge import apply_merge
from sandbox.apiserver.patch.operations import apply_operations
from sandbox.apiserver.patch.strategic import apply_strategic
from sandbox.apiserver.schema import conversion
from sandbox.apiserver.schema.kinds.table import strategy_of
from sandbox.apiserver.wire.protobuf import decode_object, is_protobuf
from sandbox.apiserver.wire.request import Reply, Request, Target, parse_body, warning_headers

APPLY = "application/apply-patch+yaml"
PATCH_TYPES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    APPLY,
)
_BODY_TYPES = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")
_CONFLICT_TRIES = 5


async def read_object(request: Request) -> Any:
    """Read and decode a body that holds one object."""
    data = await request.read()
    media = request.content_type
    if is_protobuf(media, data):
        return decode_object(data)
    if media and media not in (
        *_BODY_TYPES,
        "text/plain",
        "application/x-www-form-urlencoded",
        "*/*",
    ):
        raise errors.unsupported_body(_BODY_TYPES)
    return parse_body(data, media)


async def create_object(parts: ServerParts, request: Request, target: Target) -> Reply:
    view = view_of(request)
    options = WriteOptions.of(request)
    obj = await read_object(request)
    entry = await parts.writer.create(target, obj, options)
    body = render_object(parts, view, target.resource, entry)
    return Reply(body, 201, headers=warning_headers(options.warnings))


async def replace_object(parts: ServerParts, request: Request, target: Target) -> Reply:
    view = view_of(request)
    options = WriteOptions.of(request)
    obj = await read_object(request)
    entry = parts.store.get(target.resource.storage, target.namespace, target.name)
    is_new = entry is None and _may_put_new(target, obj)
    if is_new:
        _require_create(parts, request, target)
        written = await parts.writer.create(target, obj, options)
    else:
        written = await parts.writer.update(target, entry or find(parts, target), obj, options)
    body = render_object(parts, view, target.resource, written)
    return Reply(body, 201 if is_new else 200, headers=warning_headers(options.warnings))


def _may_put_new(target: Target, obj: Any) -> bool:
    """Return whether a PUT of a missing object creates it: of some kinds, and with its own name.

    Raises
    ------
    ApiError : 400 if the object has another name than the URL
    """
    if target.sub or not strategy_of(target.resource.storage).creates_on_update:
        return False
    meta = (obj.get("metadata") if isinstance(obj, dict) else None) or {}
    name = meta.get("name", "")
    if name != target.name:
        raise errors.bad_request(
            f"the name of the object ({name}) does not match the name on the URL ({target.name})"
        )
    return not meta.get("resourceVersion") and not meta.get("uid")


async def patch_object(parts: ServerParts, request: Request, target: Target) -> Reply:
    view = view_of(request)
    options = WriteOptions.of(request)
    options.is_patch = True
    data = await request.read()
    media = request.content_type
    if media not in PATCH_TYPES:
        raise errors.ApiError(
            415, "UnsupportedMediaType", "415: Unsupported Media Type", details={}
        )
    if media == "application/strategic-merge-patch+json" and target.resource.custom is not None:
        raise errors.unsupported_body([kind for kind in PATCH_TYPES if kind != media])
    patch = parse_body(data, media)
    if media != APPLY and "force" in request.params:
        cause = errors.field_forbidden("force", "may not be specified for non-apply patch")
        raise errors.invalid("meta.k8s.io", "PatchOptions", "", [cause])
    if media == APPLY:
        entry, created = await _apply(parts, request, target, patch, options)
    else:
        entry, created = await _patch(parts, target, media, patch, options), False
    body = render_object(parts, view, target.resource, entry)
    return Reply(body, 201 if created else 200, headers=warning_headers(options.warnings))


async def _patch(
    parts: ServerParts, target: Target, media: str, patch: Any, options: WriteOptions
) -> Entry:
    """Patch and store an object; start again if another write came in between."""
    for attempt in range(_CONFLICT_TRIES):
        entry = find(parts, target)
        live = conversion.load_as(target.resource, entry)
        obj = patched(live, media, patch, target.resource)
        try:
            return await parts.writer.update(target, entry, obj, options)
        except errors.ApiError as error:
            has_changed = parts.store.get(target.resource.storage, *entry.key) is not entry
            if error.code != 409 or not has_changed or attempt + 1 == _CONFLICT_TRIES:
                raise
    raise AssertionError("unreachable: the last attempt returns or raises")


def patched(live: Obj, media: str, patch: Any, resource: ServedResource) -> Obj:
    """Return the object after a patch of one of the three non-apply types."""
    if media == "application/json-patch+json":
        return apply_operations(live, patch)
    if not isinstance(patch, dict):
        raise errors.bad_request("error decoding patch: expected an object")
    if media == "application/merge-patch+json":
        merged: Obj = apply_merge(live, patch)
        return merged
    return apply_strategic(live, patch, resource.shape)


async def _apply(
    parts: ServerParts, request: Request, target: Target, config: Any, options: WriteOptions
) -> tuple[Entry, bool]:
    resource = target.resource
    manager = request.params.get("fieldManager", "")
    if not manager:
        cause = errors.required("fieldManager", "is required for apply patch")
        raise errors.invalid("meta.k8s.io", "PatchOptions", "", [cause])
    if not isinstance(config, dict):
        raise errors.bad_request("error decoding YAML: an apply patch must be an object")
    if config.get("apiVersion") != resource.api_version or config.get("kind") != resource.kind:
        group, _, version = str(config.get("apiVersion", "")).rpartition("/")
        object_kind = f"{group}/{version}, Kind={config.get('kind', '')}"
        raise errors.bad_request(f"invalid object type: {object_kind}")
    _refuse_undeclared(parts, target, config)
    options.applied = True
    force = request.flag("force")
    entry = parts.store.get(resource.storage, target.namespace, target.name)
    live = conversion.load_as(resource, entry) if entry is not None else None
    if entry is None and target.sub:
        raise errors.not_found(resource.group, resource.plural, target.name)
    obj = apply_config(
        live,
        config,
        resource,
        parts.registry.meta_shape,
        manager=manager,
        force=force,
        sub=target.sub,
    )
    if entry is None:
        obj["metadata"].setdefault("name", target.name)
        if obj["metadata"].get("uid"):
            why = (
                "uid mismatch: the provided object specified uid, and no existing object was found"
            )
            raise errors.conflict(resource.group, resource.plural, target.name, why)
        _require_create(parts, request, target)
        return await parts.writer.create(target, obj, options), True
    return await parts.writer.update(target, entry, obj, options), False


def _require_create(parts: ServerParts, request: Request, target: Target) -> None:
    """Refuse an apply that creates an object unless the user may create it, not only patch it."""
    access = AccessAttributes(
        verb="create",
        group=target.resource.group,
        resource=target.resource.plural,
        namespace=target.namespace,
        name=target.name,
    )
    parts.authorizer.require(request.user, access)


def _refuse_undeclared(parts: ServerParts, target: Target, config: Obj) -> None:
    """Refuse a configuration with a field that the schema does not declare."""
    resource = target.resource
    trial = WriteOptions(user=ANONYMOUS, manager="")
    parts.writer.decode(resource, config, trial)
    if trial.warnings:
        name = (config.get("metadata") or {}).get("name", "")
        home = (config.get("metadata") or {}).get("namespace", "")
        object_text = f"{home}/{name}; {resource.group}/{resource.version}, Kind={resource.kind}"
        fields = ", ".join(f".{text.split(chr(34))[1]}" for text in trial.warnings)
        raise errors.unclassified(
            f"failed to create typed patch object ({object_text}): {fields}: field not declared in schema"
        )


async def delete_object(parts: ServerParts, request: Request, target: Target) -> Reply:
    view = view_of(request)
    options = await delete_options(request)
    entry = find(parts, target)
    last, is_gone = await parts.deleter.delete(target, entry, options, request.user)
    headers = warning_headers(_deletion_warnings(target, options))
    if is_gone and target.resource.storage != "pods":
        return Reply(_success(target, entry), headers=headers)
    return Reply(render_object(parts, view, target.resource, last), headers=headers)


def _deletion_warnings(target: Target, options: Obj) -> list[str]:
    if target.resource.storage != "jobs.batch" or options.get("propagationPolicy"):
        return []
    return [
        "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background "
        "to remove them or set propagationPolicy=Orphan to suppress this warning"
    ]


async def delete_collection(parts: ServerParts, request: Request, target: Target) -> Reply:
    view = view_of(request)
    options = await delete_options(request)
    entries = select(parts, request, target)
    for entry in entries:
        single = Target(resource=target.resource, namespace=entry.namespace, name=entry.name)
        if parts.store.get(target.resource.storage, *entry.key) is entry:
            await parts.deleter.delete(single, entry, options, request.user)
    meta = {"resourceVersion": str(parts.store.version)}
    return Reply(render_list(parts, view, target.resource, entries, meta))


async def delete_options(request: Request) -> Obj:
    """Read DeleteOptions from the body; the query fills in what the body omits."""
    data = await request.read()
    options: Obj = {}
    if data.strip():
        media = request.content_type
        body = decode_object(data) if is_protobuf(media, data) else parse_body(data, media)
        options = body if isinstance(body, dict) else {}
    if "gracePeriodSeconds" in request.params:
        options.setdefault("gracePeriodSeconds", request.number("gracePeriodSeconds", 0))
    if "propagationPolicy" in request.params:
        options.setdefault("propagationPolicy", request.params["propagationPolicy"])
    if "orphanDependents" in options and options.get("propagationPolicy"):
        detail = "orphanDependents and deletionPropagation cannot be both set"
        cause = errors.invalid_value("propagationPolicy", options["propagationPolicy"], detail)
        raise errors.invalid("meta.k8s.io", "DeleteOptions", "", [cause])
    if request.flag("orphanDependents"):
        options.setdefault("propagationPolicy", "Orphan")
    if request.dry_run or "All" in (options.get("dryRun") or ()):
        options["dryRun"] = ["All"]
    return options


def _success(target: Target, entry: Entry) -> bytes:
    details: Obj = {
        "name": entry.name,
        "group": target.resource.group,
        "kind": target.resource.plural,
    }
    if not target.resource.group:
        del details["group"]
    details["uid"] = entry.uid
    return orjson.dumps(
        {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": details,
        }
    )
