"""A proxy between kaiweb and the API server that can be slow, overloaded or silent.

It reads the heads of requests and passes everything else on. The processes speak plain HTTP with it, so that only one
of the two ways costs encryption; nothing leaves this machine.
"""

from __future__ import annotations

import asyncio
import json
import re
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from random import Random
from urllib.parse import urlsplit

from tests.real_cluster.cluster import RealCluster, free_ports

BUSY_BODY = json.dumps(
    {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "reason": "TooManyRequests",
        "message": "the server has received too many requests (a fault of the test)",
        "details": {"retryAfterSeconds": 1},
        "code": 429,
    }
).encode()
BUSY = (
    b"HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/json\r\nRetry-After: 1\r\n"
    + f"Content-Length: {len(BUSY_BODY)}\r\n\r\n".encode()
    + BUSY_BODY
)
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
WATCH = re.compile(rb"[?&]watch=(1|true)[& ]")
CHUNK = 1 << 16


@dataclass(slots=True)
class Proxy:
    """The proxy and its faults, which other threads set.

    Attributes
    ----------
    delay_s : before each request is passed on
    busy_part : of the requests are answered with 429, from 0 to 1
    """

    cluster: RealCluster
    port: int
    delay_s: float = 0.0
    busy_part: float = 0.0
    _random: Random = field(default_factory=lambda: Random(1))
    _connections: set[_Connection] = field(default_factory=set)
    _loop: asyncio.AbstractEventLoop | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def silence_watches(self) -> None:
        """Pass nothing on to the watches that are open now, without closing them."""
        for connection in list(self._connections):
            if connection.is_watch:
                connection.is_silent = True

    def cut(self) -> None:
        """Close all connections, as a load balancer does that restarts."""
        assert self._loop is not None
        for connection in list(self._connections):
            self._loop.call_soon_threadsafe(connection.abort)

    def is_busy(self) -> bool:
        """Return whether the next request is refused."""
        return self.busy_part > 0 and self._random.random() < self.busy_part

    async def serve(self, is_up: threading.Event, stop: asyncio.Event) -> None:
        """Serve until `stop` is set."""
        self._loop = asyncio.get_running_loop()
        server = await asyncio.start_server(self._accept, "127.0.0.1", self.port, limit=1 << 20)
        is_up.set()
        async with server:
            await stop.wait()
        for connection in list(self._connections):
            connection.abort()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = _Connection(self, reader, writer)
        self._connections.add(connection)
        try:
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                await connection.pass_requests()
        finally:
            self._connections.discard(connection)
            connection.abort()


@dataclass(slots=True, eq=False)
class _Connection:
    """One connection of a client, with its own connection to the server."""

    proxy: Proxy
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    is_watch: bool = False
    is_silent: bool = False
    _server: asyncio.StreamWriter | None = None
    _answers: asyncio.Task[None] | None = None

    async def pass_requests(self) -> None:
        while True:
            head = await self.reader.readuntil(b"\r\n\r\n")
            length = LENGTH.search(head)
            body = await self.reader.readexactly(int(length[1])) if length else b""
            self.is_watch = bool(WATCH.search(head.partition(b"\r\n")[0]))
            if self.proxy.is_busy():
                self.writer.write(BUSY)
                await self.writer.drain()
                continue
            if self.proxy.delay_s:
                await asyncio.sleep(self.proxy.delay_s)
            server = self._server or await self._connect()
            server.write(head + body)
            await server.drain()

    async def _connect(self) -> asyncio.StreamWriter:
        address = urlsplit(self.proxy.cluster.url)
        trust = ssl.create_default_context(cafile=str(self.proxy.cluster.ca_file))
        reader, writer = await asyncio.open_connection(address.hostname, address.port, ssl=trust)
        self._server = writer
        self._answers = asyncio.create_task(self._pass_answers(reader))
        return writer

    async def _pass_answers(self, reader: asyncio.StreamReader) -> None:
        try:
            with suppress(OSError):
                while data := await reader.read(CHUNK):
                    if not self.is_silent:
                        self.writer.write(data)
                        await self.writer.drain()
        finally:
            if not self.is_silent:
                self.writer.transport.abort()

    def abort(self) -> None:
        self.writer.transport.abort()
        if self._server is not None:
            self._server.transport.abort()
        if self._answers is not None:
            self._answers.cancel()


@contextmanager
def running_proxy(cluster: RealCluster) -> Iterator[Proxy]:
    """Serve a proxy of a cluster in a thread."""
    (port,) = free_ports(1)
    proxy = Proxy(cluster, port)
    is_up = threading.Event()
    handles: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def serve() -> None:
        stop = asyncio.Event()
        handles.append((asyncio.get_running_loop(), stop))
        await proxy.serve(is_up, stop)

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True, name="proxy")
    thread.start()
    assert is_up.wait(10), "the proxy did not start"
    try:
        yield proxy
    finally:
        loop, stop = handles[0]
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)
