"""Shapes that several resources share: amounts, bounds, pages."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers as s

NUMBER = {"type": "number"}
AMOUNTS_SCHEMA = {
    "type": "object",
    "properties": {"gpu": NUMBER, "cpuMilli": NUMBER, "memoryBytes": NUMBER},
    "required": ["gpu", "cpuMilli", "memoryBytes"],
}
BOUND = {"oneOf": [NUMBER, {"type": "string", "enum": ["unlimited"]}]}
BOUNDS_SCHEMA = {
    "type": "object",
    "description": "An absent resource is unset.",
    "properties": {"gpu": BOUND, "cpuMilli": BOUND, "memoryBytes": BOUND},
}
WANTED = {"oneOf": [*BOUND["oneOf"], {"type": "null"}]}
WANTED_SCHEMA = {
    "type": "object",
    "description": "null unsets; a resource that is not named stays.",
    "properties": {"gpu": WANTED, "cpuMilli": WANTED, "memoryBytes": WANTED},
}
MODELS_SCHEMA = {
    "type": "object",
    "description": "By GPU model, as the label of nodes names it. An absent bound is none.",
    "additionalProperties": {
        "type": "object",
        "properties": {"quota": BOUND, "limit": BOUND, "allocated": NUMBER},
        "required": ["allocated"],
    },
}
WANTED_MODELS_SCHEMA = {
    "type": ["object", "null"],
    "description": "By GPU model, as the label of nodes names it; replaces the bounds of all models.",
    "additionalProperties": {
        "type": "object",
        "properties": {"quota": WANTED, "limit": WANTED},
        "additionalProperties": False,
    },
}
WEIGHTS_SCHEMA = {
    "type": "object",
    "properties": {"gpu": NUMBER, "cpuMilli": NUMBER, "memoryBytes": NUMBER},
}


@extend_schema_field(AMOUNTS_SCHEMA)
class Amounts(s.JSONField):
    """GPUs, millicores, bytes."""


@extend_schema_field(BOUNDS_SCHEMA)
class Bounds(s.JSONField):
    """Quota or limit."""


@extend_schema_field(WANTED_SCHEMA)
class WantedBounds(s.JSONField):
    """Quota or limit in a write."""


@extend_schema_field(MODELS_SCHEMA)
class ModelBounds(s.JSONField):
    """Quota, limit and use by GPU model."""


@extend_schema_field(WANTED_MODELS_SCHEMA)
class WantedModelBounds(s.JSONField):
    """Quota and limit by GPU model in a write."""


@extend_schema_field(WEIGHTS_SCHEMA)
class Weights(s.JSONField):
    """Over-quota weights."""


class AsOf(s.Serializer[object]):
    time = s.DateTimeField(allow_null=True)
    session = s.IntegerField(allow_null=True)
    rv = s.CharField()


class Page(s.Serializer[object]):
    next = s.CharField(allow_null=True)
    asOf = AsOf()
    count = s.IntegerField(required=False)
