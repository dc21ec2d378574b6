"""Kubernetes quantities: exact parsing, and the canonical text for the ones we write.

`"500m"`, `"2Gi"`, `"1e3"` and plain numbers all mean exact decimals; rounding happens only where an
integer unit is asked for, and then upwards, as the API machinery does. Parsing is cached: a cluster
of thousands of pods uses a few dozen different texts.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

_PATTERN = re.compile(
    r"(?P<number>[+-]?(?:\d+\.?\d*|\.\d+))(?P<suffix>[numkMGTPE]|[KMGTPE]i|[eE][+-]?\d+)?"
)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


@lru_cache(maxsize=16384)
def parse(quantity: str | int | float) -> Fraction:
    """Return the exact value of a quantity.

    Raises
    ------
    ValueError : the text is no quantity; the message shows it
    """
    if isinstance(quantity, int):
        return Fraction(quantity)
    text = repr(quantity) if isinstance(quantity, float) else quantity
    match = _PATTERN.fullmatch(text)
    if match is None:
        raise ValueError(
            f"quantity {quantity!r}: expected a number with a suffix such as 500m or 2Gi"
        )
    number, suffix = Fraction(match["number"]), match["suffix"] or ""
    if suffix in _BINARY:
        return number * (1 << _BINARY[suffix])
    exponent = _DECIMAL[suffix] if suffix in _DECIMAL else int(suffix[1:])
    return number * Fraction(10) ** exponent


@lru_cache(maxsize=16384)
def to_milli(quantity: str | int | float) -> int:
    """Return thousandths, rounded up (`"100u"` is 1)."""
    return _ceil(parse(quantity) * 1000)


@lru_cache(maxsize=16384)
def to_units(quantity: str | int | float) -> int:
    """Return whole units (bytes, devices), rounded up."""
    return _ceil(parse(quantity))


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
