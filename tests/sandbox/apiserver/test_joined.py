"""An answer leaves the server in one write, and no part of it is held back."""

from __future__ import annotations

import asyncio

from sandbox.apiserver.wire.joined import JoiningTransport

HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n"


class Written:
    """A transport that notes what is written to it."""

    def __init__(self) -> None:
        self.writes: list[bytes] = []
        self.is_closed = False

    def write(self, data: bytes) -> None:
        self.writes.append(data)

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True


async def test_head_and_body_are_one_write() -> None:
    below = Written()
    transport = JoiningTransport(below, asyncio.get_running_loop())
    transport.write(HEAD)
    transport.write(b"{}")
    await asyncio.sleep(0)
    assert below.writes == [HEAD + b"{}"]


async def test_a_head_without_a_body_is_written_when_the_loop_turns() -> None:
    below = Written()
    transport = JoiningTransport(below, asyncio.get_running_loop())
    transport.write(HEAD)
    assert below.writes == []
    await asyncio.sleep(0)
    assert below.writes == [HEAD]


async def test_a_head_is_written_before_the_connection_is_closed() -> None:
    below = Written()
    transport = JoiningTransport(below, asyncio.get_running_loop())
    transport.write(HEAD)
    transport.close()
    assert (below.writes, below.is_closed) == ([HEAD], True)
