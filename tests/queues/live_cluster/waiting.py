"""Waiting for a cluster that works beside us."""

from __future__ import annotations

import time
from collections.abc import Callable


def eventually(condition: Callable[[], bool], what: str, timeout_s: float = 30.0) -> None:
    """Return when the condition holds; fail, saying what was waited for, when time is up."""
    end = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"not after {timeout_s:.0f} s: {what}")
        time.sleep(0.05)
