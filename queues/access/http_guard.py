"""An HTTP protocol for uvicorn with limits on connections and slow requests.

uvicorn waits without limit for a request, and accepts any number of connections; once the process has no file
descriptor left, it serves nobody. This protocol limits connections per address and in total, below the number
of descriptors, and closes a connection whose request head is not complete after a few seconds. At the limit,
the oldest connection without a complete request is closed in favour of a new one, so that idle and slow
clients cannot keep others out.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import resource
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

log = logging.getLogger(__name__)

#: Descriptors reserved for databases, the broker, the cluster and files.
RESERVED_FILES = 400
#: Connections that are allowed even if the limit of open files is lower than RESERVED_FILES.
MIN_CONNECTIONS = 32
LOG_EVERY_S = 10.0
HEAD_TOO_LARGE_RESPONSE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-type: text/plain\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """Limits on connections.

    Parameters
    ----------
    head_s : from the opening, or the first byte of a further request, to the end of its head
    linger_s : how long the body of a request is read (and discarded) after the response; closing at once
        would reset the connection before the client has read the response
    stall_s : how long a client may leave a response unread
    proxies : addresses and networks that forward requests of many clients; "*" for all
    """

    total: int = 2000
    per_address: int = 500
    head_s: float = 5.0
    head_bytes: int = 64 * 1024
    linger_s: float = 2.0
    stall_s: float = 30.0
    proxies: frozenset[str] = frozenset()

    def is_proxy(self, address: str) -> bool:
        """Return whether the address belongs to a proxy."""
        if "*" in self.proxies or address in self.proxies:
            return True
        networks = [ipaddress.ip_network(text) for text in self.proxies if "/" in text]
        return bool(networks) and any(
            ipaddress.ip_address(address) in network for network in networks
        )


def raise_file_limit() -> int:
    """Raise the limit of open files of this process to the hard limit; return the new limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard if hard != resource.RLIM_INFINITY else 1 << 20


def affordable(connections: int, files: int) -> int:
    """Return how many of the wanted connections the limit of open files allows."""
    return max(MIN_CONNECTIONS, min(connections, files - RESERVED_FILES))


@dataclass(slots=True)
class RareLog:
    """Logs at most one line per period, with the number of events since the last one."""

    text: str
    period_s: float = LOG_EVERY_S
    _events: int = 0
    _due_at: float = 0.0

    def note(self, detail: object = "") -> None:
        """Count an event; log it if the last line is old enough."""
        self._events += 1
        now = time.monotonic()
        if now < self._due_at:
            return
        self._due_at = now + self.period_s
        events, self._events = self._events, 0
        log.warning("%s: %d, last %s", self.text, events, detail)


@dataclass(slots=True)
class Connections:
    """The open connections by address, oldest first."""

    limits: ConnectionLimits
    _open: dict[str, dict[asyncio.Transport, GuardedProtocol]] = field(default_factory=dict)
    _refused: RareLog = field(default_factory=lambda: RareLog("connections refused"))

    def __len__(self) -> int:
        return sum(map(len, self._open.values()))

    def admit(self, newcomer: GuardedProtocol) -> bool:
        """Add a connection, closing an idle one if the limit is reached; return False if that was not possible."""
        address = newcomer.address
        has_room = self._make_room_for(address) and self._make_room()
        if has_room:
            self._open.setdefault(address, {})[newcomer.transport] = newcomer
        else:
            self._refused.note(f"from {address}")
        return has_room

    def forget(self, protocol: GuardedProtocol) -> None:
        """Remove a closed connection."""
        by_transport = self._open.get(protocol.address, {})
        by_transport.pop(protocol.transport, None)
        if not by_transport:
            self._open.pop(protocol.address, None)

    def _make_room_for(self, address: str) -> bool:
        """Return whether the address may have one more connection, after closing an idle one of it if needed."""
        if self.limits.is_proxy(address):
            return True
        return len(self._open.get(address, {})) < self.limits.per_address or self._evict(address)

    def _make_room(self) -> bool:
        """Return whether the process may have one more connection, after closing an idle one if needed."""
        if len(self) < self.limits.total:
            return True
        self._sweep()
        if len(self) < self.limits.total:
            return True
        return any(self._evict(address) for address in self._busiest_addresses())

    def _busiest_addresses(self) -> list[str]:
        return sorted(self._open, key=lambda address: -len(self._open[address]))

    def _evict(self, address: str) -> bool:
        """Close the oldest connection of the address without a complete request; return whether there is room."""
        self._sweep(address)
        by_transport = self._open.get(address, {})
        if len(by_transport) < self.limits.per_address and len(self) < self.limits.total:
            return True
        oldest = next((protocol for protocol in by_transport.values() if protocol.is_waiting), None)
        if oldest is None:
            return False
        self.forget(oldest)
        oldest.transport.abort()
        return True

    def _sweep(self, address: str | None = None) -> None:
        """Remove closed WebSocket connections, for which `connection_lost` is not called here."""
        for each_address in [address] if address is not None else list(self._open):
            for protocol in list(self._closed(each_address)):
                self.forget(protocol)

    def _closed(self, address: str) -> Iterator[GuardedProtocol]:
        return (
            protocol
            for transport, protocol in self._open.get(address, {}).items()
            if transport.is_closing()
        )


class GuardedProtocol(HttpToolsProtocol):
    """One connection. `guarded` creates the class for a server."""

    guard: Connections
    transport: asyncio.Transport
    address = ""
    _deadline: asyncio.TimerHandle | None = None
    _stall: asyncio.TimerHandle | None = None
    _is_upgraded = False
    _is_in_head = False
    _is_in_body = False
    _head_bytes = 0

    @property
    def is_waiting(self) -> bool:
        """Return whether the connection has no complete request that still needs a response."""
        if self._is_upgraded or self.transport.get_write_buffer_size():
            return False
        return self._is_in_body or self._is_between_requests

    @property
    def _is_between_requests(self) -> bool:
        is_answered = self.cycle is None or bool(self.cycle.response_complete)
        return is_answered and not self._is_in_body

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept the connection, or close it at the limit."""
        super().connection_made(transport)
        self.address = self.client[0] if self.client else ""
        if self.guard.admit(self):
            self._start_deadline(self.guard.limits.head_s)
        else:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._cancel_deadline()
        self._end_stall()
        self.guard.forget(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse data; limit the size of a request head and the time for it."""
        if self.transport.is_closing():
            return
        super().data_received(data)
        if self._is_upgraded or self.transport.is_closing():
            return
        if self._is_in_head:
            self._head_bytes += len(data)
            if self._head_bytes > self.guard.limits.head_bytes:
                self.transport.write(HEAD_TOO_LARGE_RESPONSE)
                self.transport.close()
        elif self._is_between_requests and self.timeout_keep_alive_task is None:
            # Line feeds between two requests end uvicorn's own timer and begin no head.
            self._start_deadline(self.guard.limits.head_s)

    def handle_websocket_upgrade(self) -> None:
        """Pass the connection to the WebSocket protocol, which has limits of its own."""
        self._is_upgraded = True
        self._cancel_deadline()
        super().handle_websocket_upgrade()

    def pause_writing(self) -> None:
        """Wait for the client to read, for a limited time."""
        super().pause_writing()
        self._end_stall()
        self._stall = self.loop.call_later(self.guard.limits.stall_s, self.transport.abort)

    def resume_writing(self) -> None:
        """End the wait, because the client has read enough."""
        self._end_stall()
        super().resume_writing()

    def _end_stall(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None

    def on_message_begin(self) -> None:
        """Limit the size of the request head that begins, and the time for it."""
        super().on_message_begin()
        self._is_in_head, self._head_bytes = True, 0
        self._start_deadline(self.guard.limits.head_s)

    def on_headers_complete(self) -> None:
        """End the limits of a request head; its body follows."""
        self._is_in_head, self._is_in_body = False, True
        self._cancel_deadline()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """End the time for reading a body to its end."""
        self._is_in_body = False
        self._cancel_deadline()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Go on reading a body for `linger_s` if the response was sent before its end."""
        super().on_response_complete()
        if self._is_in_body:
            self._start_deadline(self.guard.limits.linger_s)

    def _start_deadline(self, seconds: float) -> None:
        """Close the connection after some seconds, unless an earlier deadline is running."""
        if self._deadline is None:
            self._deadline = self.loop.call_later(seconds, self._expire)

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _expire(self) -> None:
        self._deadline = None
        self.transport.abort()


def guarded(limits: ConnectionLimits) -> type[GuardedProtocol]:
    """Return the protocol class for one server."""
    attributes: dict[str, Any] = {"guard": Connections(limits)}
    return type("GuardedHttp", (GuardedProtocol,), attributes)
