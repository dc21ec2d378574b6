"""Wait for a condition inside a request: not for long, and with few looks at it."""

from __future__ import annotations

import time
from collections.abc import Callable

FIRST_PAUSE_S = 0.02


def wait_until(
    is_fulfilled: Callable[[], bool],
    *,
    timeout_s: float,
    sleep: Callable[[float], None] = time.sleep,
) -> bool:
    """Return whether the condition was fulfilled within the time.

    The pauses double, so that 0.6 s cost six looks and a condition that is fulfilled after 0.1 s is seen
    0.06 s later at most.
    """
    waited_s, pause_s = 0.0, FIRST_PAUSE_S
    while not is_fulfilled():
        pause_s = min(pause_s, timeout_s - waited_s)
        if pause_s <= 0:
            return False
        sleep(pause_s)
        waited_s += pause_s
        pause_s *= 2
    return True
