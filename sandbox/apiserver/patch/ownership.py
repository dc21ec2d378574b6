"""Who owns which field: the `managedFields` of an object.

Bookkeeping starts with the first apply. An object that nobody applied carries no managedFields and
pays nothing for them; at that first apply its fields go to `before-first-apply`, the name that the
real server gives to owners from before its records began.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sandbox.apiserver.model import clock
from sandbox.apiserver.model.resources import Resource
from sandbox.apiserver.model.shapes import Shape
from sandbox.apiserver.patch.fieldset import (
    FieldSet,
    changed_fields,
    fields_of,
    from_fields_v1,
    to_fields_v1,
)

Obj = dict[str, Any]

BEFORE_FIRST_APPLY = "before-first-apply"
_UNTRACKED = {"apiVersion", "kind"}
_UNTRACKED_META = {
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "resourceVersion",
    "selfLink",
    "managedFields",
}


@dataclass(frozen=True, slots=True)
class Owner:
    """One line of managedFields without its fields."""

    manager: str
    operation: str
    subresource: str = ""


@dataclass(slots=True)
class Share:
    """What one owner holds, and since when."""

    fields: FieldSet
    api_version: str
    time: str


Shares = dict[Owner, Share]


class ObjectShape:
    """The shape of whole objects: custom kinds take their metadata from the built-in ObjectMeta."""

    def __init__(self, resource: Resource, meta_shape: Shape) -> None:
        self.body = resource.shape
        self.meta = meta_shape

    def fields(self, obj: Obj, *, without_status: bool = False) -> FieldSet:
        return {
            *fields_of(_tracked_body(obj, without_status), self.body),
            *(("f:metadata", *path) for path in fields_of(_tracked_meta(obj), self.meta)),
        }

    def changes(self, old: Obj, new: Obj) -> tuple[FieldSet, FieldSet]:
        changed, removed = changed_fields(
            _tracked_body(old, False), _tracked_body(new, False), self.body
        )
        in_meta, gone = changed_fields(_tracked_meta(old), _tracked_meta(new), self.meta)
        changed |= {("f:metadata", *path) for path in in_meta}
        removed |= {("f:metadata", *path) for path in gone}
        return changed, removed


def _tracked_body(obj: Obj, without_status: bool) -> Obj:
    skipped = {*_UNTRACKED, "metadata", *(("status",) if without_status else ())}
    return {key: value for key, value in obj.items() if key not in skipped}


def _tracked_meta(obj: Obj) -> Obj:
    return {k: v for k, v in obj["metadata"].items() if k not in _UNTRACKED_META}


def read_shares(obj: Obj) -> Shares:
    shares: Shares = {}
    for entry in obj["metadata"].get("managedFields") or ():
        owner = Owner(entry.get("manager", ""), entry["operation"], entry.get("subresource", ""))
        fields = from_fields_v1(entry.get("fieldsV1") or {})
        shares[owner] = Share(fields, entry.get("apiVersion", ""), entry.get("time", ""))
    return shares


def write_shares(obj: Obj, shares: Shares) -> None:
    entries = []
    kept = [(owner, share) for owner, share in shares.items() if share.fields]
    # appliers first, then by time, as the real server sorts them
    kept.sort(key=lambda item: (item[0].operation != "Apply", item[1].time, item[0].manager))
    for owner, share in kept:
        entry: Obj = {
            "manager": owner.manager,
            "operation": owner.operation,
            "apiVersion": share.api_version,
            "time": share.time,
            "fieldsType": "FieldsV1",
            "fieldsV1": to_fields_v1(share.fields),
        }
        if owner.subresource:
            entry["subresource"] = owner.subresource
        entries.append(entry)
    if entries:
        obj["metadata"]["managedFields"] = entries
    else:
        obj["metadata"].pop("managedFields", None)


def record_update(
    old: Obj, new: Obj, resource: Resource, sub: str, manager: str, meta_shape: Shape
) -> None:
    """Give the fields that a plain write changed to its manager; does nothing where none are kept."""
    stated = new["metadata"].get("managedFields")
    before = old["metadata"].get("managedFields")
    if before is None and not stated:
        new["metadata"].pop("managedFields", None)
        return
    if stated is not None and (not stated or stated == [{}]):
        new["metadata"].pop("managedFields", None)  # the documented way to reset the records
        return
    source = new if stated else old
    shares = read_shares(source)
    shape = ObjectShape(resource, meta_shape)
    changed, removed = shape.changes(old, new)
    if not changed and not removed:
        write_shares(new, shares)
        return
    mine = Owner(manager, "Update", sub)
    for owner, share in shares.items():
        share.fields -= removed
        if owner != mine:
            share.fields -= changed
    if changed:
        held = shares.get(mine)
        fields = (held.fields if held else set()) | changed
        shares[mine] = Share(fields, resource.api_version, clock.stamp())
    write_shares(new, shares)
