"""Quantities are exact and written canonically."""

from __future__ import annotations

import time
from fractions import Fraction

import pytest

from kube.errors import BadValueError
from kube.values.quantity import format_binary, format_decimal, parse_quantity, to_units


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("500m", Fraction(1, 2)),
        ("2Gi", 2 * 2**30),
        ("1e3", 1000),
        ("1E", 10**18),
        ("1Ei", 2**60),
        ("-1", -1),
        (".5", Fraction(1, 2)),
        ("100u", Fraction(1, 10_000)),
        (4, 4),
        (0.1, Fraction(1, 10)),
    ],
)
def test_quantities_are_read_exactly(text: str | int | float, value: Fraction) -> None:
    assert parse_quantity(text) == value


def test_to_units_rounds_up() -> None:
    assert to_units("100u") == 1
    assert to_units("1500m") == 2
    assert to_units("16Gi") == 17_179_869_184


@pytest.mark.parametrize("text", ["", "2GiB", "one", "1 Gi", "0x10"])
def test_a_text_that_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected a number"):
        parse_quantity(text)


def test_amounts_are_written_in_canonical_form() -> None:
    assert format_decimal(Fraction(3, 2)) == "1500m"
    assert format_decimal(2) == "2"
    assert format_decimal(0) == "0"
    assert format_decimal(5000) == "5k"
    assert format_decimal(0.1220703125) == "122070313n"
    assert format_binary(2 * 2**30) == "2Gi"
    assert format_binary(1536 * 2**20) == "1536Mi"
    assert format_binary(1000) == "1000"
    assert format_binary(0) == "0"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-99999999", Fraction(1, 10**9)),
        ("-1e-99999999", Fraction(-1, 10**9)),
        ("1e99999999", 2**63 - 1),
        ("-1e99999999", -(2**63 - 1)),
        ("9Ei", 2**63 - 1),
        (1e300, 2**63 - 1),
        (10**4000, 2**63 - 1),
        ("0e99999999", 0),
        ("0." + "3" * 100, Fraction(333_333_334, 10**9)),
        ("1n", Fraction(1, 10**9)),
        ("0.1n", Fraction(1, 10**9)),
        ("1" + "0" * 60 + "e-60", 1),
    ],
)
def test_amounts_beyond_the_bounds_of_kubernetes_are_bounded_without_computing_them(
    text: str | int | float, value: Fraction
) -> None:
    began = time.perf_counter()
    assert parse_quantity(text) == value
    assert time.perf_counter() - began < 0.1


@pytest.mark.parametrize(
    "text",
    ["9" * 5000, "٣", "1_0", float("nan"), float("inf"), True, "1e" + "9" * 200, "1\n", "1\x00"],
)
def test_a_text_that_kubernetes_refuses_is_a_bad_value(text: str | float) -> None:
    with pytest.raises(BadValueError, match="expected a number"):
        parse_quantity(text)
