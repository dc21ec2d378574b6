"""Add to the OpenAPI document that every call may answer with a problem."""

from __future__ import annotations

from typing import Any

from kaiweb.api.errors import BASE, MEDIA_TYPE, TYPES

PROBLEM = {
    "type": "object",
    "properties": {
        "type": {"type": "string", "enum": [BASE + slug for slug in TYPES]},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "instance": {"type": "string"},
        "requestId": {"type": "string"},
        "errors": {"type": "array", "items": {"$ref": "#/components/schemas/Finding"}},
        "current": {
            "oneOf": [
                {"$ref": "#/components/schemas/Queue"},
                {"$ref": "#/components/schemas/Shard"},
            ]
        },
        "preview": {
            "type": "integer",
            "description": "Of preview-stale: the simulation that is worse than the preview.",
        },
    },
    "required": ["type", "title", "status", "detail", "instance", "requestId", "errors"],
}

TEXT = {"type": "string"}
HEADERS = {
    "RateLimit-Policy": {
        "description": "The limit that applies, its quota and unit.",
        "schema": TEXT,
    },
    "RateLimit": {"description": "What is left of it; t: seconds until more is.", "schema": TEXT},
    "Retry-After": {"description": "Seconds to wait, where that helps.", "schema": TEXT},
}


def add_problems(
    result: dict[str, Any], generator: object, request: object, public: bool
) -> dict[str, Any]:
    """Add the schema, and a `default` answer to every operation."""
    result["components"]["schemas"]["Problem"] = PROBLEM
    answer = {
        "description": "Refused; `type` says why.",
        "headers": HEADERS,
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    for operations in result["paths"].values():
        for operation in operations.values():
            operation["responses"]["default"] = answer
    return result
