"""Growing pauses between attempts; every loop and queue of kaiweb that tries again uses them."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

_MAX_DOUBLINGS = 32


def doubled_s(failures: int, *, first_s: float, max_s: float) -> float:
    """Return `first_s`, doubled once per earlier failure, and at most `max_s`.

    Parameters
    ----------
    failures : how many attempts have failed before
    first_s, max_s : the first and the longest pause in seconds
    """
    return min(max_s, first_s * 2.0 ** min(failures, _MAX_DOUBLINGS))


@dataclass(slots=True)
class Backoff:
    """Counts the failures in a row of one activity and returns the pause after each.

    Attributes
    ----------
    random_part : the part of a pause that is random, so that many clients do not return at the same time
    spread : returns a random number from 0 to 1
    """

    first_s: float = 0.2
    max_s: float = 15.0
    random_part: float = 0.5
    spread: Callable[[], float] = random.random
    failures: int = 0

    def pause_s(self) -> float:
        """Count a failure and return the pause before the next attempt."""
        pause = doubled_s(self.failures, first_s=self.first_s, max_s=self.max_s)
        self.failures += 1
        return pause * (1.0 - self.random_part + self.random_part * self.spread())

    def reset(self) -> None:
        """Forget the failures: the last attempt was a success."""
        self.failures = 0
