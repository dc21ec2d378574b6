"""Short exchanges: lengths, chunks, interim answers, and connections that went away."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from kube.wire import Endpoint, Wire, WireError

Serve = Callable[..., Wire]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Start a server that gives each connection a list of raw answers, then closes it."""
    listener = socket.create_server(("127.0.0.1", 0))
    wires: list[Wire] = []
    threads: list[threading.Thread] = []

    def play(connections: tuple[list[bytes], ...]) -> None:
        for answers in connections:
            connection, _ = listener.accept()
            with connection:
                for answer in answers:
                    if not connection.recv(65536):
                        break
                    for part in answer.split(b"|"):
                        connection.sendall(part)

    def start(*connections: list[bytes]) -> Wire:
        thread = threading.Thread(target=play, args=(connections,), daemon=True)
        thread.start()
        threads.append(thread)
        wire = Wire(Endpoint(host="127.0.0.1", port=listener.getsockname()[1], tls=None))
        wires.append(wire)
        return wire

    yield start
    for wire in wires:
        wire.close()
    for thread in threads:
        thread.join(timeout=5)
    listener.close()


def ask(wire: Wire) -> tuple[int, bytes]:
    answer = wire.exchange("POST", "/x", {"Accept": "*/*"}, b"{}", 5.0)
    return answer.status, answer.data


def test_length_may_come_in_pieces_and_the_connection_is_kept(serve: Serve) -> None:
    first = b"HTTP/1.1 201 Created\r\nContent-Le|ngth: 5\r\n\r\nhe|llo"
    wire = serve([first, b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"])
    assert ask(wire) == (201, b"hello")
    assert ask(wire) == (200, b"ok")


def test_chunks_are_joined(serve: Serve) -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    wire = serve([head + b"3\r\nabc\r\n|2;x=y\r\nde\r|\n0\r\n\r\n"])
    assert ask(wire) == (200, b"abcde")


def test_an_interim_answer_is_skipped(serve: Serve) -> None:
    wire = serve([b"HTTP/1.1 100 Continue\r\n\r\n|HTTP/1.1 204 No Content\r\n\r\n"])
    assert ask(wire) == (204, b"")


def test_closed_connection_is_replaced(serve: Serve) -> None:
    good = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n"
    wire = serve([good + b"a"], [good + b"b"], [good[:-2] + b"Connection: close\r\n\r\nc"])
    assert ask(wire) == (200, b"a")
    threading.Event().wait(0.05)  # the close must have arrived: that is what is tested
    assert ask(wire) == (200, b"b")
    threading.Event().wait(0.05)
    assert ask(wire) == (200, b"c")


def test_answer_without_length_ends_with_the_connection(serve: Serve) -> None:
    wire = serve([b"HTTP/1.1 200 OK\r\n\r\nall |of it"])
    assert ask(wire) == (200, b"all of it")


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort", "in the middle"),
        (b"SSH-2.0-thing\r\n\r\n", "status line"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "size of a chunk"),
    ],
)
def test_a_malformed_answer_raises_an_error_that_quotes_it(
    serve: Serve, answer: bytes, problem: str
) -> None:
    with pytest.raises(WireError, match=problem):
        ask(serve([answer]))


def test_a_line_break_in_a_header_is_refused(serve: Serve) -> None:
    wire = serve()  # nothing is sent, so the server waits for no connection
    with pytest.raises(WireError, match="line break"):
        wire.exchange("GET", "/x\nEvil: 1", {}, None, 5.0)
