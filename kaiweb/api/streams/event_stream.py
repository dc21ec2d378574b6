"""`GET /api/v1/events`: a topic of the live protocol as server-sent events, for scripts and strict proxies.

Django's view decides whether the caller may read the topic; its answer is the first event, `welcome`. It is asked
again every half minute, and the stream ends with the right. The other events are frames of the live protocol: `snap`,
`delta` and `reset`. The id of an event is `epoch:position`; a client that sends the last one as Last-Event-ID gets
what it has missed.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl

import orjson
from channels.db import database_sync_to_async
from prometheus_client import Gauge

from kaiweb.api.errors import MEDIA_TYPE, Problem
from kaiweb.api.streams.inner import App, Receive, Scope, Send, call, until_disconnect
from kaiweb.items.visibility import EVERYTHING, Visibility
from kaiweb.live import sockets
from kaiweb.live.frames import open_snapshot, read_missed
from kaiweb.live.hub import hub
from kaiweb.live.subscription import Batch, Frame, Reset, Subscription
from kaiweb.live.topics import Topic, parse_topic
from queues.access.rate_limits import RateLimit

PATH = "/api/v1/events"
HEARTBEAT_S = 15.0
RIGHTS_CHECK_S = 30.0
HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    # Proxies of nginx would collect the events otherwise.
    (b"x-accel-buffering", b"no"),
]

STREAMS = Gauge("kaiweb_event_streams", "Open event streams")


class EventStreams:
    """Wraps an ASGI application: its answer 200 to the request opens a stream, any other is passed on."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_ours = scope["type"] == "http" and scope["method"] == "GET" and scope["path"] == PATH
        if not is_ours:
            await self._app(scope, receive, send)
            return
        answer = await call(self._app, scope)
        if answer.status != 200:
            await answer.pass_on(send)
            return
        welcome = read_event(answer.body)
        if not sockets.count(welcome["caller"]):
            await _refuse(send)
            return
        STREAMS.inc()
        try:
            await _Stream(self._app, scope, send, welcome).run(receive)
        finally:
            sockets.uncount(welcome["caller"])
            STREAMS.dec()


class _Stream:
    """One open stream."""

    def __init__(self, app: App, scope: Scope, send: Send, welcome: Mapping[str, Any]) -> None:
        self._app, self._scope, self._send = app, scope, send
        self._welcome = welcome
        self._epoch = ""
        topic = topic_of(scope["query_string"].decode("latin-1"))
        queues = welcome["queues"]
        visibility = EVERYTHING if queues is None else Visibility(frozenset(queues))
        self._subscription = Subscription(id="1", topic=replace(topic, visibility=visibility))
        self._has_pending = asyncio.Event()

    # The hub calls these three.

    def topics(self) -> Iterable[Topic]:
        return [self._subscription.topic]

    def offer(self, batch: Batch) -> None:
        self._subscription.offer(batch)
        self._has_pending.set()

    def expire(self) -> None:
        self._subscription.expire()
        self._has_pending.set()

    async def run(self, receive: Receive) -> None:
        """Send events until the client goes or loses its right."""
        await self._send({"type": "http.response.start", "status": 200, "headers": HEADERS})
        await self._write(event_bytes("welcome", self._welcome))
        await hub().join(self)
        tasks = [
            asyncio.create_task(until_disconnect(receive), name="events-disconnect"),
            asyncio.create_task(self._send_frames(), name="events-send"),
            asyncio.create_task(self._watch_rights(), name="events-rights"),
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await hub().leave(self)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        with contextlib.suppress(OSError):
            await self._send({"type": "http.response.body", "body": b""})

    async def _send_frames(self) -> None:
        await self._begin()
        subscription = self._subscription
        while True:
            self._has_pending.clear()
            due_at = subscription.due_at(hidden=False)
            pause = HEARTBEAT_S if due_at is None else max(0.0, due_at - time.monotonic())
            if due_at is not None and pause == 0.0:
                await self._send_due()
                continue
            try:
                await asyncio.wait_for(self._has_pending.wait(), pause)
            except TimeoutError:
                if due_at is None:
                    await self._write(b": still here\n\n")

    async def _send_due(self) -> None:
        subscription = self._subscription
        if (reason := subscription.due_reset()) is not None:
            await self._reset(reason)
            return
        frame = subscription.take(time.monotonic())
        if frame is not None:
            await self._write_frame(frame)
            # The transport has taken it, so it counts as received.
            subscription.acknowledge(int(frame["seq"]))

    async def _begin(self) -> None:
        """Send what was missed since the last event of an earlier stream, or a snapshot."""
        headers = dict(self._scope["headers"])
        epoch, _, seq = headers.get(b"last-event-id", b"").decode("latin-1").rpartition(":")
        if not epoch or not seq.isdecimal() or len(seq) > 18:
            await self._snapshot()
            return
        topic = self._subscription.topic
        missed = await database_sync_to_async(read_missed)(topic, epoch, int(seq))
        if isinstance(missed, Reset):
            await self._reset(missed)
            return
        batch, admits = missed
        self._epoch = epoch
        self._subscription.begin(int(seq), None, admits, time.monotonic())
        self._subscription.catch_up(batch)

    async def _reset(self, reason: Reset) -> None:
        self._subscription.restart()
        await self._write(event_bytes("reset", {"t": "reset", "reason": reason.value}))
        await self._snapshot()

    async def _snapshot(self) -> None:
        subscription = self._subscription
        snapshot = await database_sync_to_async(open_snapshot)(subscription.topic)
        self._epoch = snapshot.epoch
        visible: set[str] = set()
        for number in range(1, snapshot.parts + 1):
            items = await database_sync_to_async(snapshot.part)(number)
            visible.update(item["k"] for item in items)
            frame = snapshot.frame(subscription, number, items)
            # A client that resumes in the middle of a snapshot would miss the rest of it.
            await self._write_frame(frame, has_id=number == snapshot.parts)
        subscription.begin(snapshot.position, visible, snapshot.admits, time.monotonic())

    async def _watch_rights(self) -> None:
        """Return when the caller may no longer read, or has other rights than at the start."""
        while True:
            await asyncio.sleep(RIGHTS_CHECK_S)
            answer = await call(self._app, self._scope)
            if answer.status in (401, 403):
                return
            if answer.status == 200 and read_event(answer.body) != self._welcome:
                return  # the client connects again, with its new rights

    async def _write_frame(self, frame: Frame, *, has_id: bool = True) -> None:
        event_id = f"{self._epoch}:{frame['seq']}" if has_id else ""
        await self._write(event_bytes(frame["t"], frame, event_id))

    async def _write(self, body: bytes) -> None:
        await self._send({"type": "http.response.body", "body": body, "more_body": True})


def topic_of(query: str) -> Topic:
    """Return the topic of a query string: `topic`, and the parameters of its filter.

    Raises
    ------
    kaiweb.live.topics.TopicError
    """
    params: dict[str, Any] = dict(parse_qsl(query))
    name = params.pop("topic", "")
    if "subtree" in params:
        params["subtree"] = params["subtree"] == "true"
    return parse_topic(name, params)


def event_bytes(name: str, data: Mapping[str, Any], event_id: str = "") -> bytes:
    """Return one event; JSON of orjson has no line break."""
    head = f"id: {event_id}\n" if event_id else ""
    return f"{head}event: {name}\ndata: ".encode() + orjson.dumps(data) + b"\n\n"


def read_event(body: bytes) -> dict[str, Any]:
    """Return the data of an event."""
    line = next(line for line in body.splitlines() if line.startswith(b"data: "))
    data: dict[str, Any] = orjson.loads(line.removeprefix(b"data: "))
    return data


async def _refuse(send: Send) -> None:
    problem = Problem("rate-limited", "too many open live connections of this user")
    limit = RateLimit(name="live", quota=sockets.MAX_SOCKETS_PER_USER, unit="open-connections")
    fields = {"Content-Type": MEDIA_TYPE, **limit.refusal_headers(5)}
    headers = [(name.lower().encode(), value.encode()) for name, value in fields.items()]
    await send({"type": "http.response.start", "status": problem.status, "headers": headers})
    await send({"type": "http.response.body", "body": orjson.dumps(problem.body(PATH))})
