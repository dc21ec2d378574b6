"""Reduce an input to the parts that a fault needs, by greedy removal."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")

#: How often a smaller version is tried at most.
MAX_TRIALS = 400


def smallest(
    whole: T,
    still_shows: Callable[[T], bool],
    smaller: Callable[[T], Iterable[T]],
    max_trials: int = MAX_TRIALS,
) -> T:
    """Return the smallest version of an input that was reached: each step takes the first smaller one with the fault.

    Parameters
    ----------
    still_shows : whether a version still has the fault
    smaller : yields versions of its argument that lack a part, the largest parts first
    """
    trials = 0
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for candidate in smaller(whole):
            if trials == max_trials:
                return whole
            trials += 1
            if still_shows(candidate):
                whole, is_smaller = candidate, True
                break
    return whole
