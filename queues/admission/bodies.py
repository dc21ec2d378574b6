"""Reading objects that nobody has validated yet: what has another shape than it should reads as empty."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def map_at(node: Json, key: str) -> Json:
    """Return the map under a key, empty when there is none."""
    found = node.get(key)
    return found if isinstance(found, dict) else {}


def list_at(node: Json, key: str) -> list[Json]:
    """Return the maps of the list under a key."""
    found = node.get(key)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []
