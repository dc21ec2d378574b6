"""Decide when the searching actions may run, and when new work interrupts them.

Allocate costs milliseconds; consolidation, reclaim and preempt may search for seconds and find nothing,
cycle after cycle, while new pods wait that would fit at once. So a fruitless search is followed by a
rest in proportion to its duration, and a change that matters interrupts a search under way: the cycle
ends early and the next one allocates. Interruptions must not starve the search, so a search that nothing
may interrupt (a full run) takes place now and then, again at intervals in proportion to its duration.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from kube.process.progress import track
from scheduler.core.actions.attempts import note_delay
from scheduler.core.actions.base import pending_views
from scheduler.core.decisions import ActionName, ActionReport
from scheduler.core.session.session import Session

SEARCHING = (ActionName.CONSOLIDATION, ActionName.RECLAIM, ActionName.PREEMPT)
#: Rest after a fruitless search, as a multiple of its duration: fruitless searches take at most a fifth of the time.
REST_FACTOR = 4.0
#: Least interval between full runs, as a multiple of the duration of the last one.
FULL_RUN_FACTOR = 40.0
#: The duration that is assumed of a full run before the first one.
ASSUMED_FULL_RUN_S = 0.5
#: Shorter searches are not worth interrupting, and need no rest.
MIN_SEARCH_S = 0.1


@dataclass(slots=True)
class Pacer:
    """Paces the searching actions of one shard.

    Parameters
    ----------
    clock : monotonic seconds
    """

    clock: Callable[[], float] = time.monotonic
    _change_seen: threading.Event = field(default_factory=threading.Event)
    _rest_until: float = 0.0
    _last_full_run_at: float = field(init=False)
    _last_full_run_s: float = ASSUMED_FULL_RUN_S
    _search_start: float | None = None
    _is_full_run: bool = False
    _was_interrupted: bool = False

    def __post_init__(self) -> None:
        """Start as if a full run had just ended."""
        self._last_full_run_at = self.clock()

    def interrupt(self) -> None:
        """End the search under way soon, because something changed that a new cycle should see."""
        self._change_seen.set()

    def begin(self, actions: Iterable[ActionName]) -> tuple[ActionName, ...]:
        """Start a cycle; return the actions that may run in it."""
        self._change_seen.clear()
        self._search_start, self._was_interrupted = None, False
        now = self.clock()
        is_full_run_due = now - self._last_full_run_at >= FULL_RUN_FACTOR * self._last_full_run_s
        self._is_full_run = is_full_run_due
        is_resting = now < self._rest_until and not is_full_run_due
        return tuple(name for name in actions if name not in SEARCHING or not is_resting)

    def may_start(self, action: ActionName) -> bool:
        """Return whether an action may start now; called before each one."""
        if action not in SEARCHING:
            return True
        if self._search_start is None:
            self._search_start = self.clock()
        return not self.should_stop()

    def should_stop(self) -> bool:
        """Return whether the search under way is to end.

        The core calls this between trials, so each call is also a sign of life of the search.
        """
        track().touch()
        if self._was_interrupted:
            return True
        search_start = self._search_start
        if search_start is None or self._is_full_run or not self._change_seen.is_set():
            return False
        self._was_interrupted = self.clock() - search_start >= MIN_SEARCH_S
        return self._was_interrupted

    def now(self) -> float:
        """Return the time for budgets and reports; each call is a sign of life of the cycle."""
        track().touch()
        return self.clock()

    def end(self, reports: Iterable[ActionReport]) -> None:
        """End a cycle; decide how long the searching actions rest."""
        search_reports = [report for report in reports if report.action in SEARCHING]
        if self._search_start is None:
            return
        now = self.clock()
        duration_s = now - self._search_start
        self._search_start = None
        has_succeeded = any(report.succeeded for report in search_reports)
        needs_rest = not has_succeeded and duration_s >= MIN_SEARCH_S
        self._rest_until = now + REST_FACTOR * duration_s if needs_rest else now
        if not self._was_interrupted:
            self._last_full_run_at, self._last_full_run_s = now, duration_s


def note_delays(session: Session) -> None:
    """Record which waiting pod groups are within their preemption delay, in a cycle without searching actions.

    A search records the same. Otherwise the reason shown for a pod group would change whenever the searching actions rest.
    """
    for view in pending_views(session):
        note_delay(session, view.pod_group)
