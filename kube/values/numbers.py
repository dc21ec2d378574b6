"""Numbers in annotations and labels, read as Go's strconv reads them, each in bounded time.

A user may write anything there: five thousand digits, digits of other alphabets, exponents in the millions.
Python's `int` and `float` accept more than Go does (spaces, underscores, foreign digits), and `Fraction`
accepts numbers of any size; these functions accept exactly what KAI accepts.
"""

from __future__ import annotations

import math
import re

from kube.errors import BadValueError

MAX_LENGTH = 400
MIN_INT32, MAX_INT32 = -(2**31), 2**31 - 1
MIN_INT64, MAX_INT64 = -(2**63), 2**63 - 1
_INTEGER = re.compile(r"[+-]?[0-9]+")
_DIGITS = r"[0-9](?:_?[0-9])*"
_DECIMAL = re.compile(
    rf"[+-]?(?:{_DIGITS}\.?(?:{_DIGITS})?|\.{_DIGITS})(?:[eE][+-]?{_DIGITS})?|[+-]?(?:inf|infinity)|nan",
    re.IGNORECASE,
)
_HEX = re.compile(
    r"[+-]?0x_?(?:[0-9a-f](?:_?[0-9a-f])*\.?[0-9a-f]*|\.[0-9a-f]+)p[+-]?[0-9]+", re.IGNORECASE
)


def parse_int(text: str, *, smallest: int = MIN_INT64, largest: int = MAX_INT64) -> int:
    """Return a decimal integer, as `strconv.ParseInt(text, 10, 64)` does.

    Raises
    ------
    BadValueError : no integer, or out of range
    """
    if len(text) <= MAX_LENGTH and _INTEGER.fullmatch(text):
        value = int(text)
        if smallest <= value <= largest:
            return value
    raise BadValueError(f"expected an integer from {smallest} to {largest}, got {_shown(text)}")


def int_or_none(
    text: str | None, *, smallest: int = MIN_INT64, largest: int = MAX_INT64
) -> int | None:
    """Return a decimal integer; None if the text is absent, not an integer, or out of range."""
    try:
        return parse_int(text, smallest=smallest, largest=largest) if text else None
    except BadValueError:
        return None


def parse_float(text: str) -> float:
    """Return a finite number, as `strconv.ParseFloat(text, 64)` does for those.

    Raises
    ------
    BadValueError : no number, infinite, NaN, or beyond what 64 bits hold
    """
    value = math.nan
    if len(text) <= MAX_LENGTH and _DECIMAL.fullmatch(text):
        value = float(text.replace("_", ""))
    elif is_hex_float(text):
        value = _from_hex(text.replace("_", ""))
    if not math.isfinite(value):
        raise BadValueError(f"expected a finite number, got {_shown(text)}")
    return value


def is_hex_float(text: str) -> bool:
    """Return whether Go reads the text as a number in base 16, such as `0x1p-2`."""
    return len(text) <= MAX_LENGTH and _HEX.fullmatch(text) is not None


def parse_bool(text: str) -> bool:
    """Return a truth value, as `strconv.ParseBool` does.

    Raises
    ------
    BadValueError : none of the twelve spellings
    """
    if text in ("1", "t", "T", "TRUE", "true", "True"):
        return True
    if text in ("0", "f", "F", "FALSE", "false", "False"):
        return False
    raise BadValueError(f"expected true or false, got {_shown(text)}")


def _from_hex(text: str) -> float:
    try:
        return float.fromhex(text)
    except OverflowError:
        return math.inf


def _shown(text: str) -> str:
    return repr(text[:40]) + ("..." if len(text) > 40 else "")
