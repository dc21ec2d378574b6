"""Server-sent events end to end in one process: rights by Django, snapshot, deltas, resumption, limits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
import pytest_asyncio
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.core.asgi import get_asgi_application
from django.db import connections
from django.utils import timezone

from kaiweb.api.streams import event_stream
from kaiweb.api.streams.event_stream import EventStreams
from kaiweb.live import sockets
from kube.resources import QUEUES
from queues.access import tokens
from queues.mirror.feed import Message, Mirror
from queues.mirror.kinds import KINDS
from queues.mirror.writer import Writer
from queues.models import ApiToken
from tests.queues.cluster_objects import a_queue, added, listed

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]
NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)


@sync_to_async
def consume(*messages: Message) -> None:
    Mirror(KINDS, Writer(sleep=lambda _s: None), now=lambda: NOON).consume(messages)


@sync_to_async
def a_token(*scopes: str) -> str:
    user, _ = User.objects.get_or_create(username="vera")
    _row, secret = tokens.create(
        user=user, name="t", scopes=list(scopes), subtree="", expires_at=None, now=timezone.now()
    )
    return secret


class Stream:
    """A client of the stream."""

    def __init__(self, query: str, token: str, last_id: str = "") -> None:
        headers = [(b"host", b"testserver")]
        if token:
            headers.append((b"authorization", f"Bearer {token}".encode()))
        if last_id:
            headers.append((b"last-event-id", last_id.encode()))
        self.scope = {
            "type": "http", "method": "GET", "path": "/api/v1/events", "headers": headers,
            "query_string": query.encode(), "http_version": "1.1", "scheme": "http",
            "server": ("testserver", 80),
        }  # fmt: skip
        self.messages: asyncio.Queue[Mapping[str, Any]] = asyncio.Queue()
        self.gone = asyncio.Event()
        application = EventStreams(get_asgi_application())
        self.task = asyncio.create_task(application(self.scope, self._receive, self.messages.put))

    async def _receive(self) -> Mapping[str, Any]:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def status(self) -> int:
        message = await asyncio.wait_for(self.messages.get(), 10)
        return int(message["status"])

    async def event(self) -> tuple[str, str, Any]:
        """Return name, id and data of the next event."""
        message = await asyncio.wait_for(self.messages.get(), 10)
        lines = dict(line.split(": ", 1) for line in message["body"].decode().splitlines() if line)
        return lines["event"], lines.get("id", ""), orjson.loads(lines["data"])

    async def end(self) -> None:
        self.gone.set()
        await asyncio.wait_for(self.task, 10)


@pytest_asyncio.fixture
async def streams() -> AsyncIterator[list[Stream]]:
    opened: list[Stream] = []
    yield opened
    for stream in opened:
        await stream.end()
    # The worker thread's connection would keep PostgreSQL from dropping the test database.
    await sync_to_async(connections.close_all)()


async def test_a_stream_begins_with_a_snapshot_and_goes_on_where_it_was_cut(
    streams: list[Stream],
) -> None:
    await consume(listed(QUEUES, a_queue("team")))
    token = await a_token("read")
    first = Stream("topic=queues", token)
    streams.append(first)
    assert await first.status() == 200
    name, _id, welcome = await first.event()
    assert (name, welcome["caller"]) == ("welcome", "vera")
    name, snapshot_id, snapshot = await first.event()
    assert (name, [item["k"] for item in snapshot["items"]]) == ("snap", ["team"])
    await consume(added(QUEUES, a_queue("next", 2)))
    name, delta_id, delta = await first.event()
    assert (name, [item["k"] for item in delta["up"]]) == ("delta", ["next"])
    await first.end()
    second = Stream("topic=queues", token, snapshot_id)
    streams.append(second)
    assert await second.status() == 200
    await second.event()
    name, resumed_id, missed = await second.event()
    assert (name, [item["k"] for item in missed["up"]]) == ("delta", ["next"])
    assert resumed_id == delta_id
    third = Stream("topic=queues", token, "another-epoch:5")
    streams.append(third)
    assert await third.status() == 200
    names = [(await third.event())[0] for _ in range(3)]
    assert names == ["welcome", "reset", "snap"]


async def test_only_who_may_read_gets_a_stream(streams: list[Stream]) -> None:
    for token, query, status in (
        ("", "topic=queues", 401),
        (await a_token("queues:write"), "topic=queues", 403),
        (await a_token("read"), "topic=secrets", 400),
        (await a_token("read"), "topic=queues&pool=x", 400),
        (await a_token("read"), "", 400),
    ):
        stream = Stream(query, token)
        streams.append(stream)
        assert await stream.status() == status, (query, status)


async def test_a_user_has_a_bounded_number_of_streams(
    streams: list[Stream], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sockets, "MAX_SOCKETS_PER_USER", 1)
    token = await a_token("read")
    for status in (200, 429):
        streams.append(Stream("topic=nodes", token))
        assert await streams[-1].status() == status
    await streams[0].end()
    streams.append(Stream("topic=nodes", token))
    assert await streams[-1].status() == 200


async def test_the_stream_ends_with_the_right(
    streams: list[Stream], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "RIGHTS_CHECK_S", 0.05)
    stream = Stream("topic=nodes", await a_token("read"))
    streams.append(stream)
    assert await stream.status() == 200
    await sync_to_async(ApiToken.objects.update)(revoked_at=timezone.now())
    await asyncio.wait_for(stream.task, 10)
