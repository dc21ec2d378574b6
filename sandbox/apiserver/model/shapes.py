"""One node type for every schema: built-in kinds from OpenAPI, custom kinds from their CRD.

Pruning, validation, strategic merge and server-side apply need the same facts about a field: its type,
the fields below it, the keys that identify the items of a list, and the allowed values. A `Shape` holds
them. References are resolved when they are first needed, because JSONSchemaProps refers to itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

Schema = Mapping[str, Any]
Resolve = Callable[[str], Schema]

REF_PREFIX: Final = "#/components/schemas/"
UNSET: Final = object()
_ACCEPTS: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "int-or-string": (int, str),
    "quantity": (str, int, float),
}


class Shape:
    """One schema node. Its attributes are computed once, because each request reads them many times."""

    __slots__ = (
        "_extra",
        "_items",
        "_properties",
        "_resolve",
        "accepts",
        "atomic_map",
        "default",
        "enum",
        "format",
        "is_open",
        "kind",
        "list_keys",
        "list_type",
        "merge_key",
        "nullable",
        "patch_strategy",
        "pattern",
        "preserve",
        "required",
        "rules",
        "schema",
    )

    def __init__(self, schema: Schema, resolve: Resolve) -> None:
        schema = _flatten(schema, resolve)
        self.schema = schema
        self._resolve = resolve
        self._properties: dict[str, Shape] | None = None
        self._extra: Shape | object | None = UNSET
        self._items: Shape | object | None = UNSET
        self.kind: str = _kind(schema)
        self.accepts: tuple[type, ...] | None = _ACCEPTS.get(self.kind)
        self.format: str = schema.get("format", "")
        self.required: tuple[str, ...] = tuple(schema.get("required", ()))
        self.enum: list[Any] | None = schema.get("enum")
        self.pattern: re.Pattern[str] | None = _pattern(schema.get("pattern"))
        self.nullable: bool = bool(schema.get("nullable"))
        self.default: Any = schema.get("default", UNSET)
        self.preserve: bool = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
        self.atomic_map: bool = schema.get("x-kubernetes-map-type") == "atomic"
        self.list_type: str = schema.get("x-kubernetes-list-type", "atomic")
        self.list_keys: tuple[str, ...] = tuple(schema.get("x-kubernetes-list-map-keys", ()))
        self.merge_key: str = schema.get("x-kubernetes-patch-merge-key", "")
        self.patch_strategy: str = schema.get("x-kubernetes-patch-strategy", "")
        self.rules: list[dict[str, Any]] = schema.get("x-kubernetes-validations", [])
        # Any key is allowed in free-form objects and in values without a type.
        self.is_open: bool = self.preserve or self.kind == "any" or _is_bare_object(schema)

    @property
    def properties(self) -> dict[str, Shape]:
        if self._properties is None:
            declared = self.schema.get("properties", {})
            self._properties = {
                name: Shape(child, self._resolve) for name, child in declared.items()
            }
        return self._properties

    @property
    def extra(self) -> Shape | None:
        """Return the shape of the values of keys that are not in `properties` (`additionalProperties`)."""
        if self._extra is UNSET:
            declared = self.schema.get("additionalProperties")
            self._extra = Shape(declared, self._resolve) if isinstance(declared, dict) else None
        return self._extra  # type: ignore[return-value]

    @property
    def items(self) -> Shape | None:
        if self._items is UNSET:
            declared = self.schema.get("items")
            self._items = Shape(declared, self._resolve) if declared else None
        return self._items  # type: ignore[return-value]

    def child(self, key: str) -> Shape | None:
        """Return the shape of a key's value; None if the schema does not declare the key."""
        return self.properties.get(key) or self.extra


def _flatten(schema: Schema, resolve: Resolve) -> Schema:
    """Resolve `$ref`, and the one-element `allOf` that holds a reference beside its default."""
    while True:
        if "$ref" in schema:
            target = dict(resolve(schema["$ref"].removeprefix(REF_PREFIX)))
            schema = {**target, **{k: v for k, v in schema.items() if k != "$ref"}}
        elif len(schema.get("allOf", ())) == 1 and "$ref" in schema["allOf"][0]:
            other_fields = {k: v for k, v in schema.items() if k != "allOf"}
            schema = {**other_fields, "$ref": schema["allOf"][0]["$ref"]}
        else:
            return schema


def _kind(schema: Schema) -> str:
    if schema.get("x-kubernetes-int-or-string") or schema.get("format") == "int-or-string":
        return "int-or-string"
    if "type" in schema:
        return str(schema["type"])
    alternatives = {option.get("type") for option in schema.get("oneOf", ())}
    if alternatives == {"string", "number"}:
        return "quantity"
    if "properties" in schema or "additionalProperties" in schema:
        return "object"
    return "any"


def _is_bare_object(schema: Schema) -> bool:
    declares = "properties" in schema or "additionalProperties" in schema
    return schema.get("type") == "object" and not declares


@lru_cache(maxsize=512)
def _compiled(text: str) -> re.Pattern[str]:
    return re.compile(text)


def _pattern(text: str | None) -> re.Pattern[str] | None:
    return _compiled(text) if text else None
