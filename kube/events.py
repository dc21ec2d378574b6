"""Events on objects, written beside the main path and kept few.

`Recorder.record` only puts a note on a bounded queue; threads write them. An event repeated word for
word becomes a higher `count` on the one already written, at growing intervals (5 s to 5 min), so a pod
that stays pending for a day costs some hundred writes and not one per cycle. Writing is paced, so that a
burst of thousands of binds is not held up by the stories about them. When the queue is full events are
dropped and counted: they are news, not state.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from kube.errors import KubeError, NotFoundError
from kube.gateway import Gateway
from kube.objects.meta import KubeObject
from kube.resources import EVENTS, Resource
from kube.times import format_time

log = logging.getLogger(__name__)

NORMAL, WARNING = "Normal", "Warning"
FIRST_INTERVAL_S = 5.0
LONGEST_INTERVAL_S = 300.0
REMEMBERED = 20_000
PER_SECOND = 100.0
AT_ONCE = 200.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """One thing that happened to one object."""

    resource: Resource
    namespace: str
    name: str
    uid: str
    type: str
    reason: str
    message: str
    annotations: Mapping[str, str] = field(default_factory=dict)

    @property
    def identity(self) -> tuple[str, ...]:
        """Notes of one identity are repetitions of each other."""
        return (self.resource.kind, self.uid, self.type, self.reason, self.message)


def note(
    resource: Resource,
    target: KubeObject,
    kind: str,
    reason: str,
    message: str,
    annotations: Mapping[str, str] | None = None,
) -> Note:
    """Return a note about an object we hold."""
    meta = target.metadata
    return Note(
        resource=resource,
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        type=kind,
        reason=reason,
        message=message,
        annotations=annotations or {},
    )


@dataclass(slots=True)
class _Written:
    """An event in the cluster and what has happened since it was last written."""

    name: str = ""
    count: int = 0
    first: str = ""
    next_at: float = 0.0
    interval_s: float = FIRST_INTERVAL_S


@dataclass(slots=True)
class Pace:
    """A token bucket: so many at once, so many per second after."""

    per_s: float = PER_SECOND
    at_once: float = AT_ONCE
    _left: float = AT_ONCE
    _last: float = 0.0

    def wait_s(self, now: float) -> float:
        """Take one; return how long to wait before using it."""
        self._left = min(self.at_once, self._left + (now - self._last) * self.per_s)
        self._last = now
        self._left -= 1.0
        return max(0.0, -self._left / self.per_s)


@dataclass(slots=True)
class Recorder:
    """Writes events for one component.

    Parameters
    ----------
    component : the source shown by `kubectl describe`
    clock, wall : a monotonic clock in seconds, and the time written into events
    """

    gateway: Gateway
    component: str
    clock: Callable[[], float] = time.monotonic
    wall: Callable[[], datetime] = lambda: datetime.now(UTC)
    capacity: int = 20_000
    pace: Pace = field(default_factory=Pace)
    dropped: int = 0
    _queue: queue.Queue[tuple[Note, _Written] | None] = field(init=False)
    _written: OrderedDict[tuple[str, ...], _Written] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _threads: list[threading.Thread] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        """Make the bounded queue."""
        self._queue = queue.Queue(self.capacity)

    def start(self, workers: int = 2) -> None:
        """Start the writing threads."""
        for number in range(workers):
            name = f"events-{self.component}-{number}"
            thread = threading.Thread(target=self._work, name=name, daemon=True)
            thread.start()
            self._threads.append(thread)

    def stop(self, timeout_s: float = 2.0) -> None:
        """Write what is queued without pacing, within the time, and end the threads."""
        self._stop.set()
        for _ in self._threads:
            try:
                self._queue.put(None, timeout=timeout_s)
            except queue.Full:
                break
        for thread in self._threads:
            thread.join(timeout=timeout_s)
        self._threads.clear()

    def record(self, item: Note) -> None:
        """Queue a note unless it repeats one written a moment ago; never waits."""
        written = self._due(item)
        if written is None:
            return
        try:
            self._queue.put_nowait((item, written))
        except queue.Full:
            self.dropped += 1

    def flush(self) -> None:
        """Write all that is queued, in the calling thread (tests, one-shot commands)."""
        while True:
            try:
                queued = self._queue.get_nowait()
            except queue.Empty:
                return
            if queued is not None:
                self._write(*queued)

    def _due(self, item: Note) -> _Written | None:
        """Count the note; return its record when it is time to write."""
        now = self.clock()
        with self._lock:
            written = self._written.get(item.identity)
            if written is None:
                written = self._written[item.identity] = _Written()
                if len(self._written) > REMEMBERED:
                    self._written.popitem(last=False)
            self._written.move_to_end(item.identity)
            written.count += 1
            if now < written.next_at:
                return None
            written.next_at = now + written.interval_s
            written.interval_s = min(LONGEST_INTERVAL_S, written.interval_s * 2)
            return written

    def _work(self) -> None:
        while True:
            queued = self._queue.get()
            if queued is None:
                return
            with self._lock:
                wait_s = self.pace.wait_s(self.clock())
            if wait_s:
                self._stop.wait(wait_s)
            self._write(*queued)

    def _write(self, item: Note, written: _Written) -> None:
        try:
            if written.name and self._update(item, written):
                return
            self._create(item, written)
        except KubeError as error:
            log.debug("event %s on %s %s: %s", item.reason, item.resource.kind, item.name, error)

    def _update(self, item: Note, written: _Written) -> bool:
        body: dict[str, Any] = {"count": written.count, "lastTimestamp": format_time(self.wall())}
        if item.annotations:
            body["metadata"] = {"annotations": dict(item.annotations)}
        try:
            self.gateway.patch(EVENTS, written.name, body, namespace=_home(item))
        except NotFoundError:  # events expire after an hour
            written.name, written.count = "", 1
            return False
        return True

    def _create(self, item: Note, written: _Written) -> None:
        moment = self.wall()
        written.first = written.first or format_time(moment)
        name = f"{item.name[:200]}.{int(moment.timestamp() * 1e6):x}{abs(hash(item.identity)):x}"[
            :250
        ]
        body: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": name,
                "namespace": _home(item),
                "annotations": dict(item.annotations),
            },
            "involvedObject": {
                "apiVersion": item.resource.api_version,
                "kind": item.resource.kind,
                "namespace": item.namespace,
                "name": item.name,
                "uid": item.uid,
            },
            "type": item.type,
            "reason": item.reason,
            "message": item.message,
            "source": {"component": self.component},
            "reportingComponent": self.component,
            "reportingInstance": "",
            "firstTimestamp": written.first,
            "lastTimestamp": format_time(moment),
            "count": written.count,
        }
        self.gateway.create(EVENTS, body, namespace=_home(item))
        written.name = name


def _home(item: Note) -> str:
    """Events about cluster-scoped objects live in `default`."""
    return item.namespace or "default"
