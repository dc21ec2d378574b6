"""The clock of the core: every moment is seconds relative to the start of the cycle.

A snapshot is taken at one moment, and nothing the core does takes time as far as its rules are concerned.
So "now" is a constant, moments before the cycle are negative, and moments after it positive. Whoever
builds the snapshot subtracts the wall clock; whoever applies the decisions adds it again. How long the
search itself takes is a different clock, `Session.clock`.
"""

from __future__ import annotations

from typing import Final

#: The start of the cycle.
NOW: Final = 0.0


def elapsed_s(moment: float) -> float:
    """Return how many seconds ago a moment was; negative if it lies in the future."""
    return NOW - moment


def remaining_s(moment: float) -> float:
    """Return in how many seconds a moment comes; 0 or less if it has come."""
    return moment - NOW
