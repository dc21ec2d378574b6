"""Read unvalidated JSON objects: a field of the wrong type reads as empty."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def map_at(node: Json, key: str) -> Json:
    """Return the map under a key, empty if there is none."""
    value = node.get(key)
    return value if isinstance(value, dict) else {}


def list_at(node: Json, key: str) -> list[Json]:
    """Return the maps in the list under a key; other entries are left out."""
    value = node.get(key)
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
