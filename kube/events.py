"""Events on objects, written beside the main path and kept few.

`Recorder.record` only puts an event on a bounded queue; threads write it. A repeated event raises the
`count` of the one already written, at growing intervals (5 s to 5 min), so a pod that stays pending for a
day costs some hundred writes instead of one per cycle. Writing is rate-limited, because a burst of
thousands of binds must not wait for its events. When the queue is full, events are dropped and counted:
no component reads its state from events.
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
from kube.process.backoff import doubled_s
from kube.resources import EVENTS, Resource
from kube.values.times import format_time

log = logging.getLogger(__name__)

NORMAL, WARNING = "Normal", "Warning"
FIRST_INTERVAL_S = 5.0
MAX_INTERVAL_S = 300.0
MAX_REMEMBERED = 20_000
PER_SECOND = 100.0
AT_ONCE = 200.0
GIVE_WAY_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectEvent:
    """What happened to one object; written to the cluster as an Event."""

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
        """Return what two events share when one repeats the other."""
        return (self.resource.kind, self.uid, self.type, self.reason, self.message)


def event_about(
    resource: Resource,
    target: KubeObject,
    event_type: str,
    reason: str,
    message: str,
    annotations: Mapping[str, str] | None = None,
) -> ObjectEvent:
    """Build an event about an object.

    Parameters
    ----------
    event_type : NORMAL or WARNING
    reason : a short CamelCase word, as `kubectl get events` shows it
    """
    meta = target.metadata
    return ObjectEvent(
        resource=resource,
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        type=event_type,
        reason=reason,
        message=message,
        annotations=annotations or {},
    )


@dataclass(slots=True)
class _Written:
    """An event in the cluster and what has happened since it was last written."""

    name: str = ""
    count: int = 0
    first_written: str = ""
    next_at: float = 0.0
    writes: int = 0


@dataclass(slots=True)
class Pace:
    """A token bucket: `at_once` events immediately, then `per_s` per second."""

    per_s: float = PER_SECOND
    at_once: float = AT_ONCE
    _tokens: float = AT_ONCE
    _last: float = 0.0

    def wait_s(self, now: float) -> float:
        """Take one token; return how long to wait before using it."""
        self._tokens = min(self.at_once, self._tokens + (now - self._last) * self.per_s)
        self._last = now
        self._tokens -= 1.0
        return max(0.0, -self._tokens / self.per_s)


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
    #: How many threads write; all but one give way while `is_busy`, unless the queue fills up.
    writers: int = 2
    is_busy: Callable[[], bool] = lambda: False
    pace: Pace = field(default_factory=Pace)
    dropped: int = 0
    #: An event with what was written of it before; None ends a thread.
    _queue: queue.Queue[tuple[ObjectEvent, _Written] | None] = field(init=False)
    _written: OrderedDict[tuple[str, ...], _Written] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _threads: list[threading.Thread] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        """Create the bounded queue."""
        self._queue = queue.Queue(self.capacity)

    def start(self) -> None:
        """Start the writing threads."""
        for number in range(self.writers):
            name = f"events-{self.component}-{number}"
            thread = threading.Thread(target=self._work, args=(number > 0,), name=name, daemon=True)
            thread.start()
            self._threads.append(thread)

    def stop(self, timeout_s: float = 2.0) -> None:
        """Write the queued events without pacing, for at most `timeout_s`, and end the threads."""
        self._stop.set()
        for _ in self._threads:
            try:
                self._queue.put(None, timeout=timeout_s)
            except queue.Full:
                break
        for thread in self._threads:
            thread.join(timeout=timeout_s)
        self._threads.clear()

    def record(self, event: ObjectEvent) -> None:
        """Queue an event unless it repeats one written a moment ago; never waits."""
        written = self._due(event)
        if written is None:
            return
        try:
            self._queue.put_nowait((event, written))
        except queue.Full:
            self.dropped += 1

    def flush(self) -> None:
        """Write every queued event in the calling thread, for tests and one-shot commands."""
        while True:
            try:
                queued = self._queue.get_nowait()
            except queue.Empty:
                return
            if queued is not None:
                self._write(*queued)

    def _due(self, event: ObjectEvent) -> _Written | None:
        """Count the event; return its record when it is time to write it."""
        now = self.clock()
        with self._lock:
            written = self._written.get(event.identity)
            if written is None:
                written = self._written[event.identity] = _Written()
                if len(self._written) > MAX_REMEMBERED:
                    self._written.popitem(last=False)
            self._written.move_to_end(event.identity)
            written.count += 1
            if now < written.next_at:
                return None
            written.next_at = now + doubled_s(
                written.writes, first_s=FIRST_INTERVAL_S, max_s=MAX_INTERVAL_S
            )
            written.writes += 1
            return written

    def _work(self, gives_way: bool) -> None:
        while True:
            while gives_way and self._should_give_way():
                self._stop.wait(GIVE_WAY_S)
            queued = self._queue.get()
            if queued is None:
                return
            with self._lock:
                wait_s = self.pace.wait_s(self.clock())
            if wait_s:
                self._stop.wait(wait_s)
            self._write(*queued)

    def _should_give_way(self) -> bool:
        is_filling_up = self._queue.qsize() > self.capacity // 2
        return not self._stop.is_set() and not is_filling_up and self.is_busy()

    def _write(self, event: ObjectEvent, written: _Written) -> None:
        try:
            if written.name and self._update(event, written):
                return
            self._create(event, written)
        except KubeError as error:
            log.debug("event %s on %s %s: %s", event.reason, event.resource.kind, event.name, error)

    def _update(self, event: ObjectEvent, written: _Written) -> bool:
        body: dict[str, Any] = {"count": written.count, "lastTimestamp": format_time(self.wall())}
        if event.annotations:
            body["metadata"] = {"annotations": dict(event.annotations)}
        try:
            self.gateway.patch(EVENTS, written.name, body, namespace=_namespace(event))
        except NotFoundError:  # events expire after an hour
            written.name, written.count = "", 1
            return False
        return True

    def _create(self, event: ObjectEvent, written: _Written) -> None:
        moment = self.wall()
        written.first_written = written.first_written or format_time(moment)
        name = f"{event.name[:200]}.{int(moment.timestamp() * 1e6):x}{abs(hash(event.identity)):x}"[
            :250
        ]
        body: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": name,
                "namespace": _namespace(event),
                "annotations": dict(event.annotations),
            },
            "involvedObject": {
                "apiVersion": event.resource.api_version,
                "kind": event.resource.kind,
                "namespace": event.namespace,
                "name": event.name,
                "uid": event.uid,
            },
            "type": event.type,
            "reason": event.reason,
            "message": event.message,
            "source": {"component": self.component},
            "reportingComponent": self.component,
            "reportingInstance": "",
            "firstTimestamp": written.first_written,
            "lastTimestamp": format_time(moment),
            "count": written.count,
        }
        self.gateway.create(EVENTS, body, namespace=_namespace(event))
        written.name = name


def _namespace(event: ObjectEvent) -> str:
    """Return the event's namespace; events about cluster-scoped objects belong in `default`."""
    return event.namespace or "default"
