"""JSON values for CEL with the equality of Kubernetes: different types are unequal, and 1 equals 1.0.

celpy refuses to compare an integer with a float or a string with a number, as early CEL did. A rule could
then not compare the spec of a queue whose quota changes from 8 to 12.5 with the old spec.
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
    """Return the CEL value of a string or a number."""
    if isinstance(value, str):
        return String(value)
    return Int(value) if isinstance(value, int) else Double(value)
