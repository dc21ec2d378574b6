"""What hostile clients do. Each attack runs for some seconds in a process of its own and counts what came of it."""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import cycle, islice
from urllib.parse import urlsplit

#: Requests that are sent before their answers are read.
PIPELINED = 64
SENDERS = 24
SLOW_BODIES = 200
IDLE_SOCKETS = 2000
READ_BYTES = 1 << 16
#: The frame that ends a websocket: its code, e.g. 4401, and the reason.
CLOSE_FRAME = re.compile(rb"\x88.(..)", re.DOTALL)
TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where to, a token that may write one subtree only, the version of a queue elsewhere, and a log-in."""

    url: str
    editor_token: str
    edit_tag: str
    cookies: str
    seconds: float

    @property
    def address(self) -> tuple[str, int]:
        parts = urlsplit(self.url)
        return parts.hostname or "", parts.port or 80

    @property
    def host(self) -> str:
        return "{}:{}".format(*self.address)


Counts = Counter[str]
Attack = Callable[[Target], Counts]


def _request(target: Target, line: str, *headers: str, body: str = "") -> bytes:
    lines = [f"{line} HTTP/1.1", f"Host: {target.host}", *headers]
    if body:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return ("\r\n".join(lines) + "\r\n\r\n" + body).encode()


def wrong_tokens(target: Target) -> Counts:
    """API tokens that do not exist"""
    return _flood(
        target, [_request(target, "GET /api/v1/queues", "Authorization: Bearer kai_wrong")]
    )


def other_subtree(target: Target) -> Counts:
    """writes outside the subtree of the token"""
    headers = (f"Authorization: Bearer {target.editor_token}", f"If-Match: {target.edit_tag}")
    body = '{"quota": {"gpu": 99}}'
    return _flood(target, [_request(target, "PATCH /api/v1/queues/theirs", *headers, body=body)])


def forged_origins(target: Target) -> Counts:
    """websockets opened by another site's page in the browser of somebody who is logged in"""
    handshake = (
        "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Protocol: kaiweb.live.v1",
        f"Cookie: {target.cookies}", "Origin: https://evil.example",
    )  # fmt: skip

    async def open_socket(counts: Counts) -> None:
        reader, writer = await asyncio.open_connection(*target.address)
        try:
            writer.write(_request(target, "GET /api/v1/live", *handshake))
            counts["sent"] += 1
            data, close = b"", None
            async with asyncio.timeout(TIMEOUT_S):
                while close is None and (part := await reader.read(READ_BYTES)):
                    data += part
                    close = CLOSE_FRAME.search(data.partition(b"\r\n\r\n")[2])
            counts[f"closed {int.from_bytes(close[1], 'big')}" if close else "not closed"] += 1
        finally:
            writer.transport.abort()

    return _run(target, open_socket, SENDERS)


def oversized_bodies(target: Target) -> Counts:
    """bodies of 3 MiB, and announcements of 10 GiB"""
    sent = b"x" * (3 << 20)
    announced = _request(target, "POST /api/v1/queues", "Content-Length: 10737418240")
    large = _request(target, "POST /api/v1/queues", f"Content-Length: {len(sent)}") + sent
    return _flood(target, [announced, large], pipelined=1)


def bad_requests(target: Target) -> Counts:
    """unauthenticated and malformed requests as fast as one core sends, without waiting for answers"""
    requests = (
        _request(target, "GET /api/v1/workloads", "Authorization: Bearer kai_wrong"),
        _request(target, "GET /api/v1/nothing/here"),
        _request(target, "POST /api/v1/queues", body="{"),
    )
    batch = _batch(requests, PIPELINED)

    async def send_and_leave(counts: Counts) -> None:
        _reader, writer = await asyncio.open_connection(*target.address)
        try:
            writer.write(batch)
            await writer.drain()
            counts["sent"] += PIPELINED
        finally:
            writer.transport.abort()

    return _run(target, send_and_leave, SENDERS)


def broken_http(target: Target) -> Counts:
    """lines that are no HTTP, as fast as one core sends"""
    return _flood(target, [b"\x00\x01 nonsense\r\n\r\n"], pipelined=1)


def slow_bodies(target: Target) -> Counts:
    """bodies of which a byte comes each second"""

    async def drip(counts: Counts) -> None:
        reader, writer = await asyncio.open_connection(*target.address)
        try:
            writer.write(_request(target, "POST /api/v1/queues", "Content-Length: 1000"))
            while not writer.is_closing():
                writer.write(b" ")
                await writer.drain()
                counts["sent"] += 1
                with suppress(TimeoutError):
                    async with asyncio.timeout(1.0):
                        _count_answers(await reader.read(READ_BYTES), counts)
                        return
        finally:
            writer.transport.abort()

    return _run(target, drip, SLOW_BODIES)


def idle_sockets(target: Target) -> Counts:
    """two thousand connections on which nothing is sent"""

    async def idle(counts: Counts) -> None:
        reader, writer = await asyncio.open_connection(*target.address)
        counts["sent"] += 1
        try:
            _count_answers(await reader.read(READ_BYTES), counts)
        finally:
            writer.transport.abort()

    return _run(target, idle, IDLE_SOCKETS)


ATTACKS: dict[str, Attack] = {
    "wrong-tokens": wrong_tokens,
    "other-subtree": other_subtree,
    "forged-origin": forged_origins,
    "oversized": oversized_bodies,
    "slow-bodies": slow_bodies,
    "idle-sockets": idle_sockets,
    "bad-requests": bad_requests,
    "broken-http": broken_http,
}


def _flood(target: Target, requests: Sequence[bytes], *, pipelined: int = PIPELINED) -> Counts:
    """Send requests over and over, many at once on each connection."""
    batch = _batch(requests, pipelined)

    async def send(counts: Counts) -> None:
        # With one request at a time each connection takes the next of them.
        own = batch if pipelined > 1 else requests[counts["connections"] % len(requests)]
        counts["connections"] += 1
        reader, writer = await asyncio.open_connection(*target.address)
        try:
            while True:
                writer.write(own)
                await writer.drain()
                counts["sent"] += pipelined
                answered = 0
                while answered < pipelined:
                    async with asyncio.timeout(TIMEOUT_S):
                        data = await reader.read(READ_BYTES)
                    if not data:
                        return
                    answered += _count_answers(data, counts)
        finally:
            writer.transport.abort()

    return _run(target, send, SENDERS)


def _batch(requests: Sequence[bytes], count: int) -> bytes:
    """Return so many requests in a row, each kind in its turn."""
    return b"".join(islice(cycle(requests), count))


def _count_answers(data: bytes, counts: Counts) -> int:
    """Count answers by status; return how many there are."""
    parts = data.split(b"HTTP/1.1 ")[1:]
    for part in parts:
        counts[part[:3].decode(errors="replace")] += 1
    return len(parts)


def _run(target: Target, client: Callable[[Counts], Awaitable[None]], clients: int) -> Counts:
    counts: Counts = Counter()
    deadline = time.monotonic() + target.seconds

    async def again() -> None:
        while time.monotonic() < deadline:
            try:
                await client(counts)
            except (OSError, TimeoutError):
                counts["broken"] += 1
                await asyncio.sleep(0.05)

    async def run_all() -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(target.seconds):
                await asyncio.gather(*(again() for _ in range(clients)))

    asyncio.run(run_all())
    return counts
