"""The live socket: one task answers the frames of the client, another sends what is due.

The rules of the protocol are in `subscription` (chains, coalescing, back-pressure), the reading in `frames` and
`hub`; here is only the order of events. Close codes: 4400 protocol, 4401 not logged in, 4429 too many.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import Coroutine, Iterable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import orjson
from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.utils import timezone
from prometheus_client import Counter as Metric
from prometheus_client import Gauge

from kaiweb.items.amounts import timestamp
from kaiweb.items.visibility import EVERYTHING, visibility_of
from kaiweb.live import sockets
from kaiweb.live.access import Client, authenticate, may_come_in
from kaiweb.live.frames import as_of, open_snapshot, read_missed
from kaiweb.live.hub import hub
from kaiweb.live.subscription import (
    INTERVAL_S,
    MAX_UNACKED,
    Batch,
    Frame,
    Reset,
    Subscription,
)
from kaiweb.live.topics import Topic, TopicError, parse_topic
from queues import live

log = logging.getLogger(__name__)

PROTOCOL = "kaiweb.live.v1"
MAX_SUBSCRIPTIONS = 32
#: A page that hears nothing else must notice within ten seconds that the mirror stands still.
HEARTBEAT_S = 5
RIGHTS_CHECK_S = 30.0
BAD_PROTOCOL, NO_LOGIN, TOO_MANY = 4400, 4401, 4429
SERVER_ERROR = 1011
PROBLEMS = "https://kaiweb.dev/problems/"

SOCKETS = Gauge("kaiweb_live_sockets", "Open live connections")
FRAMES = Metric("kaiweb_live_frames", "Frames sent to clients", labelnames=["type"])


class ProtocolError(Exception):
    """A frame of the client breaks the protocol."""


class LiveConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]
    """One connection of a client."""

    async def connect(self) -> None:
        """Accept the client, or close with a code that tells the reason."""
        self._subscriptions: dict[str, Subscription] = {}
        self._client: Client | None = None
        self._fingerprint = ""
        self._visibility = EVERYTHING
        self._is_hidden = False
        self._has_pending = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        #: By subscription, what brings it to its present state; it may take seconds, and others must not wait for it.
        self._openings: dict[str, asyncio.Task[None]] = {}
        self._counted_for = ""
        if PROTOCOL not in self.scope["subprotocols"]:
            await self._refuse(BAD_PROTOCOL)
            return
        # Another site's page can open many sockets at once: it gets no thread and no look into the database.
        if not may_come_in(self.scope):
            await self._refuse(NO_LOGIN)
            return
        self._client = await database_sync_to_async(authenticate)(self.scope)
        rights = await database_sync_to_async(self._client.rights)() if self._client else None
        if self._client is None or rights is None or not rights.may_read:
            await self._refuse(NO_LOGIN)
            return
        if not sockets.count(rights.username):
            await self._refuse(TOO_MANY)
            return
        self._counted_for = rights.username
        self._fingerprint = rights.fingerprint
        self._visibility = await database_sync_to_async(visibility_of)(rights)
        await self.accept(PROTOCOL)
        SOCKETS.inc()
        await hub().join(self)
        self._tasks = [
            asyncio.create_task(self._send_due(), name="live-send"),
            asyncio.create_task(self._beat(), name="live-beat"),
            asyncio.create_task(self._watch_rights(), name="live-rights"),
        ]

    async def _refuse(self, code: int) -> None:
        # A close before the handshake is an HTTP 403, and the browser could not read the code.
        await self.accept(PROTOCOL if PROTOCOL in self.scope["subprotocols"] else None)
        await self.close(code)

    async def disconnect(self, _code: int) -> None:
        """Stop everything that belongs to this connection."""
        if self._counted_for:
            sockets.uncount(self._counted_for)
            self._counted_for = ""
        await hub().leave(self)
        if self._tasks:
            SOCKETS.dec()
        tasks = [*self._tasks, *self._openings.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # For the hub.

    def topics(self) -> Iterable[Topic]:
        """Return the subscribed topics; the hub calls this from its reading thread."""
        return [subscription.topic for subscription in tuple(self._subscriptions.values())]

    def offer(self, batch: Batch) -> None:
        """Offer new states to all subscriptions."""
        for subscription in self._subscriptions.values():
            subscription.offer(batch)
        self._has_pending.set()

    def expire(self) -> None:
        """Reset all subscriptions, because the log has begun anew."""
        for subscription in self._subscriptions.values():
            subscription.expire()
        self._has_pending.set()

    # Frames of the client.

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Answer one frame; one that breaks the protocol closes the connection."""
        try:
            await self._answer(_decode(text_data))
        except ProtocolError as error:
            await self._problem(None, "validation", str(error))
            await self.close(BAD_PROTOCOL)

    async def _answer(self, frame: Frame) -> None:
        kind = frame.get("t")
        if kind == "hello":
            await self._welcome()
        elif kind == "sub":
            await self._subscribe(frame)
        elif kind == "hb":
            return
        elif kind == "visibility":
            self._is_hidden = frame.get("hidden") is True
            self._has_pending.set()
        elif kind in ("ack", "unsub"):
            self._control(str(kind), frame)
        else:
            raise ProtocolError(
                f"t: expected hello, sub, ack, unsub, visibility or hb, got {kind!r:.40}"
            )

    async def _welcome(self) -> None:
        await self._send(
            {
                "t": "welcome",
                "conn": secrets.token_hex(6),
                "rights": self._fingerprint,
                "time": timestamp(timezone.now()),
                "hb": HEARTBEAT_S,
                "limits": {
                    "subs": MAX_SUBSCRIPTIONS,
                    "unacked": MAX_UNACKED,
                    "intervalMs": int(INTERVAL_S * 1000),
                },
            }
        )

    def _control(self, kind: str, frame: Frame) -> None:
        subscription = self._subscriptions.get(str(frame.get("id")))
        if subscription is None:
            return  # sent before the client knew that the subscription had ended
        if kind == "ack":
            subscription.acknowledge(_position(frame.get("seq")))
        else:
            del self._subscriptions[subscription.id]
            self._cancel_opening(subscription.id)

    async def _subscribe(self, frame: Frame) -> None:
        name = frame.get("id")
        if not isinstance(name, str) or not 0 < len(name) <= 64:
            raise ProtocolError("id: expected a string of 1 to 64 characters")
        if name not in self._subscriptions and len(self._subscriptions) >= MAX_SUBSCRIPTIONS:
            await self._problem(
                name, "rate-limited", f"more than {MAX_SUBSCRIPTIONS} subscriptions"
            )
            await self.close(TOO_MANY)
            return
        try:
            topic = parse_topic(frame.get("topic"), frame.get("params"))
        except TopicError as error:
            await self._problem(name, "validation", str(error))
            return
        subscription = Subscription(id=name, topic=replace(topic, visibility=self._visibility))
        self._subscriptions[name] = subscription
        resume = frame.get("resume")
        if isinstance(resume, dict):
            epoch, seq = str(resume.get("epoch")), _position(resume.get("seq"))
            self._open(name, self._resume(subscription, epoch, seq))
        else:
            self._open(name, self._snapshot(subscription))

    def _open(self, name: str, opening: Coroutine[Any, Any, None]) -> None:
        """Bring a subscription to its present state in a task of its own, in place of an earlier one."""
        self._cancel_opening(name)
        self._openings[name] = asyncio.create_task(self._run(opening), name=f"live-open-{name}")

    def _cancel_opening(self, name: str) -> None:
        opening = self._openings.pop(name, None)
        if opening is not None:
            opening.cancel()

    async def _run(self, opening: Coroutine[Any, Any, None]) -> None:
        try:
            await opening
        except Exception:  # entry point of a task, whose errors nobody else reads
            log.exception("a live topic could not be read")
            await self.close(SERVER_ERROR)

    async def _resume(self, subscription: Subscription, epoch: str, seq: int) -> None:
        missed = await database_sync_to_async(read_missed)(subscription.topic, epoch, seq)
        if isinstance(missed, Reset):
            await self._send_reset(subscription, missed)
            return
        batch, admits = missed
        subscription.begin(seq, None, admits, time.monotonic())
        subscription.catch_up(batch)
        await self._send({"t": "resumed", "id": subscription.id, "from": str(seq)})
        self._has_pending.set()

    def _reset(self, subscription: Subscription, reason: Reset) -> None:
        subscription.restart()
        self._open(subscription.id, self._send_reset(subscription, reason))

    async def _send_reset(self, subscription: Subscription, reason: Reset) -> None:
        subscription.restart()
        await self._send({"t": "reset", "id": subscription.id, "reason": reason.value})
        await self._snapshot(subscription)

    async def _snapshot(self, subscription: Subscription) -> None:
        snapshot = await database_sync_to_async(open_snapshot)(subscription.topic)
        visible: set[str] = set()
        for number in range(1, snapshot.parts + 1):
            items = await database_sync_to_async(snapshot.part)(number)
            visible.update(item["k"] for item in items)
            await self._send(snapshot.frame(subscription, number, items))
        subscription.begin(snapshot.position, visible, snapshot.admits, time.monotonic())
        self._has_pending.set()

    # Frames that are no answer.

    async def _send_due(self) -> None:
        """Send the delta of each subscription when it is due."""
        while True:
            self._has_pending.clear()
            now = time.monotonic()
            waits: list[float] = []
            for subscription in tuple(self._subscriptions.values()):
                due_at = subscription.due_at(hidden=self._is_hidden)
                if due_at is None:
                    continue
                if due_at > now:
                    waits.append(due_at - now)
                elif (reason := subscription.due_reset()) is not None:
                    self._reset(subscription, reason)
                elif (frame := subscription.take(now)) is not None:
                    await self._send(frame)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._has_pending.wait(), min(waits, default=None))

    async def _beat(self) -> None:
        """Send a heartbeat with the position of each subscription and the age of the data."""
        while True:
            await asyncio.sleep(HEARTBEAT_S)
            subscriptions = tuple(self._subscriptions.values())
            seqs = {
                subscription.id: str(subscription.seq)
                for subscription in subscriptions
                if subscription.seq >= 0
            }
            now = await database_sync_to_async(_as_of_now)(int(time.monotonic()))
            await self._send({"t": "hb", "seqs": seqs, "asOf": now})

    async def _watch_rights(self) -> None:
        """Check the rights of the client again every half minute."""
        while True:
            await asyncio.sleep(RIGHTS_CHECK_S)
            assert self._client is not None
            rights = await database_sync_to_async(self._client.rights)()
            if rights is None or not rights.may_read:
                await self.close(NO_LOGIN)
                return
            visibility = await database_sync_to_async(visibility_of)(rights)
            if (rights.fingerprint, visibility) != (self._fingerprint, self._visibility):
                self._fingerprint, self._visibility = rights.fingerprint, visibility
                for subscription in tuple(self._subscriptions.values()):
                    subscription.topic = replace(subscription.topic, visibility=visibility)
                    self._reset(subscription, Reset.RIGHTS)

    async def _problem(self, name: str | None, slug: str, detail: str) -> None:
        problem = {"type": PROBLEMS + slug, "title": "Refused", "detail": detail, "errors": []}
        await self._send({"t": "err", "id": name, "problem": problem})

    async def _send(self, frame: Frame) -> None:
        FRAMES.labels(frame["t"]).inc()
        await self.send(text_data=orjson.dumps(frame).decode())


@lru_cache(maxsize=1)
def _as_of_now(_second: int) -> Frame:
    """Return the state of the data; the heartbeats of one second share it."""
    return as_of(live.position())


def _decode(text: str | None) -> Frame:
    try:
        frame = orjson.loads(text or "")
    except orjson.JSONDecodeError as error:
        raise ProtocolError("a frame: expected JSON text") from error
    if not isinstance(frame, dict):
        raise ProtocolError("a frame: expected an object")
    return frame


def _position(value: object) -> int:
    """Return the position that a client sends back; -1, which no log holds, if it is none of ours."""
    text = str(value)
    return int(text) if text.isdecimal() and len(text) < 19 else -1
