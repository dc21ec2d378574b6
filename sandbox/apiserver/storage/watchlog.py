"""The recent history of one collection, and the watchers that follow it.

History is bounded in number and age, as etcd's is by compaction: a watch that starts before the oldest
change in it gets 410 and must list again. The bytes of an event are rendered once and shared by all
watchers. A watcher collects references to them and wakes at most once per flush interval, which is longer in a
burst: each send costs the server and the client more than the event in it.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable

from sandbox.apiserver.model.entry import Entry
from sandbox.apiserver.model.selectors import Predicate

HISTORY_EVENTS = 4_000
HISTORY_AGE_S = 300.0
FLUSH_INTERVAL_S = 0.002
#: The interval in a burst: once a watcher has used up its short intervals, which are refilled at a rate.
BURST_INTERVAL_S = 0.025
SHORT_INTERVALS, SHORT_INTERVALS_PER_S = 20.0, 40.0
BACKLOG_LIMIT = 50_000

Render = Callable[[str, Entry], bytes]


class Change:
    """One event of the log: the states after and before it, and its rendered lines."""

    __slots__ = ("_lines", "at", "before", "deleted", "entry", "version")

    def __init__(self, entry: Entry, before: Entry | None, deleted: bool) -> None:
        self.entry = entry
        self.before = before
        self.deleted = deleted
        self.version = entry.version
        self.at = time.monotonic()
        self._lines: dict[str, bytes] = {}

    def line(self, kind: str) -> bytes:
        line = self._lines.get(kind)
        if line is None:
            line = self._lines[kind] = event_line(kind, self.entry.raw)
        return line


class WatchLog:
    """Changes in order; `dropped` is the version of the newest change that was forgotten."""

    def __init__(self, dropped: int) -> None:
        self.dropped = dropped
        self.changes: deque[Change] = deque()
        self.watchers: set[Watcher] = set()

    def append(self, entry: Entry, before: Entry | None, *, deleted: bool) -> None:
        change = Change(entry, before, deleted)
        self.changes.append(change)
        if len(self.changes) > HISTORY_EVENTS:
            self._drop_oldest()
        for watcher in self.watchers:
            watcher.offer(change)

    def compact(self, now: float) -> None:
        """Forget changes older than the history age."""
        while self.changes and now - self.changes[0].at > HISTORY_AGE_S:
            self._drop_oldest()

    def since(self, version: int) -> list[Change]:
        """Return the changes after `version`, oldest first; the caller checks `dropped`."""
        newer: list[Change] = []
        for change in reversed(self.changes):
            if change.version <= version:
                break
            newer.append(change)
        newer.reverse()
        return newer

    def _drop_oldest(self) -> None:
        self.dropped = self.changes.popleft().version


class Watcher:
    """One client of a log: its filters, and the lines to be sent."""

    def __init__(
        self,
        *,
        namespace: str = "",
        labels: Predicate | None = None,
        fields: Predicate | None = None,
        render: Render | None = None,
    ) -> None:
        self.namespace = namespace
        self._labels = labels
        self._fields = fields
        self._render = render
        self._lines: list[bytes] = []
        self._wake = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._short_intervals = SHORT_INTERVALS
        self._counted_at = self._loop.time()
        self.is_finished = False

    def selects(self, entry: Entry) -> bool:
        if self.namespace and entry.namespace != self.namespace:
            return False
        if self._labels is not None and not self._labels(entry.labels):
            return False
        return self._fields is None or self._fields(entry.fields)

    def offer(self, change: Change) -> None:
        """Queue a change; an object that enters or leaves the selection is added or deleted for it."""
        after = not change.deleted and self.selects(change.entry)
        before = change.before is not None and self.selects(change.before)
        if after:
            kind = "MODIFIED" if before else "ADDED"
        elif before:
            kind = "DELETED"
        else:
            return
        self.push(self._render(kind, change.entry) if self._render else change.line(kind))

    def initial(self, entry: Entry) -> None:
        self.push(self._render("ADDED", entry) if self._render else event_line("ADDED", entry.raw))

    def push(self, line: bytes) -> None:
        self._lines.append(line)
        if len(self._lines) > BACKLOG_LIMIT:
            # The client is too slow; it can watch again from the last version that it has read.
            self.is_finished = True
        if self._timer is None:
            self._timer = self._loop.call_later(self._interval_s(), self._flush)

    def stop(self) -> None:
        """End the stream after the lines that are queued."""
        self.is_finished = True
        if self._timer is not None:
            self._timer.cancel()
        self._wake.set()

    async def take(self, timeout_s: float) -> bytes:
        """Wait for lines and return them; return no bytes after the timeout."""
        if not self._lines:
            try:
                await asyncio.wait_for(self._wake.wait(), timeout_s)
            except TimeoutError:
                return b""
        self._wake.clear()
        return self.drain()

    def drain(self) -> bytes:
        """Return the queued lines without waiting."""
        lines, self._lines = self._lines, []
        return b"".join(lines)

    def _interval_s(self) -> float:
        """Return how long to collect lines before they are sent."""
        now = self._loop.time()
        gained = (now - self._counted_at) * SHORT_INTERVALS_PER_S
        self._short_intervals = min(SHORT_INTERVALS, self._short_intervals + gained)
        self._counted_at = now
        if self._short_intervals < 1.0:
            return BURST_INTERVAL_S
        self._short_intervals -= 1.0
        return FLUSH_INTERVAL_S

    def _flush(self) -> None:
        self._timer = None
        self._wake.set()


def event_line(kind: str, raw: bytes) -> bytes:
    return b'{"type":"%s","object":%s}\n' % (kind.encode(), raw)
