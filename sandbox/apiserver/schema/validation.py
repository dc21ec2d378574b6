"""Check objects against their shape: drop unknown fields, fill in defaults, report wrong values.

Built-in kinds are decoded as Go decodes them (unknown fields and nulls are dropped, a wrong type is a
400). Custom kinds follow structural schemas: pruning, defaults, then validation in the wording of the real
server. Every write runs through here, so no path is built until something is wrong: each level returns
None or findings, and its parent puts its own name before their paths.
"""

from __future__ import annotations

import copy
import re
from typing import Any, Final

from sandbox.apiserver.model import errors
from sandbox.apiserver.model.errors import Cause
from sandbox.apiserver.model.quantities import QuantityError, canonical
from sandbox.apiserver.model.shapes import UNSET, Shape

# (path, problem): UNKNOWN, or a sentence about a wrong value in which PLACE stands for the field.
Finding = tuple[str, str]
UNKNOWN: Final = "unknown"
PLACE: Final = "{place}"


def sift(value: Any, shape: Shape) -> list[Finding] | None:
    """Drop the unknown fields and nulls of a built-in object in place; return unknown fields and wrong types."""
    if type(value) is dict:
        return _sift_object(value, shape)
    if type(value) is list:
        return _sift_list(value, shape)
    if shape.accepts is not None:
        return None if type(value) in shape.accepts else [("", _mismatch(value, shape))]
    return [("", _mismatch(value, shape))] if shape.kind in ("object", "array") else None


def _sift_object(value: dict[str, Any], shape: Shape) -> list[Finding] | None:
    if shape.kind != "object":
        return None if shape.kind == "any" else [("", _mismatch(value, shape))]
    if shape.is_open:
        return None
    properties, extra = shape.properties, shape.extra
    findings: list[Finding] = []
    dropped: list[str] = []
    for key, field in value.items():
        child = properties.get(key) or extra
        if child is None:
            findings.append((f".{key}", UNKNOWN))
            dropped.append(key)
            continue
        if child.accepts is not None and type(field) in child.accepts:
            if child.kind == "quantity" and (problem := _canonicalise(value, key, field)):
                findings.append((f".{key}", problem))
            continue
        if field is None or (not field and _is_omitted(field, child) and key not in shape.required):
            dropped.append(key)
            continue
        if below := sift(field, child):
            findings += [(f".{key}{path}", problem) for path, problem in below]
    for key in dropped:
        del value[key]
    return findings or None


def _sift_list(value: list[Any], shape: Shape) -> list[Finding] | None:
    if shape.kind != "array":
        return None if shape.kind == "any" else [("", _mismatch(value, shape))]
    items = shape.items
    if items is None:
        return None
    findings: list[Finding] = []
    for index, item in enumerate(value):
        if below := sift(item, items):
            findings += [(f"[{index}]{path}", problem) for path, problem in below]
    return findings or None


def _is_omitted(value: Any, shape: Shape) -> bool:
    """Return whether Go omits this empty value: it does for lists and maps, but not for structs."""
    return type(value) is list or (type(value) is dict and shape.extra is not None)


def _canonicalise(holder: dict[str, Any], key: str, value: Any) -> str | None:
    try:
        holder[key] = canonical(value if type(value) is str else str(value))
    except QuantityError as error:
        return str(error)
    return None


def _mismatch(value: Any, shape: Shape) -> str:
    names = {dict: "object", list: "array", str: "string", bool: "bool"}
    actual = names.get(type(value), "number")
    return f"json: cannot unmarshal {actual} into Go struct field {PLACE} of type {shape.kind}"


def prune(value: Any, shape: Shape) -> list[str]:
    """Drop the unknown fields of a custom object in place; return their paths."""
    if isinstance(value, dict):
        return _prune_object(value, shape)
    unknown: list[str] = []
    if isinstance(value, list) and shape.items is not None:
        for index, item in enumerate(value):
            unknown += [f"[{index}]{path}" for path in prune(item, shape.items)]
    return unknown


def _prune_object(value: dict[str, Any], shape: Shape) -> list[str]:
    unknown: list[str] = []
    for key in list(value):
        child = shape.child(key)
        if child is not None:
            unknown += [f".{key}{path}" for path in prune(value[key], child)]
        elif not shape.is_open or _is_typed_map(shape):
            del value[key]
            unknown.append(f".{key}")
    return unknown


def _is_typed_map(shape: Shape) -> bool:
    # Structural schemas prune below a bare `type: object` unless it preserves unknown fields.
    return shape.kind == "object" and not shape.preserve


def fill_defaults(value: Any, shape: Shape) -> None:
    """Apply a custom kind's defaults, and drop nulls that its schema does not allow."""
    if isinstance(value, dict):
        _fill_object_defaults(value, shape)
    elif isinstance(value, list) and shape.items is not None:
        for item in value:
            fill_defaults(item, shape.items)


def _fill_object_defaults(value: dict[str, Any], shape: Shape) -> None:
    for key, child in shape.properties.items():
        if value.get(key) is None and not (key in value and child.nullable):
            value.pop(key, None)
            if child.default is not UNSET:
                value[key] = copy.deepcopy(child.default)
    for key, field in value.items():
        below = shape.child(key)
        if below is not None:
            fill_defaults(field, below)


def validate(value: Any, shape: Shape, path: str) -> list[Cause]:
    """Check a custom object's values against its structural schema."""
    if value is None:
        return [] if shape.nullable else [_type_cause(path, value, shape)]
    if not _has_type(value, shape):
        return [_type_cause(path, value, shape)]
    causes: list[Cause] = []
    if shape.enum is not None and value not in shape.enum:
        causes.append(errors.unsupported(path, value, shape.enum))
    if isinstance(value, str):
        causes += _validate_text(value, shape, path)
    elif isinstance(value, dict):
        causes += _validate_object(value, shape, path)
    elif isinstance(value, list):
        causes += _validate_list(value, shape, path)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        causes += _validate_number(value, shape, path)
    causes += _validate_branches(value, shape, path)
    return causes


def _has_type(value: Any, shape: Shape) -> bool:
    match shape.kind:
        case "object":
            return isinstance(value, dict)
        case "array":
            return isinstance(value, list)
        case "integer":
            is_whole = isinstance(value, float) and value.is_integer()
            return type(value) is int or is_whole
        case _:
            return shape.accepts is None or type(value) in shape.accepts


def _type_cause(path: str, value: Any, shape: Shape) -> Cause:
    names = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer"}
    actual = "null" if value is None else names.get(type(value), "number")
    kind = "integer,string" if shape.kind == "int-or-string" else shape.kind
    detail = f'{path} in body must be of type {kind}: "{actual}"'
    return errors.wrong_type(path, actual, detail)


def _validate_text(value: str, shape: Shape, path: str) -> list[Cause]:
    causes = []
    schema = shape.schema
    if len(value) < schema.get("minLength", 0):
        detail = f"{path} in body should be at least {schema['minLength']} chars long"
        causes.append(errors.invalid_value(path, value, detail))
    if len(value) > schema.get("maxLength", len(value)):
        message = f"Too long: may not be more than {schema['maxLength']} bytes"
        return [*causes, Cause(path, "FieldValueTooLong", message)]
    if shape.pattern is not None and not shape.pattern.search(value):
        detail = f"{path} in body should match '{schema['pattern']}'"
        causes.append(errors.invalid_value(path, value, detail))
    if shape.format in _FORMATS and not _FORMATS[shape.format].match(value):
        detail = f'{path} in body must be of type {shape.format}: "{value}"'
        causes.append(errors.invalid_value(path, value, detail))
    return causes


_FORMATS = {
    "date-time": re.compile(r"^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$"),
    "date": re.compile(r"^\d{4}-\d\d-\d\d$"),
    "duration": re.compile(
        r"^[+-]?(0|(\d+(\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)([\d.]+(ns|us|µs|ms|s|m|h))*)$"
    ),
    "uuid": re.compile(r"^[0-9a-fA-F]{8}(-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}$"),
}


def _validate_number(value: float, shape: Shape, path: str) -> list[Cause]:
    schema, details = shape.schema, []
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None:
        if schema.get("exclusiveMinimum") and value <= low:
            details.append(f"should be greater than {low}")
        elif value < low:
            details.append(f"should be greater than or equal to {low}")
    if high is not None:
        if schema.get("exclusiveMaximum") and value >= high:
            details.append(f"should be less than {high}")
        elif value > high:
            details.append(f"should be less than or equal to {high}")
    step = schema.get("multipleOf")
    if step and value % step:
        details.append(f"should be a multiple of {step}")
    width = {"int32": 31, "int64": 63}.get(shape.format)
    if width and not -(1 << width) <= value < (1 << width):
        details.append(f"must be a valid {shape.format}")
    return [errors.invalid_value(path, value, f"{path} in body {detail}") for detail in details]


def _validate_object(value: dict[str, Any], shape: Shape, path: str) -> list[Cause]:
    causes = [
        errors.required(f"{path}.{name}".lstrip("."))
        for name in shape.required
        if name not in value
    ]
    schema = shape.schema
    if len(value) < schema.get("minProperties", 0):
        detail = f"{path} in body should have at least {schema['minProperties']} properties"
        causes.append(errors.invalid_value(path, len(value), detail))
    if len(value) > schema.get("maxProperties", len(value)):
        message = f"Too many: {len(value)}: must have at most {schema['maxProperties']} items"
        causes.append(Cause(path, "FieldValueTooMany", message))
    for key, field in value.items():
        child = shape.child(key)
        if child is not None:
            causes += validate(field, child, f"{path}.{key}".lstrip("."))
    return causes


def _validate_list(value: list[Any], shape: Shape, path: str) -> list[Cause]:
    causes: list[Cause] = []
    schema = shape.schema
    if len(value) < schema.get("minItems", 0):
        detail = f"{path} in body should have at least {schema['minItems']} items"
        causes.append(errors.invalid_value(path, len(value), detail))
    if len(value) > schema.get("maxItems", len(value)):
        message = f"Too many: {len(value)}: must have at most {schema['maxItems']} items"
        causes.append(Cause(path, "FieldValueTooMany", message))
    if shape.list_type in ("map", "set"):
        causes += _duplicates(value, shape, path)
    if shape.items is not None:
        for index, item in enumerate(value):
            causes += validate(item, shape.items, f"{path}[{index}]")
    return causes


def _duplicates(value: list[Any], shape: Shape, path: str) -> list[Cause]:
    causes: list[Cause] = []
    identities: list[Any] = []
    for index, item in enumerate(value):
        if shape.list_type == "map" and isinstance(item, dict):
            identity: Any = {key: item.get(key) for key in shape.list_keys}
        else:
            identity = item
        if identity in identities:
            causes.append(errors.duplicate(f"{path}[{index}]", identity))
        identities.append(identity)
    return causes


def _validate_branches(value: Any, shape: Shape, path: str) -> list[Cause]:
    """Check allOf, anyOf, oneOf and not; in structural schemas their branches only restrict values."""
    schema = shape.schema
    if shape.kind == "int-or-string" or not schema.keys() & {"allOf", "anyOf", "oneOf", "not"}:
        return []
    causes: list[Cause] = []
    for branch in schema.get("allOf", ()):
        causes += validate(value, Shape(branch, _no_references), path)
    if schema.get("anyOf") and _count_passing(value, schema["anyOf"], path) == 0:
        detail = f"{path} in body must validate at least one schema (anyOf)"
        causes.append(errors.invalid_value(path, value, detail))
    if schema.get("oneOf") and _count_passing(value, schema["oneOf"], path) != 1:
        detail = f"{path} in body must validate one and only one schema (oneOf)"
        causes.append(errors.invalid_value(path, value, detail))
    if "not" in schema and not validate(value, Shape(schema["not"], _no_references), path):
        detail = f"{path} in body must not validate the schema (not)"
        causes.append(errors.invalid_value(path, value, detail))
    return causes


def _count_passing(value: Any, branches: list[dict[str, Any]], path: str) -> int:
    return sum(not validate(value, Shape(branch, _no_references), path) for branch in branches)


def _no_references(name: str) -> dict[str, Any]:
    raise errors.bad_request(f"structural schemas may not contain references, got {name}")
