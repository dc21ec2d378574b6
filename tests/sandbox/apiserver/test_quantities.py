"""Quantities: the canonical form the real server stores."""

from __future__ import annotations

import pytest

from sandbox.apiserver.model.quantities import QuantityError, canonical, value_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1000m", "1"),
        ("1500m", "1500m"),
        ("0.5", "500m"),
        ("1024Mi", "1Gi"),
        ("1536Mi", "1536Mi"),
        ("1.5Gi", "1536Mi"),
        ("8", "8"),
        ("1000", "1k"),
        ("12e3", "12e3"),
        ("0", "0"),
        ("0.0", "0"),
        ("-500m", "-500m"),
        ("512", "512"),
        ("1000Ki", "1000Ki"),
        ("100000000000", "100G"),
        ("1e99999999", "9223372036854775807"),
        ("1e20", "9223372036854775807"),
        ("1e-99999999", "1e-9"),
    ],
)
def test_canonical(text: str, expected: str) -> None:
    assert canonical(text) == expected


@pytest.mark.parametrize("text", ["", "abc", "1 Gi", "1GiB", "--1", "1e", "9" * 5000, "\u0663"])
def test_bad_quantity(text: str) -> None:
    with pytest.raises(QuantityError, match="quantities must match"):
        canonical(text)


def test_value_is_exact() -> None:
    assert value_of("100m") * 10 == value_of("1")
    assert value_of("1Ki") == 1024
