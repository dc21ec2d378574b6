"""Decode protobuf bodies by a table of field numbers (`protobuf_messages`, which explains its type codes).

Typed Go clients send protobuf by default: kubectl posts reviews, tokens, deployments and other small
objects that way and does not fall back to JSON. The table covers what kubectl creates and what event
recorders and leader election write. An unknown kind, or an unknown field with a value, is answered with
415, so that no data is lost without notice.
"""

from __future__ import annotations

import datetime as dt
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

from sandbox.apiserver.model import clock, errors
from sandbox.apiserver.wire.protobuf_messages import MESSAGES

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
MAGIC = b"k8s\x00"
_FALLBACKS = ("application/json", "application/yaml")

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
        kind = type_meta.get("kind", "")
        group = type_meta.get("apiVersion", "").rpartition("/")[0]
        name = f"{group}/{kind}" if f"{group}/{kind}" in MESSAGES else kind
        if name not in MESSAGES:
            raise errors.unsupported_body(_FALLBACKS)
        return {**type_meta, **_message(raw, name)}
    except _UnknownFieldError as error:
        raise errors.unsupported_body(_FALLBACKS) from error
    except (IndexError, UnicodeDecodeError) as error:
        raise errors.bad_request(f"the protobuf body is damaged: {error}") from error


def _envelope(data: bytes) -> tuple[Obj, bytes]:
    """Return the type meta of the object inside an envelope, and the object's bytes."""
    type_meta: Obj = {}
    raw = b""
    for number, value in _raw_fields(data):
        if number == 1:
            type_meta = _message(value, "TypeMeta")
        elif number == 2:
            raw = value
    return type_meta, raw


def _message(data: bytes, name: str) -> Obj:
    fields = MESSAGES[name]
    message: Obj = {}
    for number, value in _raw_fields(data):
        if number in fields:
            _set_field(message, *fields[number], value)
        elif value not in (0, b""):
            raise _UnknownFieldError(f"{name} has no field {number} in the table")
    return message


def _set_field(message: Obj, key: str, field_type: str, value: Any) -> None:
    if field_type == "-":
        return
    if field_type.endswith("[]"):
        message.setdefault(key, []).append(_value(value, field_type[:-2]))
    elif field_type.endswith("{}"):
        map_key, map_value = _map_entry(value, field_type[:-2])
        message.setdefault(key, {})[map_key] = map_value
    else:
        decoded = _value(value, field_type.rstrip("?"))
        # Go sends the zero value of every plain field; JSON omits it unless the field is a pointer.
        if field_type.endswith("?") or decoded not in ("", 0, False, None, {}):
            message[key] = decoded


def _map_entry(data: bytes, value_type: str) -> tuple[str, Any]:
    map_key, map_value = "", _value(b"", value_type) if value_type != "quantity" else "0"
    for number, value in _raw_fields(data):
        if number == 1:
            map_key = value.decode()
        else:
            map_value = _value(value, value_type)
    return map_key, map_value


def _value(value: Any, field_type: str) -> Any:
    """Return the JSON value of a raw number or raw bytes."""
    match field_type:
        case "text":
            return value.decode()
        case "bytes":
            return b64encode(value).decode()
        case "bool":
            return bool(value)
        case "int":  # sent as an unsigned 64-bit two's complement
            return value - (1 << 64) if value >= 1 << 63 else value
        case "time":
            return _time(value)
        case "quantity":
            return _message(value, "Quantity").get("text", "0")
        case "port":
            choice = _message(value, "IntOrString")
            return choice.get("text", "") if choice.get("type") else choice.get("number", 0)
        case _:
            return _message(value, field_type)


def _time(data: bytes) -> str | None:
    time = _message(data, "Time")
    if not time:
        return None
    microseconds = time.get("nanos", 0) // 1000
    text = clock.stamp(dt.datetime.fromtimestamp(time.get("seconds", 0), dt.UTC))
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
