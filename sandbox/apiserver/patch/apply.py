"""Server-side apply: merge the fields that a manager applies, and record that it owns them.

Values are merged by schema (objects by field, keyed lists by key, sets by union, everything else as a
whole). Fields that this manager applied before and now omits are removed, unless another manager owns
them too. Changing a field of another manager is a conflict, unless the request forces it.
"""

from __future__ import annotations

import copy
from typing import Any

import orjson

from sandbox.apiserver.model import clock, errors
from sandbox.apiserver.model.resources import ServedResource
from sandbox.apiserver.model.shapes import Shape
from sandbox.apiserver.patch.fieldset import (
    FieldSet,
    Path,
    is_associative,
    remove_at,
    segment_of,
)
from sandbox.apiserver.patch.ownership import (
    BEFORE_FIRST_APPLY,
    ObjectShape,
    Owner,
    Share,
    Shares,
    read_shares,
    write_shares,
)

Obj = dict[str, Any]

_KUBECTL = "kubectl"
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def apply_config(
    live: Obj | None,
    config: Obj,
    resource: ServedResource,
    meta_shape: Shape,
    *,
    manager: str,
    force: bool,
    sub: str = "",
) -> Obj:
    """Return the object after `manager` applied `config`; `live` is None for a new object.

    Raises
    ------
    ApiError : 409 with one cause per field that another manager owns with a different value
    """
    if config.get("metadata", {}).get("managedFields"):
        raise errors.bad_request("metadata.managedFields must be nil")
    config = copy.deepcopy(config)
    config.setdefault("metadata", {})
    shape = ObjectShape(resource, meta_shape)
    applier = Owner(manager, "Apply", sub)
    without_status = "status" in resource.subresources and not sub
    applied = shape.fields(config, without_status=without_status)
    if live is None:
        shares = {applier: Share(applied, resource.api_version, clock.stamp())}
        write_shares(config, shares)
        return config
    shares = _shares_of(live, shape, resource)
    merged = _merge_objects(live, config, shape)
    _remove_omitted(merged, shares, applier, applied, shape)
    changed, removed = shape.changes(live, merged)
    _settle_conflicts(shares, applier, changed, force, _last_applied(live, shape, manager))
    for owner, share in shares.items():
        if owner != applier:
            share.fields -= removed
    previous = shares.get(applier)
    unchanged = previous is not None and previous.fields == applied and not changed and not removed
    time = previous.time if unchanged and previous is not None else clock.stamp()
    shares[applier] = Share(applied, resource.api_version, time)
    write_shares(merged, shares)
    return merged


def _shares_of(live: Obj, shape: ObjectShape, resource: ServedResource) -> Shares:
    if live["metadata"].get("managedFields"):
        return read_shares(live)
    owner = Owner(BEFORE_FIRST_APPLY, "Update")
    fields = shape.fields(live, without_status="status" in resource.subresources)
    return {owner: Share(fields, resource.api_version, clock.stamp())}


def _merge_objects(live: Obj, config: Obj, shape: ObjectShape) -> Obj:
    body = {key: value for key, value in config.items() if key != "metadata"}
    merged: Obj = merge_values(copy.deepcopy(live), body, shape.body)
    merged["metadata"] = merge_values(merged["metadata"], config["metadata"], shape.meta)
    return merged


def merge_values(live: Any, config: Any, shape: Shape | None) -> Any:
    """Return `config` merged over `live`; `live` may be changed."""
    if isinstance(live, dict) and isinstance(config, dict):
        if shape is not None and shape.atomic_map:
            return config
        for key, value in config.items():
            child = shape.child(key) if shape is not None else None
            live[key] = merge_values(live[key], value, child) if key in live else value
        return live
    if isinstance(live, list) and isinstance(config, list) and is_associative(shape):
        assert shape is not None
        return _merge_lists(live, config, shape)
    return config


def _merge_lists(live: list[Any], config: list[Any], shape: Shape) -> list[Any]:
    applied_items = {segment_of(item, shape): item for item in config}
    if len(applied_items) != len(config):
        raise errors.bad_request(
            "failed to create typed patch object: duplicate entries for key in a list"
        )
    result = []
    for item in live:
        segment = segment_of(item, shape)
        applied_item = applied_items.pop(segment, None)
        result.append(
            item if applied_item is None else merge_values(item, applied_item, shape.items)
        )
    return result + list(applied_items.values())


def _remove_omitted(
    merged: Obj, shares: Shares, applier: Owner, applied: FieldSet, shape: ObjectShape
) -> None:
    previous = shares.get(applier)
    if previous is None:
        return
    held_by_others = {
        path for owner, share in shares.items() if owner != applier for path in share.fields
    }
    keep = held_by_others | applied
    # Whole items before their fields, because an item without its key cannot be addressed.
    for path in sorted(previous.fields - applied, key=len):
        if path in held_by_others or _is_prefix_of_any(path, keep):
            continue
        if path[0] == "f:metadata":
            inner = {other[1:] for other in keep if other[0] == "f:metadata"}
            remove_at(merged["metadata"], path[1:], shape.meta, inner)
        else:
            remove_at(merged, path, shape.body, keep)


def _is_prefix_of_any(path: Path, fields: FieldSet) -> bool:
    depth = len(path)
    return any(len(other) > depth and other[:depth] == path for other in fields)


def _last_applied(live: Obj, shape: ObjectShape, manager: str) -> FieldSet:
    """Return the fields that kubectl applied from the client side before.

    kubectl may change them without a conflict, whoever owns them in the managed fields.
    """
    text = (live["metadata"].get("annotations") or {}).get(_LAST_APPLIED)
    if manager != _KUBECTL or not text:
        return set()
    try:
        config = orjson.loads(text)
    except orjson.JSONDecodeError:
        return set()
    config.setdefault("metadata", {})
    return {*shape.fields(config), ("f:metadata", "f:annotations", f"f:{_LAST_APPLIED}")}


def _settle_conflicts(
    shares: Shares, applier: Owner, changed: FieldSet, force: bool, exempt: FieldSet
) -> None:
    contested = changed - exempt
    conflicts = [
        (owner, share.api_version, sorted(share.fields & contested))
        for owner, share in shares.items()
        if owner != applier and share.fields & contested
    ]
    if conflicts and not force:
        raise _conflict(conflicts)
    for owner, share in shares.items():
        if owner != applier:
            share.fields -= changed


def _conflict(conflicts: list[tuple[Owner, str, list[Path]]]) -> errors.ApiError:
    causes = []
    for owner, api_version, paths in conflicts:
        using = f" using {api_version}" if owner.operation != "Apply" else ""
        sub = f' with subresource "{owner.subresource}"' if owner.subresource else ""
        for path in paths:
            message = f'conflict with "{owner.manager}"{sub}{using}'
            causes.append(
                {"reason": "FieldManagerConflict", "message": message, "field": shown_path(path)}
            )
    count = len(causes)
    noun = "conflict" if count == 1 else "conflicts"
    if count == 1:
        text = f"Apply failed with 1 {noun}: {causes[0]['message']}: {causes[0]['field']}"
    else:
        grouped: dict[str, list[str]] = {}
        for cause in causes:
            grouped.setdefault(cause["message"].replace("conflict", "conflicts", 1), []).append(
                cause["field"]
            )
        listing = "\n".join(
            f"{message}:\n" + "\n".join(f"- {field}" for field in fields)
            for message, fields in grouped.items()
        )
        text = f"Apply failed with {count} {noun}: {listing}"
    return errors.ApiError(409, "Conflict", text, details={"causes": causes})


def shown_path(path: Path) -> str:
    """Return a path in the notation of messages: `.spec.containers[name="a"].image`."""
    text = ""
    for segment in path:
        kind, _, segment_value = segment.partition(":")
        if kind == "f":
            text += f".{segment_value}"
        elif kind == "k":
            keys = orjson.loads(segment_value).items()
            text += "[" + ",".join(f"{key}={errors.quoted(value)}" for key, value in keys) + "]"
        else:
            text += f"[={segment_value}]"
    return text
