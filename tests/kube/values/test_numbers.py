"""Numbers of annotations are read as Go reads them, in bounded time."""

from __future__ import annotations

import pytest

from kube.errors import BadValueError
from kube.values.numbers import parse_bool, parse_float, parse_int


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.5", 0.5),
        (".5", 0.5),
        ("5.", 5.0),
        ("+1e-3", 0.001),
        ("0x1p-2", 0.25),
        ("1_0", 10.0),
        ("1e-99999999", 0.0),
        ("-0", 0.0),
    ],
)
def test_floats_are_read_as_strconv_reads_them(text: str, value: float) -> None:
    assert parse_float(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        " 0.5",
        "0.5 ",
        "NaN",
        "inf",
        "-Infinity",
        "1e99999999",
        "0x1p99999",
        "0x1",
        "٠.٥",
        "1__0",
        "9" * 5000,
        "_1",
        "1_",
        "0,5",
        "500m",
        "0.5\x00",
    ],
)
def test_a_text_that_is_not_a_finite_number_is_a_bad_value(text: str) -> None:
    with pytest.raises(BadValueError, match="expected a finite number"):
        parse_float(text)


def test_integers_outside_of_the_range_are_bad_values() -> None:
    assert parse_int("9223372036854775807") == 2**63 - 1
    assert parse_int("-007") == -7
    for text in ("9223372036854775808", "1_0", " 1", "", "٣", "²", "1.0", "9" * 5000):
        with pytest.raises(BadValueError, match="expected an integer"):
            parse_int(text)


def test_booleans_are_read_as_go_spells_them() -> None:
    assert [parse_bool(text) for text in ("1", "t", "T", "TRUE", "true", "True")] == [True] * 6
    assert [parse_bool(text) for text in ("0", "f", "F", "FALSE", "false", "False")] == [False] * 6
    with pytest.raises(BadValueError, match="expected true or false"):
        parse_bool("yes")
