"""Functions that Kubernetes adds to CEL and that selectors of devices use: quantities, versions, letter case.

A function raises ValueError or TypeError if it cannot be applied to its arguments; the evaluator turns both into an error of the
selector.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import total_ordering
from typing import Any

from celpy import celtypes

from kube.errors import BadValueError
from kube.values.quantity import parse_quantity

_VERSION = re.compile(
    r"(0|[1-9][0-9]{0,17})\.(0|[1-9][0-9]{0,17})\.(0|[1-9][0-9]{0,17})"
    r"(?:-([0-9A-Za-z.-]{1,128}))?(?:\+[0-9A-Za-z.-]{1,128})?"
)


@total_ordering
@dataclass(frozen=True, slots=True, eq=True)
class Quantity:
    """An exact amount, such as `quantity("40Gi")` or a capacity of a device."""

    value: Fraction

    def __lt__(self, other: Quantity) -> bool:
        return self.value < other.value


@total_ordering
@dataclass(frozen=True, slots=True, eq=True)
class Semver:
    """A semantic version; a prerelease (1.0.0-rc.1) is smaller than its release.

    Attributes
    ----------
    prerelease : its parts, as (is a word, number, word); empty for a release
    """

    numbers: tuple[int, int, int]
    prerelease: tuple[tuple[bool, int, str], ...] = ()

    def __lt__(self, other: Semver) -> bool:
        return self._rank() < other._rank()

    def _rank(self) -> tuple[object, ...]:
        return (self.numbers, not self.prerelease, self.prerelease)


def quantity(text: Any) -> Quantity:
    """Return the amount in a text such as `40Gi`."""
    try:
        return Quantity(parse_quantity(str(text)))
    except BadValueError as error:
        raise ValueError(str(error)) from error


def semver(text: Any) -> Semver:
    """Return the version in a text such as `1.2.3-rc.1`."""
    match = _VERSION.fullmatch(str(text))
    if match is None:
        raise ValueError(f"expected a semantic version, got {str(text)[:40]!r}")
    parts = match[4].split(".") if match[4] else []
    # Numbers come before words, and are compared by value.
    prerelease = tuple(
        (False, int(part), "") if part.isdecimal() and len(part) < 19 else (True, 0, part)
        for part in parts
    )
    return Semver((int(match[1]), int(match[2]), int(match[3])), prerelease)


def _can_be_read_by(read: Callable[[Any], object]) -> Callable[[Any], celtypes.BoolType]:
    def can_be_read(text: Any) -> celtypes.BoolType:
        try:
            read(text)
        except ValueError:
            return celtypes.BoolType(False)
        return celtypes.BoolType(True)

    return can_be_read


def _compare(left: Any, right: Any) -> int:
    if type(left) is not type(right) or not isinstance(left, (Quantity, Semver)):
        raise TypeError(f"{type(left).__name__} and {type(right).__name__} cannot be compared")
    return int(left > right) - int(left < right)


def _part(index: int) -> Callable[[Semver], celtypes.IntType]:
    return lambda version: celtypes.IntType(version.numbers[index])


def _as_integer(amount: Quantity) -> celtypes.IntType:
    if amount.value.denominator != 1:
        raise ValueError("the quantity is no integer")
    return celtypes.IntType(amount.value.numerator)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "quantity": quantity,
    "isQuantity": _can_be_read_by(quantity),
    "semver": semver,
    "isSemver": _can_be_read_by(semver),
    "compareTo": lambda left, right: celtypes.IntType(_compare(left, right)),
    "isGreaterThan": lambda left, right: celtypes.BoolType(_compare(left, right) > 0),
    "isLessThan": lambda left, right: celtypes.BoolType(_compare(left, right) < 0),
    "asInteger": _as_integer,
    "asApproximateFloat": lambda amount: celtypes.DoubleType(float(amount.value)),
    "major": _part(0),
    "minor": _part(1),
    "patch": _part(2),
    "lowerAscii": lambda text: celtypes.StringType(str(text).lower()),
    "upperAscii": lambda text: celtypes.StringType(str(text).upper()),
}
