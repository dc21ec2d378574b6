"""Wait for a condition inside a request: not for long, and with few looks at it."""

from __future__ import annotations

import time
from collections.abc import Callable

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.02, 0.1


def wait_until(
    is_fulfilled: Callable[[], bool],
    *,
    timeout_s: float,
    sleep: Callable[[float], None] = time.sleep,
) -> bool:
    """Return whether the condition was fulfilled within the time.

    The pauses grow to a tenth of a second: a simulation of a second should not be seen half a second late.
    """
    waited_s, pause_s = 0.0, FIRST_PAUSE_S
    while not is_fulfilled():
        pause_s = min(pause_s, timeout_s - waited_s)
        if pause_s <= 0:
            return False
        sleep(pause_s)
        waited_s += pause_s
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
    return True
