"""Quantities in the canonical form in which the real server stores them: `1000m` becomes `1`.

Clients compare quantities as text after a write, so the form matters; the arithmetic is exact,
within the bounds that `kube.values.quantity` sets.
"""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache

from kube.errors import BadValueError
from kube.values import quantity

_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}


class QuantityError(ValueError):
    """The text is not a quantity."""


@lru_cache(maxsize=8192)
def value_of(text: str) -> Decimal:
    """Return the exact amount that a quantity stands for.

    Raises
    ------
    QuantityError : the text does not follow the grammar of quantities
    """
    return _parse(text)[0]


@lru_cache(maxsize=8192)
def canonical(text: str) -> str:
    """Return the text with the largest suffix that leaves a whole number."""
    amount, family = _parse(text)
    if amount == 0:
        return "0"
    if family == "binary" and abs(amount) >= 1024 and amount == amount.to_integral_value():
        whole = int(amount)
        for suffix, shift in reversed(_BINARY.items()):
            if whole % (1 << shift) == 0:
                return f"{whole >> shift}{suffix}"
        return str(whole)
    for suffix, exponent in reversed(_DECIMAL.items()):
        scaled = amount.scaleb(-exponent)
        if scaled == scaled.to_integral_value():
            if family == "exponent" and exponent:
                return f"{int(scaled)}e{exponent}"
            return f"{int(scaled)}{suffix}"
    raise QuantityError(f"quantity {text!r} is finer than a billionth")


def _parse(text: str) -> tuple[Decimal, str]:
    try:
        return quantity.parse_decimal(text)
    except BadValueError as error:
        raise QuantityError(
            "quantities must match the regular expression "
            "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        ) from error
