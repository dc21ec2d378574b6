"""Silent, slow and numerous connections against a real uvicorn."""

from __future__ import annotations

import asyncio
import resource
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvicorn

from queues.access import http_guard
from queues.access.http_guard import ConnectionLimits, affordable, guarded, raise_file_limit

GET = b"GET /x HTTP/1.1\r\nhost: a\r\n\r\n"
LONG_S = 60.0
BRIEF_S = 0.2


async def hello(scope: Any, receive: Any, send: Any) -> None:
    """Answer at once, without reading the body; accept any live socket."""
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        await receive()
        return
    await send(
        {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]}
    )
    await send({"type": "http.response.body", "body": b"ok"})


@asynccontextmanager
async def serving(app: Any = hello, **limits: Any) -> AsyncIterator[int]:
    """Serve on a free port; without other limits nothing ends a connection within the test."""
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        app,
        http=guarded(ConnectionLimits(**{"head_s": LONG_S, "linger_s": LONG_S, **limits})),
        log_config=None,
        lifespan="off",
        timeout_keep_alive=int(LONG_S),
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve(sockets=[listener]))
    while not server.started:
        await asyncio.sleep(0.01)
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = server.force_exit = True
        await task


class Client:
    """One connection; what is refused reads as the end of the stream."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def ask(self, data: bytes = GET) -> bytes:
        """Send, and return the status line."""
        self.writer.write(data)
        return await self.line()

    async def line(self) -> bytes:
        try:
            return (await asyncio.wait_for(self.reader.readline(), 10)).strip()
        except ConnectionError:
            return b""

    async def end(self) -> bytes:
        """Return what comes until the server closes."""
        try:
            return await asyncio.wait_for(self.reader.read(), 10)
        except ConnectionError:
            return b""


Connect = Callable[[int], Awaitable[Client]]


@pytest.fixture
async def connect() -> AsyncIterator[Connect]:
    clients: list[Client] = []

    async def open_one(port: int) -> Client:
        clients.append(Client(*await asyncio.open_connection("127.0.0.1", port)))
        return clients[-1]

    yield open_one
    for client in clients:
        client.writer.close()


async def test_a_silent_connection_is_closed(connect: Connect) -> None:
    async with serving(head_s=BRIEF_S) as port:
        assert await (await connect(port)).end() == b""


async def test_a_head_that_comes_slowly_is_cut_off(connect: Connect) -> None:
    async with serving(head_s=BRIEF_S) as port:
        client = await connect(port)
        client.writer.write(GET[:20])
        assert await client.end() == b""


async def test_a_slow_second_head_and_empty_lines_are_cut_off_too(connect: Connect) -> None:
    async with serving(head_s=BRIEF_S) as port:
        for rest in (GET[:20], b"\r\n"):
            client = await connect(port)
            assert await client.ask() == b"HTTP/1.1 200 OK"
            client.writer.write(rest)
            assert b"HTTP" not in await client.end()


async def test_a_connection_that_asks_stays_open_past_the_time_of_a_head(connect: Connect) -> None:
    async with serving(head_s=BRIEF_S) as port:
        client = await connect(port)
        assert await client.ask() == b"HTTP/1.1 200 OK"
        await asyncio.sleep(2 * BRIEF_S)
        for _ in range(4):  # the rest of the first answer
            await client.line()
        client.writer.write(GET)
        assert b"HTTP/1.1 200 OK" in await client.line() + await client.line()


async def test_a_huge_head_is_refused(connect: Connect) -> None:
    async with serving(head_bytes=1000) as port:
        status = await (await connect(port)).ask(GET[:-2] + b"x: " + b"y" * 5000)
        assert status == b"HTTP/1.1 431 Request Header Fields Too Large"


async def test_silent_connections_give_way_to_those_that_ask(connect: Connect) -> None:
    async with serving(per_address=3) as port:
        silent = [await connect(port) for _ in range(20)]
        assert await (await connect(port)).ask() == b"HTTP/1.1 200 OK"
        assert [await connection.end() for connection in silent[:-2]] == [b""] * 18


async def test_slow_bodies_give_way_too(connect: Connect) -> None:
    ended: asyncio.Queue[str] = asyncio.Queue()

    async def reads(scope: Any, receive: Any, send: Any) -> None:
        message = await receive()
        while message.get("more_body"):
            message = await receive()
        ended.put_nowait(message["type"])
        await hello(scope, receive, send)

    async with serving(reads, per_address=2) as port:
        for _ in range(2):
            slow = await connect(port)
            slow.writer.write(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\nx")
            await slow.writer.drain()
        await asyncio.sleep(0.05)
        assert await (await connect(port)).ask() == b"HTTP/1.1 200 OK"
        assert await asyncio.wait_for(ended.get(), 5) == "http.disconnect"
        assert await asyncio.wait_for(ended.get(), 5) == "http.request"


async def test_connections_with_a_running_request_are_never_sent_away(connect: Connect) -> None:
    running, goes_on = asyncio.Semaphore(0), asyncio.Event()

    async def waits(scope: Any, receive: Any, send: Any) -> None:
        running.release()
        await goes_on.wait()
        await hello(scope, receive, send)

    async with serving(waits, total=2) as port:
        busy = [await connect(port) for _ in range(2)]
        for connection in busy:
            connection.writer.write(GET)
            await running.acquire()
        assert await (await connect(port)).ask() == b""
        goes_on.set()
        assert [await connection.line() for connection in busy] == [b"HTTP/1.1 200 OK"] * 2


async def test_a_live_socket_is_neither_closed_nor_forgotten_in_the_count(connect: Connect) -> None:
    upgrade = (
        b"GET /live HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
        b"sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    )
    async with serving(head_s=BRIEF_S, total=1) as port:
        live = await connect(port)
        assert await live.ask(upgrade) == b"HTTP/1.1 101 Switching Protocols"
        await asyncio.sleep(2 * BRIEF_S)
        assert await (await connect(port)).ask() == b""
        live.writer.close()
        await live.writer.wait_closed()
        for _ in range(100):
            if await (await connect(port)).ask() == b"HTTP/1.1 200 OK":
                return
            await asyncio.sleep(0.02)
        pytest.fail("the place of the closed live socket is not free again")


async def test_a_proxy_may_open_more_connections_than_one_client(connect: Connect) -> None:
    async with serving(per_address=1, proxies=frozenset({"127.0.0.0/8"})) as port:
        clients = [await connect(port) for _ in range(3)]
        assert [await client.ask() for client in clients] == [b"HTTP/1.1 200 OK"] * 3


async def test_a_refused_body_is_dropped_only_for_a_moment(connect: Connect) -> None:
    async with serving(linger_s=BRIEF_S) as port:
        client = await connect(port)
        head = b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1000\r\n\r\n"
        assert await client.ask(head + b"x") == b"HTTP/1.1 200 OK"
        assert (await client.end()).endswith(b"ok")


def test_connections_leave_files_for_everything_else() -> None:
    assert affordable(2000, 20_000) == 2000
    assert affordable(2000, 1024) == 1024 - http_guard.RESERVED_FILES
    assert affordable(2000, 256) == http_guard.MIN_CONNECTIONS


def test_the_file_limit_is_raised_as_far_as_it_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _kind: (256, 4096))
    monkeypatch.setattr(resource, "setrlimit", lambda _kind, limits: calls.append(limits))
    assert (raise_file_limit(), calls) == (4096, [(4096, 4096)])
