"""Encode and decode the cursors of lists.

A cursor is opaque to clients: base64 of the order it belongs to, and of the sort value and the key of the last
row shown. The decoded values are checked against the columns they will be compared with, so that a forged cursor
cannot reach the database with a value of another type.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import orjson
from django.db import models

from kaiweb.api.errors import Problem, bad_parameter
from queues.tree.shape import is_clean

MAX_LENGTH = 1024
INTEGERS = range(-(2**63), 2**63)


def encode(order: str, value: Any, key: Any) -> str:
    """Return the cursor after a row.

    order : the public name of the order, `-` before it for descending
    """
    text = value.isoformat() if isinstance(value, datetime) else value
    return base64.urlsafe_b64encode(orjson.dumps([order, text, key])).decode().rstrip("=")


def decode(
    cursor: str,
    order: str,
    value_field: models.Field[Any, Any],
    key_field: models.Field[Any, Any],
) -> tuple[Any, Any]:
    """Return the sort value and the key.

    Raises
    ------
    Problem : the cursor was not made by `encode` for this order
    """
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        parts = orjson.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        if not isinstance(parts, list) or len(parts) != 3 or parts[0] != order:
            raise ValueError("not three parts of this order")
        return _reader(value_field)(parts[1]), _reader(key_field)(parts[2])
    except (binascii.Error, orjson.JSONDecodeError, ValueError, OverflowError) as error:
        raise _refusal(cursor, order) from error


def _refusal(cursor: str, order: str) -> Problem:
    return bad_parameter(
        "cursor",
        f"expected `next` of an earlier answer of the same list sorted by '{order}'",
        cursor,
    )


def _reader(field: models.Field[Any, Any]) -> Callable[[Any], Any]:
    for kind, read in READERS:
        if isinstance(field, kind):
            return read
    raise TypeError(f"no list can be sorted by {field}: a {type(field).__name__}")


def _text(value: Any) -> str:
    if isinstance(value, str) and len(value) <= MAX_LENGTH and is_clean(value):
        return value
    raise ValueError("expected a string")


def _moment(value: Any) -> datetime:
    moment = datetime.fromisoformat(_text(value))
    if moment.tzinfo is None:
        raise ValueError("expected a time zone")
    return moment.astimezone(UTC)


def _number(value: Any) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    raise ValueError("expected a number")


def _integer(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value in INTEGERS:
        return value
    raise ValueError("expected a whole number")


READERS: tuple[tuple[type[models.Field[Any, Any]], Callable[[Any], Any]], ...] = (
    (models.DateTimeField, _moment),
    (models.CharField, _text),
    (models.TextField, _text),
    (models.FloatField, _number),
    (models.IntegerField, _integer),
)
