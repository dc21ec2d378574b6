"""Bodies of every kind that is read, each with one hostile value in one field.

The fields come from the typed views and the annotation and label keys from the source text, so that a new
field or key is tried without anybody adding it here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from kube import keys
from kube.errors import BadValueError
from kube.objects.meta import convert
from kube.objects.pod import Pod

T = TypeVar("T")
Json = dict[str, Any]
Place = tuple[str | int, ...]

ROOT = Path(__file__).parents[2]
PACKAGES = ("kube", "queues", "binder", "scheduler")
#: The API server checks these itself, and tests know objects by them.
SERVER_OWNED = {"name", "namespace", "uid", "resourceVersion", "generateName"}

DEEP = "[" * 10_000 + "]" * 10_000
TEXTS: dict[str, str] = {
    "tiny": "1e-99999999",
    "huge": "1e99999999",
    "five thousand digits": "9" * 5000,
    "foreign digits": "\u0663",
    "superscript": "\u00b2",
    "underscore": "1_0",
    "blank": " 1",
    "empty": "",
    "nan": "NaN",
    "inf": "-Inf",
    "minus zero": "-0",
    "negative": "-5",
    "int64": str(2**63 - 1),
    "beyond int64": str(2**63),
    "hex": "0x1p-1",
    "nul": "a\x00b",
    "long": "a" * 262_144,
    "deep json": DEEP,
    "json": '[{"zone": 5}]',
    "regex bomb": "a" * 30 + "!",
    "year 1": "0001-01-01T00:00:00+23:59",
    "year 9999": "9999-12-31T23:59:59-23:59",
    "local time": "2026-01-01T00:00:00",
    "long duration": "9" * 40 + "h",
    "many units": "1h" * 5000,
    "indexes": "0-999999999",
    "yaml bomb": "kind: &a [*a, *a]\nname: x",
}
NUMBERS: dict[str, int | float] = {
    "zero": 0,
    "minus one": -1,
    "int32": 2**31 - 1,
    "int64": 2**63 - 1,
    "below int64": -(2**63),
    "thirty digits": 10**30,
    "huge float": 1e308,
    "tiny float": 5e-324,
}
OTHER_TYPES: dict[str, Any] = {"null": None, "map": {"a": {"b": 1}}, "list": [[1]], "number": 7}


def hostile_values() -> dict[str, Any]:
    """Return every value tried, by a name for messages."""
    return {**TEXTS, **NUMBERS, **OTHER_TYPES}


def full_body(as_type: Any) -> Json:
    """Return a body with every field of a view set."""
    body: Json = _fill(msgspec.inspect.type_info(as_type), 0)
    return body


def places(body: Any, at: Place = ()) -> Iterator[Place]:
    """Yield where the leaves of a body are."""
    if isinstance(body, dict):
        for key, value in body.items():
            is_owned = at == ("metadata",) and key in SERVER_OWNED
            if not is_owned:
                yield from places(value, (*at, key))
    elif isinstance(body, list):
        for index, value in enumerate(body):
            yield from places(value, (*at, index))
    else:
        yield at


def with_value(body: Any, place: Place, value: Any) -> Any:
    """Return a body with another value at a place; what lies beside the way there is shared."""
    if not place:
        return value
    changed = list(body) if isinstance(body, list) else dict(body)
    changed[place[0]] = with_value(body[place[0]], place[1:], value)
    return changed


@cache
def known_keys() -> tuple[str, ...]:
    """Return every text in the source that looks like an annotation or label key."""
    texts = {value for value in vars(keys).values() if isinstance(value, str)}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    texts.add(node.value)
    form = re.compile(
        r"[a-z0-9.-]+\.[a-z]+/[A-Za-z0-9._-]+|runai[a-z./-]+|gpu-[a-z-]+|pod-group-name"
        r"|received-[a-z-]+|(?:nvidia|amd)\.com/[a-z0-9.-]+|user|project|priorityClassName"
    )
    return tuple(sorted(key for key in texts if form.fullmatch(key)))


def _fill(kind: Any, depth: int) -> Any:
    inspect = msgspec.inspect
    if isinstance(kind, inspect.UnionType):
        chosen = [item for item in kind.types if not isinstance(item, inspect.NoneType)]
        texts = [item for item in chosen if isinstance(item, inspect.StrType)]
        return "1" if texts and len(chosen) > 1 else _fill(chosen[0], depth)
    if isinstance(kind, inspect.StructType):
        return {field.encode_name: _fill(field.type, depth + 1) for field in kind.fields}
    if isinstance(kind, inspect.DictType):
        return {"cpu": _fill(kind.value_type, depth + 1)}
    if isinstance(kind, (inspect.VarTupleType, inspect.ListType)):
        return [_fill(kind.item_type, depth + 1)]
    if isinstance(kind, inspect.BoolType):
        return False
    if isinstance(kind, (inspect.IntType, inspect.FloatType)):
        return 1
    if isinstance(kind, inspect.DateTimeType):
        return "2026-01-01T00:00:00Z"
    return "x"


def spoiled(as_type: type[T], value: Any, base: Json | None = None) -> Iterator[T]:
    """Yield objects of a kind, each with the value in another field, annotation or label.

    Those that the client could not decode are left out, as it leaves them out.

    Parameters
    ----------
    base : what the annotations and labels are put on; a bare body if absent
    """
    for number, body in enumerate(_bodies(as_type, value, base or {})):
        metadata = {"namespace": "ns", **_map(body.get("metadata"))}
        metadata.update(name=f"bad-{number}", uid=f"uid-bad-{number}", resourceVersion="9000")
        try:
            yield convert({**body, "metadata": metadata}, as_type)
        except BadValueError:
            continue


def _bodies(as_type: Any, value: Any, base: Json) -> Iterator[Json]:
    full = full_body(as_type)
    for number, place in enumerate(places(full)):
        yield _placed(as_type, with_value(full, place, value), number)
    if isinstance(value, str):
        for number, key in enumerate(known_keys()):
            metadata = _map(base.get("metadata"))
            keys_and_values = {
                where: {**_map(metadata.get(where)), key: value}
                for where in ("annotations", "labels")
            }
            yield _placed(as_type, {**base, "metadata": {**metadata, **keys_and_values}}, number)


def _placed(as_type: Any, body: Json, number: int) -> Json:
    """Let pods be ours and others', waiting and placed, in turn."""
    if as_type is not Pod or not isinstance(body.get("spec"), dict):
        return body
    is_ours, is_placed = bool(number & 1), bool(number & 2)
    spec = {**body["spec"], "schedulerName": "kai-scheduler" if is_ours else "default-scheduler"}
    spec["nodeName"] = "n0" if is_placed else ""
    return {**body, "spec": spec, "status": {"phase": "Running" if is_placed else "Pending"}}


def _map(value: Any) -> Json:
    return value if isinstance(value, dict) else {}
