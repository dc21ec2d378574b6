"""Who owns which field: the `managedFields` of an object.

Ownership is recorded from the first apply on, so that objects that nobody applies cost nothing. At the
first apply, all fields of the object so far are recorded under `before-first-apply`, the name that the
real server uses for owners from before its records.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sandbox.apiserver.model import clock
from sandbox.apiserver.model.resources import ServedResource
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
    """The identity of one entry of managedFields."""

    manager: str
    operation: str
    subresource: str = ""


@dataclass(slots=True)
class Share:
    """The fields of one owner, and when it last changed them."""

    fields: FieldSet
    api_version: str
    time: str


Shares = dict[Owner, Share]


class ObjectShape:
    """The shape of whole objects; metadata always has the shape of the built-in ObjectMeta."""

    def __init__(self, resource: ServedResource, meta_shape: Shape) -> None:
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
        in_meta, removed_meta = changed_fields(_tracked_meta(old), _tracked_meta(new), self.meta)
        changed |= {("f:metadata", *path) for path in in_meta}
        removed |= {("f:metadata", *path) for path in removed_meta}
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
    # Entries of apply come first, then all by time, as the real server sorts them.
    for owner, share in sorted(shares.items(), key=_entry_order):
        if not share.fields:
            continue
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


def _entry_order(entry: tuple[Owner, Share]) -> tuple[bool, str, str]:
    owner, share = entry
    return owner.operation != "Apply", share.time, owner.manager


def record_update(
    old: Obj, new: Obj, resource: ServedResource, sub: str, manager: str, meta_shape: Shape
) -> None:
    """Record the manager of a plain write as owner of what it changed, if the object has records."""
    entries = new["metadata"].get("managedFields")
    before = old["metadata"].get("managedFields")
    if before is None and not entries:
        new["metadata"].pop("managedFields", None)
        return
    if entries is not None and (not entries or entries == [{}]):
        new["metadata"].pop("managedFields", None)  # the documented way to reset the records
        return
    source = new if entries else old
    shares = read_shares(source)
    shape = ObjectShape(resource, meta_shape)
    changed, removed = shape.changes(old, new)
    if not changed and not removed:
        write_shares(new, shares)
        return
    writer = Owner(manager, "Update", sub)
    for owner, share in shares.items():
        share.fields -= removed
        if owner != writer:
            share.fields -= changed
    if changed:
        share_before = shares.get(writer)
        fields = (share_before.fields if share_before else set()) | changed
        shares[writer] = Share(fields, resource.api_version, clock.stamp())
    write_shares(new, shares)
