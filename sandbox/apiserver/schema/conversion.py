"""One stored form, several served versions.

Custom kinds convert the way `strategy: None` does, by changing `apiVersion` alone. Events are the one
built-in kind that is served under two groups with different field names; they are stored in the core
form. Everything else has a single version here.
"""

from __future__ import annotations

import orjson

from sandbox.apiserver.model.entry import Entry, Obj
from sandbox.apiserver.model.resources import Resource

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


def to_storage(resource: Resource, stored: Resource, obj: Obj) -> None:
    """Turn an object that arrived as `resource` into its stored form, in place."""
    if resource.group == _EVENTS_GROUP:
        _rename(obj, {new: old for old, new in _EVENT_NAMES.items()})
    obj["apiVersion"], obj["kind"] = stored.api_version, stored.kind


def from_storage(resource: Resource, obj: Obj) -> None:
    """Turn a stored object into what `resource` serves, in place."""
    if resource.group == _EVENTS_GROUP:
        _rename(obj, _EVENT_NAMES)
    obj["apiVersion"], obj["kind"] = resource.api_version, resource.kind


def is_stored_form(resource: Resource, entry: Entry) -> bool:
    return resource.version == entry.resource.version and resource.group == entry.resource.group


def raw_as(resource: Resource, entry: Entry) -> bytes:
    """Return the bytes of an entry as served under `resource`; the stored form costs nothing."""
    if is_stored_form(resource, entry):
        return entry.raw
    obj = entry.load()
    from_storage(resource, obj)
    return orjson.dumps(obj)


def load_as(resource: Resource, entry: Entry) -> Obj:
    """Return a fresh object as served under `resource`."""
    obj = entry.load()
    if not is_stored_form(resource, entry):
        from_storage(resource, obj)
    return obj


def _rename(obj: Obj, names: dict[str, str]) -> None:
    for old, new in names.items():
        if old in obj:
            obj[new] = obj.pop(old)
