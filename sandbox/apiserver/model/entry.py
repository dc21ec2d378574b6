"""One stored state of one object: its JSON, and the fields that the server itself reads often."""

from __future__ import annotations

from typing import Any

import orjson

from sandbox.apiserver.model.resources import ServedResource

Obj = dict[str, Any]
Key = tuple[str, str]


class Entry:
    """One stored state of one object. An entry never changes; a write replaces it."""

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

    def __init__(self, resource: ServedResource, obj: Obj, version: int) -> None:
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


def _fields(resource: ServedResource, obj: Obj, namespace: str, name: str) -> dict[str, str]:
    fields = {"metadata.name": name}
    if resource.namespaced:
        fields["metadata.namespace"] = namespace
    for path in resource.selectable:
        value: Any = obj
        for part in path.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        if path == "source":  # the selector `source` of an Event means its component
            value = (value or {}).get("component") or obj.get("reportingComponent")
        if value is not None:
            fields[path] = str(value).lower() if isinstance(value, bool) else str(value)
    return fields
