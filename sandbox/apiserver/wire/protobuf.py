"""Decode protobuf bodies by the captured table of field numbers (`data/protobuf.json.xz`).

Typed Go clients send protobuf by default and do not fall back to JSON. The table has every built-in kind. An unknown
kind, or an unknown field with a value, is answered with 415, so that no data is lost without notice.

A field has a name in JSON and a type code: `text`, `bytes`, `bool`, `int`, `time`, `quantity`, `port` (a number or a
name), `json` (a message that holds encoded JSON), or the name of a message. `[]` marks a repeated field, `{}` a map
from text. `?` marks a field whose zero value JSON has too, as Go pointers have it. A field without a name belongs to
the object around it: its fields are those of that object, its items those of that list.
"""

from __future__ import annotations

import datetime as dt
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import orjson

from sandbox.apiserver.data.bundle import protobuf_fields
from sandbox.apiserver.model import clock, errors

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
MAGIC = b"k8s\x00"
_FALLBACKS = ("application/json", "application/yaml")
_TYPE_META = {1: "apiVersion", 2: "kind"}

Obj = dict[str, Any]


class _UnknownFieldError(Exception):
    """The message has a field with a value that is not in the table."""


def is_protobuf(media_type: str, data: bytes) -> bool:
    """Return whether a body is protobuf, by its content type or its first bytes."""
    return media_type == MEDIA_TYPE or data.startswith(MAGIC)


def decode_object(data: bytes) -> Obj:
    """Return the object inside the envelope, with its `apiVersion` and `kind`.

    Raises
    ------
    ApiError : 415 for a kind or field outside of the table, 400 for bytes that are not a protobuf message
    """
    if not data.startswith(MAGIC):
        raise errors.bad_request("provided data does not appear to be a protobuf message")
    try:
        type_meta, raw = _envelope(data[len(MAGIC) :])
        message = protobuf_fields().kinds.get(f"{type_meta['apiVersion']}/{type_meta['kind']}")
        if message is None:
            raise errors.unsupported_body(_FALLBACKS)
        return {**type_meta, **_message(raw, message)}
    except _UnknownFieldError as error:
        raise errors.unsupported_body(_FALLBACKS) from error
    except (IndexError, ValueError, ArithmeticError, OSError, TypeError, AttributeError) as error:
        # Text that is not UTF-8, a time out of range, a number where bytes belong.
        raise errors.bad_request(f"the protobuf body is damaged: {error}") from error


def _envelope(data: bytes) -> tuple[dict[str, str], bytes]:
    """Return the type meta of the object inside an envelope, and the object's bytes."""
    type_meta = {"apiVersion": "", "kind": ""}
    raw = b""
    for number, value in _raw_fields(data):
        if number == 1:
            type_meta |= {_TYPE_META[n]: v.decode() for n, v in _raw_fields(value) if n in (1, 2)}
        elif number == 2:
            raw = value
    return type_meta, raw


def _message(data: bytes, name: str) -> Any:
    """Return the object of a message, or the list of one that only wraps a list."""
    fields = protobuf_fields().messages[name]
    key, code = fields.get(1, ("", ""))
    if not key and code.endswith("[]"):
        return [_value(value, code[:-2]) for _, value in _raw_fields(data)]
    message: Obj = {}
    for number, value in _raw_fields(data):
        if number in fields:
            _set_field(message, *fields[number], value)
        elif value not in (0, b""):
            raise _UnknownFieldError(f"{name} has no field {number} in the table")
    return message


def _set_field(message: Obj, key: str, code: str, value: Any) -> None:
    if not key:
        message |= _message(value, code)
    elif code.endswith("[]"):
        message.setdefault(key, []).append(_value(value, code[:-2]))
    elif code.endswith("{}"):
        map_key, map_value = _map_entry(value, code[:-2])
        message.setdefault(key, {})[map_key] = map_value
    else:
        decoded = _value(value, code.rstrip("?"))
        # Go sends the zero value of every plain field; JSON omits it unless the field is a pointer.
        if decoded is not None and (code.endswith("?") or decoded not in ("", 0, False, {})):
            message[key] = decoded


def _map_entry(data: bytes, code: str) -> tuple[str, Any]:
    map_key, raw = "", b""
    for number, value in _raw_fields(data):
        if number == 1:
            map_key = value.decode()
        else:
            raw = value
    return map_key, _value(raw, code)


def _value(value: Any, code: str) -> Any:
    """Return the JSON value of a raw number or raw bytes; None for a time that is not set."""
    match code:
        case "text":
            return value.decode()
        case "bytes":
            return b64encode(value).decode()
        case "bool":
            return bool(value)
        case "int":
            return _signed(value)
        case "time":
            return _time(value)
        case "quantity":
            return dict(_raw_fields(value)).get(1, b"0").decode()
        case "json":
            return orjson.loads(dict(_raw_fields(value)).get(1, b"null"))
        case "port":
            choice = dict(_raw_fields(value))
            return choice.get(3, b"").decode() if choice.get(1) else _signed(choice.get(2, 0))
        case _:
            return _message(value, code)


def _signed(value: int) -> int:
    """Return a number that is sent as an unsigned 64-bit two's complement."""
    return value - (1 << 64) if value >= 1 << 63 else value


def _time(data: bytes) -> str | None:
    fields = dict(_raw_fields(data))
    if not fields:
        return None
    seconds, microseconds = _signed(fields.get(1, 0)), fields.get(2, 0) // 1000
    text = clock.stamp(dt.datetime.fromtimestamp(seconds, dt.UTC))
    return text.replace("Z", f".{microseconds:06d}Z") if microseconds else text


def _raw_fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Yield number and raw value of each field: an int or bytes. Fixed-width values are skipped."""
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        number, wire_type = tag >> 3, tag & 7
        if wire_type == 0:
            value, position = _varint(data, position)
            yield number, value
        elif wire_type == 2:
            length, position = _varint(data, position)
            if position + length > len(data):
                raise IndexError("a field is longer than the message")
            yield number, data[position : position + length]
            position += length
        elif wire_type in (1, 5):
            position += 8 if wire_type == 1 else 4
        else:
            raise IndexError(f"unknown wire type {wire_type}")


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """Return the number that begins at a position, and the position after it."""
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
