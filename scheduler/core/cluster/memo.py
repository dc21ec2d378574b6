"""Values that are computed from inputs alone, so that sessions share them until an input changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

R = TypeVar("R")


class Memo:
    """The values that were needed so far, by key."""

    __slots__ = ("_values",)

    def __init__(self) -> None:
        self._values: dict[object, Any] = {}

    def remember(self, key: object, make: Callable[[], R]) -> R:
        """Return the value of a key; `make` computes it the first time."""
        if key not in self._values:
            self._values[key] = make()
        value: R = self._values[key]
        return value
