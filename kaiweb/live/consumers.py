"""The live socket: one task answers what the client says, one sends what is due.

The protocol's rules live in `subscription` (chains, coalescing, back-pressure), the reading in `frames`
and `hub`; here is only their order. Close codes: 4400 protocol, 4401 not logged in, 4403 no right,
4429 too many.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from collections import Counter
from collections.abc import Iterable
from typing import Any

import orjson
from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.utils import timezone
from prometheus_client import Counter as Metric
from prometheus_client import Gauge

from kaiweb.items.amounts import moment
from kaiweb.live.access import Guest, admit
from kaiweb.live.frames import as_of, read_missed, read_snapshot
from kaiweb.live.hub import hub
from kaiweb.live.subscription import (
    INTERVAL_S,
    MAX_UNACKED,
    Batch,
    Reset,
    Subscription,
    snapshot_frames,
)
from kaiweb.live.topics import Topic, TopicError, parse_topic
from queues import live

log = logging.getLogger(__name__)

PROTOCOL = "kaiweb.live.v1"
MAX_SUBSCRIPTIONS = 32
HEARTBEAT_S = 20
RIGHTS_S = 30.0
BAD_PROTOCOL, NO_LOGIN, TOO_MANY = 4400, 4401, 4429
#: Open sockets of one person, and of all: each costs memory and a share of every frame.
MAX_SOCKETS_PER_USER, MAX_SOCKETS = 20, 1000
PROBLEMS = "https://kaiweb.dev/problems/"

SOCKETS = Gauge("kaiweb_live_sockets", "Open live connections")
FRAMES = Metric("kaiweb_live_frames", "Frames sent to clients", labelnames=["type"])

Frame = dict[str, Any]


#: Open sockets by the id of their user; only event loops touch it, and a process has one.
_sockets_of: Counter[int] = Counter()


class ProtocolError(Exception):
    """The client said something the protocol does not know."""


class LiveConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]
    """One connection."""

    async def connect(self) -> None:
        """Let the client in, or say with a close code why not."""
        self._subscriptions: dict[str, Subscription] = {}
        self._guest: Guest | None = None
        self._fingerprint = ""
        self._is_hidden = False
        self._news = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._place: int | None = None
        if PROTOCOL not in self.scope["subprotocols"]:
            await self._refuse(BAD_PROTOCOL)
            return
        self._guest = await database_sync_to_async(admit)(self.scope)
        rights = await database_sync_to_async(self._guest.rights)() if self._guest else None
        if self._guest is None or rights is None:
            await self._refuse(NO_LOGIN)
            return
        if not self._take_place(self._guest.user.pk):
            await self._refuse(TOO_MANY)
            return
        self._fingerprint = rights.fingerprint
        await self.accept(PROTOCOL)
        SOCKETS.inc()
        await hub().join(self)
        self._tasks = [
            asyncio.create_task(self._send_due(), name="live-send"),
            asyncio.create_task(self._beat(), name="live-beat"),
            asyncio.create_task(self._watch_rights(), name="live-rights"),
        ]

    def _take_place(self, user_id: int) -> bool:
        """Count this socket; return False where the user, or all together, have too many."""
        if _sockets_of[user_id] >= MAX_SOCKETS_PER_USER or _sockets_of.total() >= MAX_SOCKETS:
            return False
        _sockets_of[user_id] += 1
        self._place = user_id
        return True

    def _leave_place(self) -> None:
        if self._place is not None:
            _sockets_of[self._place] -= 1
            self._place = None

    async def _refuse(self, code: int) -> None:
        # A close before the handshake is an HTTP 403 without a code the browser could read.
        await self.accept(PROTOCOL if PROTOCOL in self.scope["subprotocols"] else None)
        await self.close(code)

    async def disconnect(self, _code: int) -> None:
        """Stop everything that belongs to this connection."""
        self._leave_place()
        await hub().leave(self)
        if self._tasks:
            SOCKETS.dec()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # What the hub asks.

    def topics(self) -> Iterable[Topic]:
        """Return what is subscribed to; called from the hub's reading thread."""
        return [one.topic for one in tuple(self._subscriptions.values())]

    def offer(self, batch: Batch) -> None:
        """Take new states for all subscriptions."""
        for one in self._subscriptions.values():
            one.offer(batch)
        self._news.set()

    # What the client says.

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Answer one frame; nonsense ends the connection."""
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
            self._news.set()
        elif kind in ("ack", "unsub", "pause", "continue"):
            await self._control(str(kind), frame)
        else:
            raise ProtocolError(
                f"t: expected hello, sub, ack, unsub, pause, continue or hb, got {kind!r:.40}"
            )

    async def _welcome(self) -> None:
        await self._send(
            {
                "t": "welcome",
                "conn": secrets.token_hex(6),
                "rights": self._fingerprint,
                "time": moment(timezone.now()),
                "hb": HEARTBEAT_S,
                "limits": {
                    "subs": MAX_SUBSCRIPTIONS,
                    "unacked": MAX_UNACKED,
                    "intervalMs": int(INTERVAL_S * 1000),
                },
            }
        )

    async def _control(self, kind: str, frame: Frame) -> None:
        one = self._subscriptions.get(str(frame.get("id")))
        if one is None:
            return  # it crossed with an unsub or an error of ours
        if kind == "ack":
            one.acknowledge(_position(frame.get("seq")))
        elif kind == "unsub":
            del self._subscriptions[one.id]
        else:
            one.is_paused = kind == "pause"
            self._news.set()

    async def _subscribe(self, frame: Frame) -> None:
        name = frame.get("id")
        if not isinstance(name, str) or not 0 < len(name) <= 64:
            raise ProtocolError("id: expected a text of 1 to 64 characters")
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
        one = Subscription(id=name, topic=topic)
        self._subscriptions[name] = one
        resume = frame.get("resume")
        if isinstance(resume, dict):
            await self._resume(one, str(resume.get("epoch")), _position(resume.get("seq")))
        else:
            await self._snapshot(one)

    async def _resume(self, one: Subscription, epoch: str, seq: int) -> None:
        missed = await database_sync_to_async(read_missed)(one.topic, epoch, seq)
        if isinstance(missed, Reset):
            await self._reset(one, missed)
            return
        batch, admits = missed
        one.begin(seq, None, admits, time.monotonic())
        one.catch_up(batch)
        await self._send({"t": "resumed", "id": one.id, "from": str(seq)})
        self._news.set()

    async def _reset(self, one: Subscription, reason: Reset) -> None:
        one.restart()
        await self._send({"t": "reset", "id": one.id, "reason": reason.value})
        await self._snapshot(one)

    async def _snapshot(self, one: Subscription) -> None:
        read = await database_sync_to_async(read_snapshot)(one.topic)
        visible = {item["k"] for item in read.items}
        frames = snapshot_frames(
            one, epoch=read.epoch, position=read.position, as_of=read.as_of, items=read.items
        )
        for frame in frames:
            await self._send(frame)
        one.begin(read.position, visible, read.admits, time.monotonic())
        self._news.set()

    # What is sent by itself.

    async def _send_due(self) -> None:
        """Send each subscription's delta when its time has come."""
        while True:
            self._news.clear()
            now = time.monotonic()
            waits: list[float] = []
            for one in tuple(self._subscriptions.values()):
                due = one.due_at(hidden=self._is_hidden)
                if due is None:
                    continue
                if due > now:
                    waits.append(due - now)
                elif one.is_overrun():
                    one.slow_down()
                    await self._reset(one, Reset.SLOW)
                elif (frame := one.take(now)) is not None:
                    await self._send(frame)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), min(waits, default=None))

    async def _beat(self) -> None:
        """Show that we live, and how old the picture is."""
        while True:
            await asyncio.sleep(HEARTBEAT_S)
            seqs = {one.id: str(one.seq) for one in self._subscriptions.values() if one.seq >= 0}
            now = await database_sync_to_async(_as_of_now)()
            await self._send({"t": "hb", "seqs": seqs, "asOf": now})

    async def _watch_rights(self) -> None:
        """Look again every half minute whether the client may still see what it sees."""
        while True:
            await asyncio.sleep(RIGHTS_S)
            assert self._guest is not None
            rights = await database_sync_to_async(self._guest.rights)()
            if rights is None:
                await self.close(NO_LOGIN)
                return
            if rights.fingerprint != self._fingerprint:
                self._fingerprint = rights.fingerprint
                for one in tuple(self._subscriptions.values()):
                    await self._reset(one, Reset.RIGHTS)

    async def _problem(self, name: str | None, slug: str, detail: str) -> None:
        problem = {"type": PROBLEMS + slug, "title": "Refused", "detail": detail, "errors": []}
        await self._send({"t": "err", "id": name, "problem": problem})

    async def _send(self, frame: Frame) -> None:
        FRAMES.labels(frame["t"]).inc()
        await self.send(text_data=orjson.dumps(frame).decode())


def _as_of_now() -> Frame:
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
    """Read a position that we gave out as a text; what we never gave out is -1, which no log holds."""
    text = str(value)
    return int(text) if text.isdecimal() and len(text) < 19 else -1
