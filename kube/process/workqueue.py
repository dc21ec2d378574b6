"""A queue of keys for controllers: one worker at a time processes a key, and failures are retried later.

A key added while it is being processed is queued again afterwards, so no change is missed and a burst of
changes to one object costs one pass. Tests replace the clock.
"""

from __future__ import annotations

import heapq
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from kube.process.backoff import doubled_s
from kube.process.progress import track

log = logging.getLogger(__name__)
Clock = Callable[[], float]


@dataclass(slots=True)
class WorkQueue:
    """Keys waiting for work; a failing key is retried after `first_s`, doubled up to `max_s`."""

    first_s: float = 1.0
    max_s: float = 60.0
    clock: Clock = time.monotonic
    #: The keys to give out, in order, and the same keys as a set.
    _ready: deque[str] = field(default_factory=deque)
    _ready_keys: set[str] = field(default_factory=set)
    #: The keys that a worker has, and those of them that were added again meanwhile.
    _working: set[str] = field(default_factory=set)
    _again: set[str] = field(default_factory=set)
    #: A heap of (time by `clock`, key), and the time that counts for each key; the heap may hold outdated ones too.
    _later: list[tuple[float, str]] = field(default_factory=list)
    _due_at: dict[str, float] = field(default_factory=dict)
    #: Failures in a row by key.
    _failures: dict[str, int] = field(default_factory=dict)
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _is_closed: bool = False

    def __len__(self) -> int:
        with self._changed:
            return len(self._ready) + len(self._working) + len(self._due_at)

    def add(self, key: str) -> None:
        """Queue a key now."""
        with self._changed:
            self._add(key)

    def add_after(self, key: str, delay_s: float) -> None:
        """Queue a key later; an earlier time that is already set stays."""
        with self._changed:
            due_at = self.clock() + delay_s
            if due_at < self._due_at.get(key, float("inf")):
                self._due_at[key] = due_at
                heapq.heappush(self._later, (due_at, key))
                self._changed.notify()

    def retry(self, key: str) -> float:
        """Queue a key again after a pause that doubles with each failure in a row; return the pause."""
        with self._changed:
            failures = self._failures.get(key, 0)
            self._failures[key] = failures + 1
        delay_s = doubled_s(failures, first_s=self.first_s, max_s=self.max_s)
        self.add_after(key, delay_s)
        return delay_s

    def forget(self, key: str) -> None:
        """Reset the count of failures, after a success or when the object is gone."""
        with self._changed:
            self._failures.pop(key, None)

    def get(self, timeout_s: float | None = None) -> str | None:
        """Return the next key; no other caller gets it until `done`. None on timeout or when closed."""
        with self._changed:
            deadline = None if timeout_s is None else self.clock() + timeout_s
            while True:
                self._move_due()
                if self._ready and not self._is_closed:
                    key = self._ready.popleft()
                    self._ready_keys.discard(key)
                    self._working.add(key)
                    return key
                if self._is_closed or (deadline is not None and self.clock() >= deadline):
                    return None
                self._changed.wait(self._pause(deadline))

    def done(self, key: str) -> None:
        """Finish a key; it is queued again at once if it was added meanwhile."""
        with self._changed:
            self._working.discard(key)
            if key in self._again:
                self._again.discard(key)
                self._add(key)

    def close(self) -> None:
        """Wake all workers and give out no more keys."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def _add(self, key: str) -> None:
        if key in self._working:
            self._again.add(key)
        elif key not in self._ready_keys:
            self._ready_keys.add(key)
            self._ready.append(key)
            self._changed.notify()

    def _move_due(self) -> None:
        """Make the keys ready whose time has come."""
        now = self.clock()
        while self._later and self._later[0][0] <= now:
            due_at, key = heapq.heappop(self._later)
            if self._due_at.get(key) == due_at:
                del self._due_at[key]
                self._add(key)

    def _pause(self, deadline: float | None) -> float | None:
        """Return how long to wait for a change: until the next key is due, at most until the deadline."""
        next_due = self._later[0][0] if self._later else None
        moments = [moment for moment in (next_due, deadline) if moment is not None]
        return max(0.001, min(moments) - self.clock()) if moments else None


def start_workers(
    queue: WorkQueue, work: Callable[[str], None], count: int, name: str
) -> list[threading.Thread]:
    """Start `count` threads that work on keys until the queue is closed.

    `work` handles its own expected errors; an unexpected one is logged and the key tried again later.
    """

    def loop() -> None:
        while (key := queue.get()) is not None:
            try:
                work(key)
            except Exception:
                log.exception("%s: %s failed unexpectedly", name, key)
                queue.retry(key)
            finally:
                track().rest()
                queue.done(key)

    threads = [
        threading.Thread(target=loop, name=f"{name}-{index}", daemon=True) for index in range(count)
    ]
    for thread in threads:
        thread.start()
    return threads
