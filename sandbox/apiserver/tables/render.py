"""Tables, the form in which `kubectl get` receives objects.

The columns of built-in kinds were captured from a real server. `cells.py` computes the cells of the common
kinds; in other kinds a column shows the field of the same name, or nothing. Custom kinds have their
printer columns.
"""

from __future__ import annotations

from typing import Any

import orjson

from sandbox.apiserver.model.entry import Entry, Obj
from sandbox.apiserver.model.resources import Registry, ServedResource
from sandbox.apiserver.schema import conversion, jsonpath
from sandbox.apiserver.tables.cells import CELLS, age

_NAME: Obj = {"name": "Name", "type": "string", "format": "name", "priority": 0}
_AGE: Obj = {"name": "Age", "type": "date", "format": "", "priority": 0}
_CREATED: Obj = {"name": "Created At", "type": "date", "format": "", "priority": 0}


class Tables:
    """Renders entries as Tables of `meta.k8s.io/v1`."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def table(
        self, resource: ServedResource, entries: list[Entry], include: str, *, with_columns: bool
    ) -> Obj:
        columns = self._columns(resource)
        rows = [self._row(resource, entry, columns, include) for entry in entries]
        definitions = [{**column, "description": ""} for column in columns]
        return {
            "kind": "Table",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": {},
            "columnDefinitions": [_public(c) for c in definitions] if with_columns else None,
            "rows": rows,
        }

    def bookmark(self, meta: Obj) -> Obj:
        """Return the bookmark of a table watch: a table with one row, which holds only the version."""
        row = {
            "cells": [],
            "object": {
                "kind": "PartialObjectMetadata",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": meta,
            },
        }
        return {
            "kind": "Table",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": meta,
            "columnDefinitions": None,
            "rows": [row],
        }

    def _columns(self, resource: ServedResource) -> list[Obj]:
        if resource.custom is None:
            key = f"{resource.api_version}/{resource.plural}"
            return self._registry.bundle.columns.get(key) or [_NAME, _CREATED]
        declared = resource.custom.get("additionalPrinterColumns")
        if not declared:
            return [_NAME, _AGE]
        custom = [
            {
                "name": column["name"],
                "type": column["type"],
                "format": column.get("format", ""),
                "priority": column.get("priority", 0),
                "path": column["jsonPath"],
            }
            for column in declared
        ]
        return [_NAME, *custom]

    def _row(self, resource: ServedResource, entry: Entry, columns: list[Obj], include: str) -> Obj:
        stored = entry.load()
        compute = CELLS.get(resource.storage)
        computed = compute(stored) if compute is not None and resource.custom is None else {}
        cells = [_cell(column, stored, computed) for column in columns]
        row: Obj = {"cells": cells}
        match include:
            case "None":
                row["object"] = None
            case "Object":
                row["object"] = conversion.load_as(resource, entry)
            case _:
                row["object"] = {
                    "kind": "PartialObjectMetadata",
                    "apiVersion": "meta.k8s.io/v1",
                    "metadata": stored["metadata"],
                }
        return row


def _public(column: Obj) -> Obj:
    return {key: value for key, value in column.items() if key != "path"}


def _cell(column: Obj, obj: Obj, computed: dict[str, Any]) -> Any:
    name = column["name"]
    if "path" in column:
        return _custom_cell(column, obj)
    if name in computed:
        return computed[name]
    if name == "Name":
        return obj["metadata"]["name"]
    if name == "Age":
        return age(obj["metadata"].get("creationTimestamp"))
    if name == "Created At":
        return obj["metadata"].get("creationTimestamp")
    field = name[0].lower() + name[1:].replace(" ", "").replace("-", "")
    for holder in (obj, obj.get("spec"), obj.get("status")):
        if isinstance(holder, dict) and isinstance(holder.get(field), (str, int, float, bool)):
            return holder[field]
    return "" if column["type"] == "string" else 0


def _custom_cell(column: Obj, obj: Obj) -> Any:
    values = jsonpath.lookup(obj, column["path"])
    if not values:
        return None
    value = values[0]
    if column["type"] == "date":
        return age(value) if isinstance(value, str) else "<unknown>"
    if column["type"] in ("integer", "number", "boolean"):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    return _as_text(value)


def _as_text(value: Any) -> str:
    if isinstance(value, (dict, list)):
        return orjson.dumps(value).decode()
    return str(value)
