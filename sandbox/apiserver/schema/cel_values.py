"""JSON values as CEL sees them: values of different types are unequal, and 1 equals 1.0.

celpy, as CEL was first specified, refuses to compare an integer with a float or a text with a number, so the
spec of a queue whose quota goes from 8 to 12.5 could not be compared with its old one. Kubernetes compares.
Importing this module imports celpy.
"""

from __future__ import annotations

from typing import Any

from celpy.celtypes import DoubleType, IntType, ListType, MapType, StringType


class Map(MapType):
    __eq__ = dict.__eq__
    __ne__ = dict.__ne__


class List(ListType):
    __eq__ = list.__eq__
    __ne__ = list.__ne__


class Int(IntType):
    __eq__ = int.__eq__
    __ne__ = int.__ne__
    __hash__ = int.__hash__


class Double(DoubleType):
    __eq__ = float.__eq__
    __ne__ = float.__ne__
    __hash__ = float.__hash__


class String(StringType):
    __eq__ = str.__eq__
    __ne__ = str.__ne__
    __hash__ = str.__hash__


def scalar(value: str | float) -> Any:
    """Return a text or a number as CEL sees it."""
    if isinstance(value, str):
        return String(value)
    return Int(value) if isinstance(value, int) else Double(value)
