"""The clock of the core: every moment is a number of seconds on the clock of the snapshot.

A snapshot is taken at one moment, `ClusterState.now`, and nothing the core does takes time as far as its rules are
concerned. Where the clock begins is up to whoever builds the snapshot: at the start of the cycle, so that now is 0
and the past is negative, or at a fixed moment, so that the times of what did not change stay the same numbers from
cycle to cycle. How long the search itself takes is a different clock, `Session.clock`.
"""

from __future__ import annotations


def elapsed_s(moment: float, now: float) -> float:
    """Return how many seconds ago a moment was; negative if it lies in the future."""
    return now - moment


def remaining_s(moment: float, now: float) -> float:
    """Return in how many seconds a moment comes; 0 or less if it has come."""
    return moment - now
