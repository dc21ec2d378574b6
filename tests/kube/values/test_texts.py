"""Texts for people."""

from __future__ import annotations

from kube.values.texts import first_few


def test_a_short_list_is_shown_whole() -> None:
    assert first_few(["a", "b"], 2) == "a, b"
    assert first_few([], 2) == ""


def test_a_long_list_ends_with_how_many_more_there_are() -> None:
    assert first_few(["a", "b", "c", "d"], 2, "; ") == "a; b and 2 more"
