"""Tables: what `kubectl get` prints. Columns come from the data file or the CRD, cells from here.

Column headers of built-in kinds were captured from a real server; `cells.py` knows how to fill those
of the kinds people look at, and any other column is filled by the field that bears its name, or left
empty. Custom kinds use their printer columns.
"""

from __future__ import annotations

from typing import Any

import orjson

from sandbox.apiserver.model.entry import Entry, Obj
from sandbox.apiserver.model.resources import Registry, Resource
from sandbox.apiserver.schema import conversion, jsonpath
from sandbox.apiserver.tables.cells import CELLS, age

_NAME: Obj = {"name": "Name", "type": "string", "format": "name", "priority": 0}
_AGE: Obj = {"name": "Age", "type": "date", "format": "", "priority": 0}
_CREATED: Obj = {"name": "Created At", "type": "date", "format": "", "priority": 0}


class Tables:
    """Turns entries into `meta.k8s.io/v1` Tables."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def table(
        self, resource: Resource, entries: list[Entry], include: str, *, with_columns: bool
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
        """A bookmark of a table watch is a table whose one row carries only the version."""
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

    def _columns(self, resource: Resource) -> list[Obj]:
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

    def _row(self, resource: Resource, entry: Entry, columns: list[Obj], include: str) -> Obj:
        stored = entry.load()
        maker = CELLS.get(resource.storage)
        made = maker(stored) if maker is not None and resource.custom is None else {}
        cells = [_cell(column, stored, made) for column in columns]
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


def _cell(column: Obj, obj: Obj, made: dict[str, Any]) -> Any:
    name = column["name"]
    if "path" in column:
        return _custom_cell(column, obj)
    if name in made:
        return made[name]
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
