"""Pass events of many watches to one writer: watch threads fill a queue, the writer empties it.

The queue keeps the order within a kind; kinds have separate watches, so there is no order between them. The
writer takes all waiting messages, sorts them by kind and joins the events of a kind into one batch, so that a
burst of a thousand pods becomes ten chunks instead of a thousand transactions. In a burst it waits a little
longer, because of several events of one object only the newest is written. A burst may also come as a stream: a
client that creates thousands of objects one after the other.
"""

from __future__ import annotations

import math
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
from kube.store import version_number, version_of
from queues.mirror.part import Part
from queues.mirror.turns import RECORD, turn, workers_of
from queues.mirror.writer import Deletion, MirroredKind, Writer
from queues.models import MirrorState

#: Messages that may wait before the watches are blocked.
QUEUE_LENGTH = 20_000
#: How long further messages are collected after the first one; in a burst the second figure.
GATHER_S, GATHER_IN_BURST_S = 0.02, 0.15
#: How many messages of about the last `RECENT_S` seconds count as a burst.
BURST_MESSAGES, RECENT_S = 20, 0.5
STATE_EVERY_S = 1.0
#: The row of `MirrorState` whose time is that of the last contact, beside one row for each kind. Further workers
#: have rows of their own (`Part.named`); the name is also that of the process.
HEARTBEAT = "mirror"


@dataclass(frozen=True, slots=True)
class ListMessage:
    """A full list of one kind."""

    resource: Resource
    listing: Listing[Any]


@dataclass(frozen=True, slots=True)
class EventMessage:
    """One event of one kind."""

    resource: Resource
    event: WatchEvent[Any]


Message = ListMessage | EventMessage


@dataclass(slots=True)
class MessageQueue:
    """The sink of all watches; a full queue blocks them, which the API server tolerates."""

    clock: Callable[[], float] = time.monotonic
    _queue: queue.Queue[Message] = field(default_factory=lambda: queue.Queue(QUEUE_LENGTH))
    #: How many messages were taken lately, those of `RECENT_S` ago counted by half, and when that was.
    _recent: tuple[float, float] = (0.0, 0.0)

    def replace(self, resource: Resource, listing: Listing[Any]) -> None:
        self._queue.put(ListMessage(resource, listing))

    def apply(self, resource: Resource, event: WatchEvent[Any]) -> None:
        self._queue.put(EventMessage(resource, event))

    def take(self, *, timeout_s: float, max_messages: int = 5_000) -> list[Message]:
        """Wait for a message, collect further ones for a moment, and return all in order."""
        try:
            messages = [self._queue.get(timeout=timeout_s)]
        except queue.Empty:
            return []
        started = self.clock()
        recent = self._recent_at(started)
        while len(messages) < max_messages:
            is_burst = recent + len(messages) >= BURST_MESSAGES
            gather_s = GATHER_IN_BURST_S if is_burst else GATHER_S
            remaining_s = max(0.0, started + gather_s - self.clock())
            try:
                messages.append(self._queue.get(timeout=remaining_s))
            except queue.Empty:
                break
        self._recent = (recent + len(messages), started)
        return messages

    def _recent_at(self, now: float) -> float:
        count, counted_at = self._recent
        return count * math.exp2((counted_at - now) / RECENT_S)


@dataclass(slots=True)
class Mirror:
    """Writes messages to the database."""

    kinds: Sequence[MirroredKind]
    writer: Writer = field(default_factory=Writer)
    now: Callable[[], datetime] = timezone.now
    #: Resource -> (position among `kinds`, kind).
    _by_resource: Mapping[Resource, tuple[int, MirroredKind]] = field(init=False)
    #: Name of a kind -> (newest version read, when that was last stored).
    _seen: dict[str, tuple[int, datetime]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._by_resource = {
            kind.resource: (position, kind) for position, kind in enumerate(self.kinds)
        }

    def consume(self, messages: Iterable[Message]) -> None:
        """Write all messages, kind by kind; consecutive events of a kind become one batch."""
        by_kind = sorted(messages, key=lambda message: self._by_resource[message.resource][0])
        for (resource, is_list), group in groupby(
            by_kind, key=lambda message: (message.resource, isinstance(message, ListMessage))
        ):
            kind = self._by_resource[resource][1]
            if is_list:
                for message in group:
                    assert isinstance(message, ListMessage)
                    self._list(kind, message.listing)
            else:
                self._change(kind, [m.event for m in group if isinstance(m, EventMessage)])

    def _list(self, kind: MirroredKind, listing: Listing[Any]) -> None:
        listed_version = listing.resource_version
        # The list of a kind that is not served is empty and has no version. One above all versions
        # makes the writer delete all rows of the kind.
        version = version_number(listed_version) if listed_version else 2**62
        self.writer.reconcile(kind, listing.items, version)
        self._note(kind, version if listed_version else 0, is_list=True)

    def _change(self, kind: MirroredKind, events: list[WatchEvent[Any]]) -> None:
        deletions = [
            Deletion(e.object.key, e.object.metadata.uid, version_of(e.object))
            for e in events
            if e.type == EventType.DELETED
        ]
        # Deletions first, because a newer object of the same name in this batch must not hide one.
        self.writer.delete(kind, deletions)
        written_types = (EventType.ADDED, EventType.MODIFIED)
        self.writer.upsert(kind, [event.object for event in events if event.type in written_types])
        newest = max((version_number(event.resource_version) for event in events), default=0)
        self._note(kind, newest, is_list=False)

    def _note(self, kind: MirroredKind, version: int, *, is_list: bool) -> None:
        """Store how far the kind was read, at most once a second."""
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
        part = self.writer.part
        with turn(part):
            name = part.named(kind.resource.kind)
            MirrorState.objects.update_or_create(kind=name, defaults=values)


def write_heartbeat(now: datetime, part: Part | None = None, position: int = 0) -> None:
    """Store the time of the last contact with the cluster, by which the dashboard reports data as old.

    position : up to where in the live log the worker has read what others touched
    """
    name = (part or Part()).named(HEARTBEAT)
    MirrorState.objects.update_or_create(kind=name, defaults={"seen_at": now, "version": position})


def heartbeat_of(part: Part) -> MirrorState | None:
    """Return what a worker stored last; None if it has not since the mirror was divided so."""
    return MirrorState.objects.filter(kind=part.named(HEARTBEAT)).first()


def last_contacts() -> dict[str, datetime | None]:
    """Return when each worker of the mirror last had an answer from the cluster, by its name; None: never yet."""
    states = {state.kind: state for state in MirrorState.objects.all()}
    count = workers_of(states.get(RECORD))
    names = [Part(index, count).named(HEARTBEAT) for index in range(count)]
    return {name: states[name].seen_at if name in states else None for name in names}
