"""Conversion between the stored version of an object and the served ones.

Custom kinds convert as `strategy: None` does, by changing `apiVersion` alone. Events are the only
built-in kind with two forms: two groups serve them, with different field names, and they are stored in
the core form. All other kinds have one version here.
"""

from __future__ import annotations

import orjson

from sandbox.apiserver.model.entry import Entry, Obj
from sandbox.apiserver.model.resources import ServedResource

_EVENTS_GROUP = "events.k8s.io"
_EVENT_NAMES = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}


def to_storage(resource: ServedResource, stored: ServedResource, obj: Obj) -> None:
    """Convert a received object from the form of `resource` to the stored form, in place."""
    if resource.group == _EVENTS_GROUP:
        _rename(obj, {new: old for old, new in _EVENT_NAMES.items()})
    obj["apiVersion"], obj["kind"] = stored.api_version, stored.kind


def from_storage(resource: ServedResource, obj: Obj) -> None:
    """Convert a stored object to the form of `resource`, in place."""
    if resource.group == _EVENTS_GROUP:
        _rename(obj, _EVENT_NAMES)
    obj["apiVersion"], obj["kind"] = resource.api_version, resource.kind


def is_stored_form(resource: ServedResource, entry: Entry) -> bool:
    return resource.version == entry.resource.version and resource.group == entry.resource.group


def raw_as(resource: ServedResource, entry: Entry) -> bytes:
    """Return the bytes of an entry in the form of `resource`; the stored form is not copied."""
    if is_stored_form(resource, entry):
        return entry.raw
    obj = entry.load()
    from_storage(resource, obj)
    return orjson.dumps(obj)


def load_as(resource: ServedResource, entry: Entry) -> Obj:
    """Return a new object in the form of `resource`."""
    obj = entry.load()
    if not is_stored_form(resource, entry):
        from_storage(resource, obj)
    return obj


def _rename(obj: Obj, names: dict[str, str]) -> None:
    for old, new in names.items():
        if old in obj:
            obj[new] = obj.pop(old)
