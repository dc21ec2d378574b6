"""From many watches to one writer: watch threads put messages in a line, the writer takes them out.

The line keeps the order of each kind; between kinds there is none, since each has a watch of its own. The
writer takes all that waits, sorts it by kind and joins the events of a kind into one batch, so a burst of a
thousand pods becomes ten chunks, not a thousand transactions. When much comes it waits a little longer: more
is taken at once, and of several events of one object only the newest is written.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from typing import Any

from django.utils import timezone

from kube.gateway import EventType, Listing, WatchEvent
from kube.resources import Resource
from kube.store import version_number
from queues.mirror.rows import version_of
from queues.mirror.writer import Deletion, MirroredKind, Writer
from queues.models import MirrorState

LINE_LENGTH = 20_000
GATHER_S, GATHER_BUSY_S = 0.02, 0.15
BUSY = 20
STATE_EVERY_S = 1.0


@dataclass(frozen=True, slots=True)
class Listed:
    """A full list of one kind."""

    resource: Resource
    listing: Listing[Any]


@dataclass(frozen=True, slots=True)
class Changed:
    """One event of one kind."""

    resource: Resource
    event: WatchEvent[Any]


Message = Listed | Changed


@dataclass(slots=True)
class Line:
    """The sink of all watches; a full line makes them wait, which the API server bears."""

    _queue: queue.Queue[Message] = field(default_factory=lambda: queue.Queue(LINE_LENGTH))

    def replace(self, resource: Resource, listing: Listing[Any]) -> None:
        self._queue.put(Listed(resource, listing))

    def apply(self, resource: Resource, event: WatchEvent[Any]) -> None:
        self._queue.put(Changed(resource, event))

    def take(self, *, timeout_s: float, most: int = 5_000) -> list[Message]:
        """Wait for a message, gather for a moment what follows, and return it all in order."""
        try:
            taken = [self._queue.get(timeout=timeout_s)]
        except queue.Empty:
            return []
        started = time.monotonic()
        while len(taken) < most:
            gather_s = GATHER_S if len(taken) < BUSY else GATHER_BUSY_S
            left_s = max(0.0, started + gather_s - time.monotonic())
            try:
                taken.append(self._queue.get(timeout=left_s))
            except queue.Empty:
                break
        return taken


@dataclass(slots=True)
class Mirror:
    """Applies messages in their order."""

    kinds: Sequence[MirroredKind]
    writer: Writer = field(default_factory=Writer)
    now: Callable[[], datetime] = timezone.now
    _by_resource: Mapping[Resource, tuple[int, MirroredKind]] = field(init=False)
    _seen: dict[str, tuple[int, datetime]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._by_resource = {kind.resource: (n, kind) for n, kind in enumerate(self.kinds)}

    def consume(self, messages: Iterable[Message]) -> None:
        """Write everything, kind by kind; neighbouring events of one kind become one batch."""
        by_kind = sorted(messages, key=lambda message: self._by_resource[message.resource][0])
        for (resource, is_list), group in groupby(
            by_kind, key=lambda message: (message.resource, isinstance(message, Listed))
        ):
            kind = self._by_resource[resource][1]
            if is_list:
                for message in group:
                    assert isinstance(message, Listed)
                    self._list(kind, message.listing)
            else:
                self._change(kind, [m.event for m in group if isinstance(m, Changed)])

    def _list(self, kind: MirroredKind, listing: Listing[Any]) -> None:
        text = listing.resource_version
        # A kind that is not served lists as empty without a version: everything of it is gone.
        version = version_number(text) if text else 2**62
        self.writer.reconcile(kind, listing.items, version)
        self._note(kind, version if text else 0, is_list=True)

    def _change(self, kind: MirroredKind, events: list[WatchEvent[Any]]) -> None:
        dead = [
            Deletion(e.object.key, e.object.metadata.uid, version_of(e.object))
            for e in events
            if e.type == EventType.DELETED
        ]
        # Deaths first, all of them: a newer namesake in this batch must hide none.
        self.writer.delete(kind, dead)
        alive = (EventType.ADDED, EventType.MODIFIED)
        self.writer.upsert(kind, [event.object for event in events if event.type in alive])
        newest = max((version_number(event.resource_version) for event in events), default=0)
        self._note(kind, newest, is_list=False)

    def _note(self, kind: MirroredKind, version: int, *, is_list: bool) -> None:
        """Keep how far the kind was read, at most once a second."""
        now = self.now()
        known_version, noted_at = self._seen.get(kind.resource.kind, (0, None))
        version = max(version, known_version)
        is_due = noted_at is None or (now - noted_at).total_seconds() >= STATE_EVERY_S
        if not (is_list or is_due):
            self._seen[kind.resource.kind] = (version, noted_at or now)
            return
        self._seen[kind.resource.kind] = (version, now)
        values: dict[str, Any] = {"version": version, "seen_at": now}
        if is_list:
            values["listed_at"] = now
        MirrorState.objects.update_or_create(kind=kind.resource.kind, defaults=values)


def beat(now: datetime) -> None:
    """Note that the mirror is alive: the dashboard shows data as delayed when this grows old."""
    MirrorState.objects.update_or_create(kind=HEARTBEAT, defaults={"seen_at": now})


HEARTBEAT = "mirror"
