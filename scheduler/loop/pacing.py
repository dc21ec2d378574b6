"""When the searching actions may run, and when new work interrupts them.

Allocate costs milliseconds; consolidation, reclaim and preempt may search for seconds and find nothing,
cycle after cycle, while new pods wait that would fit at once. So a fruitless search is followed by a
rest in proportion to what it cost, and a change that matters interrupts a search under way: the cycle
ends early and the next one allocates. So that interruptions do not starve the search, one runs to
its end now and then, again in proportion to its cost.
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
#: A fruitless search takes at most a fifth of the time.
REST_FACTOR = 4.0
#: A search that nothing interrupts takes at most a fortieth of the time, unless it is cheap anyway.
FULL_RUN_FACTOR = 40.0
FIRST_FULL_RUN_COST_S = 0.5
#: Shorter searches are not worth interrupting, and need no rest.
LEAST_S = 0.1


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
    _last_full_at: float = field(init=False)
    _last_full_cost_s: float = FIRST_FULL_RUN_COST_S
    _searching_since: float | None = None
    _is_protected: bool = False
    _was_interrupted: bool = False

    def __post_init__(self) -> None:
        """Start as if a full run had just ended."""
        self._last_full_at = self.clock()

    def interrupt(self) -> None:
        """End the search under way soon, because something changed that a new cycle should see."""
        self._change_seen.set()

    def begin(self, actions: Iterable[ActionName]) -> tuple[ActionName, ...]:
        """Start a cycle; return the actions that may run in it."""
        self._change_seen.clear()
        self._searching_since, self._was_interrupted = None, False
        now = self.clock()
        overdue = now - self._last_full_at >= FULL_RUN_FACTOR * self._last_full_cost_s
        self._is_protected = overdue
        is_resting = now < self._rest_until and not overdue
        return tuple(name for name in actions if name not in SEARCHING or not is_resting)

    def may_start(self, action: ActionName) -> bool:
        """Return whether an action may start now; called before each one."""
        if action not in SEARCHING:
            return True
        if self._searching_since is None:
            self._searching_since = self.clock()
        return not self.should_stop()

    def should_stop(self) -> bool:
        """Return whether the search under way is to end; the core asks between trials.

        So each call is also a sign of life of the search.
        """
        track().touch()
        if self._was_interrupted:
            return True
        since = self._searching_since
        if since is None or self._is_protected or not self._change_seen.is_set():
            return False
        self._was_interrupted = self.clock() - since >= LEAST_S
        return self._was_interrupted

    def now(self) -> float:
        """Return the time for budgets and reports; each call is a sign of life of the cycle."""
        track().touch()
        return self.clock()

    def end(self, reports: Iterable[ActionReport]) -> None:
        """End a cycle; decide how long the searching actions rest."""
        searched = [report for report in reports if report.action in SEARCHING]
        if self._searching_since is None:
            return
        now = self.clock()
        spent = now - self._searching_since
        self._searching_since = None
        has_succeeded = any(report.succeeded for report in searched)
        needs_rest = not has_succeeded and spent >= LEAST_S
        self._rest_until = now + REST_FACTOR * spent if needs_rest else now
        if not self._was_interrupted:
            self._last_full_at, self._last_full_cost_s = now, spent


def note_delays(session: Session) -> None:
    """Record which waiting pod groups are within their preemption delay, as a search would have.

    Otherwise the reason shown for a pod group would change whenever the searching actions rest.
    """
    for view in pending_views(session):
        note_delay(session, view.pod_group)
