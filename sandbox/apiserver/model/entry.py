"""One stored state of one object: its bytes, and beside them what the server itself asks for often."""

from __future__ import annotations

from typing import Any

import orjson

from sandbox.apiserver.model.resources import Resource

Obj = dict[str, Any]
Key = tuple[str, str]


class Entry:
    """One stored state of one object; never changed, only replaced."""

    __slots__ = (
        "fields",
        "labels",
        "name",
        "namespace",
        "owners",
        "raw",
        "resource",
        "terminating",
        "uid",
        "version",
    )

    def __init__(self, resource: Resource, obj: Obj, version: int) -> None:
        meta = obj["metadata"]
        meta["resourceVersion"] = str(version)
        self.resource = resource
        self.namespace: str = meta.get("namespace", "")
        self.name: str = meta["name"]
        self.uid: str = meta["uid"]
        self.version = version
        self.labels: dict[str, str] = meta.get("labels") or {}
        self.owners: tuple[str, ...] = tuple(o["uid"] for o in meta.get("ownerReferences") or ())
        self.terminating = "deletionTimestamp" in meta
        self.fields = _fields(resource, obj, self.namespace, self.name)
        self.raw: bytes = orjson.dumps(obj)

    @property
    def key(self) -> Key:
        return (self.namespace, self.name)

    def load(self) -> Obj:
        """Return a fresh object that the caller may change."""
        obj: Obj = orjson.loads(self.raw)
        return obj


def _fields(resource: Resource, obj: Obj, namespace: str, name: str) -> dict[str, str]:
    fields = {"metadata.name": name}
    if resource.namespaced:
        fields["metadata.namespace"] = namespace
    for path in resource.selectable:
        value: Any = obj
        for part in path.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        if path == "source":  # an Event's source is its component
            value = (value or {}).get("component") or obj.get("reportingComponent")
        if value is not None:
            fields[path] = str(value).lower() if isinstance(value, bool) else str(value)
    return fields
