"""Texts for people."""

from __future__ import annotations

from collections.abc import Sequence


def first_few(names: Sequence[str], most: int, separator: str = ", ") -> str:
    """Return at most so many names, and how many more there are."""
    shown = separator.join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown
