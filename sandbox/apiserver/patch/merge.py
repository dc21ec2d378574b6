"""JSON merge patch (RFC 7386): objects merge, null deletes, everything else replaces."""

from __future__ import annotations

from typing import Any


def apply_merge(value: Any, patch: Any) -> Any:
    """Return the merged value; neither argument is changed, parts may be shared."""
    if not isinstance(patch, dict):
        return patch
    result = dict(value) if isinstance(value, dict) else {}
    for key, change in patch.items():
        if change is None:
            result.pop(key, None)
        else:
            result[key] = apply_merge(result.get(key), change)
    return result
