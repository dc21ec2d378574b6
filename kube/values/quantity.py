"""Kubernetes quantities: exact parsing, and the canonical text for the ones we write.

`"500m"`, `"2Gi"`, `"1e3"` and plain numbers all mean exact decimals, within the bounds that Kubernetes
sets: an amount finer than a billionth is rounded away from zero, one beyond 2^63-1 is cut there. So every
amount has at most 28 digits, whatever a user wrote, and arithmetic on it stays cheap. Rounding to an
integer unit happens only where one is asked for, and then upwards, as the API machinery does. Parsing is
cached: a cluster of thousands of pods uses a few dozen different texts.
"""

from __future__ import annotations

import re
from decimal import ROUND_UP, Context, Decimal
from fractions import Fraction
from functools import lru_cache

from kube.errors import BadValueError

MAX_AMOUNT = 2**63 - 1
MAX_LENGTH = 128
_PATTERN = re.compile(
    r"(?P<number>[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?P<suffix>[numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]+)?"
)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_FINEST = Decimal("1e-9")
_MIN_EXPONENT, _MAX_EXPONENT = -9, 18
_EXACT = Context(prec=2 * MAX_LENGTH)


@lru_cache(maxsize=16384, typed=True)
def parse_quantity(quantity: str | int | float) -> Fraction:
    """Return the value of a quantity, exact down to a billionth and cut at 2^63-1.

    Raises
    ------
    BadValueError : the text is no quantity; the message shows it
    """
    if isinstance(quantity, bool):
        raise _refusal(quantity)
    if isinstance(quantity, int):
        return Fraction(max(-MAX_AMOUNT, min(MAX_AMOUNT, quantity)))
    text = repr(quantity) if isinstance(quantity, float) else quantity
    return Fraction(parse_decimal(text)[0])


def parse_decimal(text: str) -> tuple[Decimal, str]:
    """Return the value of a quantity and how it is written: `binary`, `decimal` or `exponent`.

    Raises
    ------
    BadValueError : the text is no quantity; the message shows it
    """
    match = _PATTERN.fullmatch(text) if len(text) <= MAX_LENGTH else None
    if match is None:
        raise _refusal(text)
    number, suffix = Decimal(match["number"]), match["suffix"] or ""
    if suffix in _BINARY:
        return _bounded(_EXACT.multiply(number, Decimal(1 << _BINARY[suffix])), 0), "binary"
    if suffix in _DECIMAL:
        return _bounded(number, _DECIMAL[suffix]), "decimal"
    return _bounded(number, int(suffix[1:])), "exponent"


def _refusal(quantity: object) -> BadValueError:
    shown = repr(str(quantity)[:40])
    return BadValueError(
        f"quantity {shown}: expected a number with a suffix such as 500m or 2Gi, "
        f"at most {MAX_LENGTH} characters"
    )


def _bounded(number: Decimal, exponent: int) -> Decimal:
    """Return `number * 10**exponent` within the bounds; no power is built before its size is known."""
    if not number:
        return Decimal(0)
    sign = -1 if number.is_signed() else 1
    magnitude = number.adjusted() + exponent
    if magnitude > _MAX_EXPONENT:
        return Decimal(sign * MAX_AMOUNT)
    if magnitude < _MIN_EXPONENT:
        return sign * _FINEST
    scaled = number.scaleb(exponent, context=_EXACT)
    if scaled.as_tuple().exponent < _MIN_EXPONENT:  # type: ignore[operator]
        scaled = scaled.quantize(_FINEST, rounding=ROUND_UP, context=_EXACT)
    return max(Decimal(-MAX_AMOUNT), min(Decimal(MAX_AMOUNT), scaled))


@lru_cache(maxsize=16384)
def to_units(quantity: str | int | float) -> int:
    """Return whole units (bytes, devices), rounded up."""
    return _ceil(parse_quantity(quantity))


@lru_cache(maxsize=16384)
def format_decimal(value: Fraction | int | float) -> str:
    """Return the canonical decimal text: `2`, `1500m`, `5k`; what a CPU or GPU amount is written as."""
    exact = Fraction(value).limit_denominator(10**9)
    for exponent in range(18, 0, -3):
        scaled = exact / 10**exponent
        if exact != 0 and scaled.denominator == 1:
            return f"{scaled.numerator}{_suffix(exponent)}"
    for exponent in (0, -3, -6):
        scaled = exact * Fraction(10) ** -exponent
        if scaled.denominator == 1:
            return f"{scaled.numerator}{_suffix(exponent)}"
    return f"{_ceil(exact * 10**9)}n"


@lru_cache(maxsize=16384)
def format_binary(value: Fraction | int) -> str:
    """Return the canonical binary text: `2Gi`, `1536Mi`, `1000`; what a memory amount is written as."""
    exact = Fraction(value)
    if exact.denominator != 1:
        return format_decimal(exact)
    for suffix, power in reversed(_BINARY.items()):
        if exact != 0 and exact.numerator % (1 << power) == 0:
            return f"{exact.numerator >> power}{suffix}"
    return str(exact.numerator)


def _suffix(exponent: int) -> str:
    return next(suffix for suffix, power in _DECIMAL.items() if power == exponent)


def _ceil(value: Fraction) -> int:
    return -(-value.numerator // value.denominator)
