"""Announce that an installation is up when it is ready, and until then what it waits for."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

LOOK_S = 0.5
START_TIMEOUT_S = 60.0
REMINDER_S = 30.0


@dataclass(slots=True)
class Announcement:
    """Checks readiness until it is reached; nothing is stopped if it is not.

    Parameters
    ----------
    unready : returns the faults that readiness reports, by check
    welcome : called once, when there is no fault
    """

    unready: Callable[[], Mapping[str, str]]
    welcome: Callable[[], None]
    say: Callable[[str], None]
    clock: Callable[[], float] = time.monotonic
    is_made: bool = False
    _began_at: float = field(init=False)
    _look_at: float = field(init=False)
    _remind_at: float = field(init=False)

    def __post_init__(self) -> None:
        self._began_at = self._look_at = self.clock()
        self._remind_at = self._began_at + START_TIMEOUT_S

    def look(self) -> None:
        """Check at most twice a second, however often this is called."""
        if self.is_made or self.clock() < self._look_at:
            return
        faults = self.unready()
        now = self.clock()
        self._look_at = now + LOOK_S
        if not faults:
            self.is_made = True
            self.welcome()
        elif now >= self._remind_at:
            self._remind_at = now + REMINDER_S
            self.say(
                f"not ready after {now - self._began_at:.0f} s, still trying (Ctrl-C ends it):"
            )
            for check, fault in faults.items():
                self.say(f"  {check}: {fault}")
