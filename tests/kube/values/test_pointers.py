"""Keys as parts of JSON pointers."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kube.values.pointers import key_of_part, pointer_part


@pytest.mark.parametrize(
    ("key", "part"),
    [
        ("team", "team"),
        ("example.com/team", "example.com~1team"),
        ("a~b", "a~0b"),
        ("~1", "~01"),
    ],
)
def test_slashes_and_tildes_are_escaped(key: str, part: str) -> None:
    assert pointer_part(key) == part


@settings(deadline=None)
@given(st.text(alphabet="a~/01"))
def test_every_key_comes_back(key: str) -> None:
    assert "/" not in pointer_part(key)
    assert key_of_part(pointer_part(key)) == key
