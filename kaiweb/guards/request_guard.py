"""ASGI middleware in front of Django: limits for requests before their sender is known.

Django spools any body to a file before it reads the request, and runs any number of requests at once. Here the
size of a body is limited, also without an announced length, and so is the time in which it must arrive. The body
is read before the request takes one of the slots, so that a slow body occupies none.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import orjson

from kaiweb import request_id
from kaiweb.api.errors import MEDIA_TYPE, Problem
from queues.access.http_guard import RareLog
from queues.access.rate_limits import AT_ONCE, RateLimit

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

#: Log-ins that make work before anybody is known.
LOG_INS = frozenset({("POST", "/login"), ("POST", "/login/kubernetes")})
#: Answered under any load: the supervisor and probes judge the process by it.
ALWAYS_ANSWERED = frozenset({"/healthz"})
API = "/api/"


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLimits:
    """The limits of requests.

    Parameters
    ----------
    body_bytes : the largest body
    bodies_bytes : the largest sum of all bodies that are being received
    body_s : how long a body may take to arrive
    requests : how many are processed at once, each in a thread of its own
    requests_per_address : the same for one address
    logins : log-ins at once; only two have their password hashed, but each refusal is a page to render
    logins_per_address : the same for one address
    """

    body_bytes: int = 2 * 1024 * 1024
    bodies_bytes: int = 64 * 1024 * 1024
    body_s: float = 15.0
    requests: int = 128
    requests_per_address: int = 96
    logins: int = 8
    logins_per_address: int = 2


class DisconnectedError(Exception):
    """The client has gone before its body was complete."""


class RequestGuard:
    """Wraps an ASGI application; other protocols than HTTP pass unchanged."""

    def __init__(self, app: App, limits: RequestLimits | None = None) -> None:
        self._app = app
        self._limits = limits or RequestLimits()
        #: How many requests run now, by each counter of `_bounds`.
        self._running: Counter[tuple[str, ...]] = Counter()
        self._received = 0
        self._refused = RareLog("requests refused")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            body = await self._body(scope, receive)
            with self._slot(scope) as headers:
                await self._app(scope, _replayed(body, receive), _with_headers(send, headers))
        except DisconnectedError:
            return
        except Problem as problem:
            self._refused.note(f"{problem.slug} from {_address(scope)}")
            await _refuse(scope, send, problem)

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        """Return the body.

        Raises
        ------
        Problem : it is too large or too slow, or too much is being received already
        DisconnectedError : the client went away
        """
        announced = dict(scope["headers"]).get(b"content-length", b"")
        if announced.isdigit() and (
            len(announced) > 18 or int(announced) > self._limits.body_bytes
        ):
            raise self._too_large()
        body = bytearray()
        try:
            async with asyncio.timeout(self._limits.body_s):
                while await self._add_part(body, receive):
                    pass
        except TimeoutError as error:
            raise Problem(
                "request-timeout",
                f"the body was not complete after {self._limits.body_s:g} s",
                headers={"Connection": "close"},
            ) from error
        finally:
            self._received -= len(body)
        return bytes(body)

    async def _add_part(self, body: bytearray, receive: Receive) -> bool:
        """Add the next part of the body; return whether there is more."""
        message = await receive()
        if message["type"] == "http.disconnect":
            raise DisconnectedError
        part = message.get("body", b"")
        if len(body) + len(part) > self._limits.body_bytes:
            raise self._too_large()
        if self._received + len(part) > self._limits.bodies_bytes:
            raise Problem(
                "overloaded", "too many large requests at once", headers={"Retry-After": "1"}
            )
        self._received += len(part)
        body += part
        return bool(message.get("more_body"))

    def _too_large(self) -> Problem:
        return Problem(
            "payload-too-large", f"expected a body of at most {self._limits.body_bytes} bytes"
        )

    @contextmanager
    def _slot(self, scope: Scope) -> Iterator[Mapping[str, str]]:
        """Take a slot among the running requests; yield the headers that say how many are left.

        Raises
        ------
        Problem : no slot is free
        """
        bounds = [] if scope["path"] in ALWAYS_ANSWERED else list(self._bounds(scope))
        for key, allowed in bounds:
            if self._running[key] >= allowed:
                raise Problem(
                    "overloaded" if key == ("in all",) else "rate-limited",
                    f"more than {allowed} requests at once: {' '.join(key)}; try again in a second",
                    headers=_limit(key, allowed).refusal_headers(1),
                )
        self._running.update(key for key, _allowed in bounds)
        try:
            yield self._headers(scope) if bounds else {}
        finally:
            self._running.subtract(key for key, _allowed in bounds)
            self._running += Counter()  # removes zero counts

    def _headers(self, scope: Scope) -> Mapping[str, str]:
        """Return how many requests of the same address may run beside this one, for answers of the API."""
        if not scope["path"].startswith(API):
            return {}
        key, allowed = ("from", _address(scope)), self._limits.requests_per_address
        return _limit(key, allowed).headers(allowed - self._running[key])

    def _bounds(self, scope: Scope) -> Iterator[tuple[tuple[str, ...], int]]:
        """Yield the counters of the request, each with the number that may run at once."""
        address, limits = _address(scope), self._limits
        if (scope["method"], scope["path"]) in LOG_INS:
            yield ("log-ins", "from", address), limits.logins_per_address
            yield ("log-ins",), limits.logins
        yield ("from", address), limits.requests_per_address
        yield ("in all",), limits.requests


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return client[0] if client else ""


def _limit(key: tuple[str, ...], allowed: int) -> RateLimit:
    """Return the limit of a counter of `_bounds`; its name does not repeat the address."""
    name = {"from": "address", "log-ins": "log-ins", "in all": "server"}[key[0]]
    return RateLimit(name=name, quota=allowed, unit=AT_ONCE)


def _with_headers(send: Send, headers: Mapping[str, str]) -> Send:
    """Return a `send` that adds headers to the answer, unless it has them."""
    if not headers:
        return send

    async def extended(message: Mapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            present = {name.lower() for name, _value in message["headers"]}
            added = [
                (name.lower().encode(), value.encode())
                for name, value in headers.items()
                if name.lower().encode() not in present
            ]
            message = {**message, "headers": [*message["headers"], *added]}
        await send(message)

    return extended


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that returns the body in one part, then the further messages of the client."""
    parts = [body]

    async def again() -> Mapping[str, Any]:
        if parts:
            return {"type": "http.request", "body": parts.pop(), "more_body": False}
        return await receive()

    return again


async def _refuse(scope: Scope, send: Send, problem: Problem) -> None:
    """Answer with a problem document below /api, elsewhere with a line of text."""
    refusal_id = uuid.uuid4().hex
    request_id.current.set(refusal_id)
    if scope["path"].startswith(API):
        kind, body = MEDIA_TYPE, orjson.dumps(problem.body(scope["path"]))
    else:
        kind, body = "text/plain; charset=utf-8", problem.detail.encode()
    headers: Mapping[str, str] = {
        "Content-Type": kind,
        "Content-Length": str(len(body)),
        "Cache-Control": "no-store",
        request_id.HEADER: refusal_id,
        **problem.headers,
    }
    raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": problem.status, "headers": raw})
    await send({"type": "http.response.body", "body": body})
