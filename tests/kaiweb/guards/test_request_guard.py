"""Bodies and numbers of requests are bounded before Django sees them."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from kaiweb.guards.request_guard import RequestGuard, RequestLimits

LIMITS = RequestLimits(
    body_bytes=10, bodies_bytes=15, body_s=0.1, requests=3, requests_per_address=2
)


class App:
    """Remembers the bodies it received; optionally waits before it answers."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.goes_on = asyncio.Event()
        self.goes_on.set()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        message = await receive()
        assert not message["more_body"]
        self.bodies.append(message["body"])
        await self.goes_on.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})


class Exchange:
    """One request whose parts come from a queue."""

    def __init__(
        self,
        guard: RequestGuard,
        *,
        method: str = "GET",
        path: str = "/api/v1/x",
        address: str = "a",
        length: str = "",
    ) -> None:
        headers = [(b"content-length", length.encode())] if length else []
        self._scope = {
            "type": "http", "method": method, "path": path, "client": (address, 1), "headers": headers,
        }  # fmt: skip
        self._parts: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.sent: list[dict[str, Any]] = []
        self._task = asyncio.create_task(guard(self._scope, self._parts.get, self._send))

    async def _send(self, message: dict[str, Any]) -> None:
        self.sent.append(message)

    def part(self, body: bytes, *, more: bool = False) -> Exchange:
        self._parts.put_nowait({"type": "http.request", "body": body, "more_body": more})
        return self

    def leave(self) -> Exchange:
        self._parts.put_nowait({"type": "http.disconnect"})
        return self

    async def status(self) -> int:
        await self._task
        return int(self.sent[0]["status"])

    async def ended(self) -> None:
        await self._task

    def problem(self) -> dict[str, Any]:
        assert (b"content-type", b"application/problem+json") in self.sent[0]["headers"]
        document: dict[str, Any] = orjson.loads(self.sent[1]["body"])
        assert dict(self.sent[0]["headers"])[b"request-id"].decode() == document["requestId"]
        return document


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_the_body_reaches_the_application_in_one_part() -> None:
    app = App()
    exchange = Exchange(RequestGuard(app, LIMITS)).part(b"abc", more=True).part(b"de")
    assert await exchange.status() == 200
    assert app.bodies == [b"abcde"]


@pytest.mark.parametrize("length", ["11", "9" * 40])
async def test_an_announced_length_is_refused_before_anything_is_read(length: str) -> None:
    app = App()
    exchange = Exchange(RequestGuard(app, LIMITS), length=length)
    assert await exchange.status() == 413
    assert exchange.problem()["detail"] == "expected a body of at most 10 bytes"
    assert app.bodies == []


async def test_parts_without_an_announced_length_are_counted() -> None:
    app = App()
    exchange = Exchange(RequestGuard(app, LIMITS)).part(b"123456", more=True)
    assert await exchange.part(b"12345", more=True).status() == 413
    assert exchange.problem()["type"] == "https://kaiweb.dev/problems/payload-too-large"
    assert app.bodies == []


async def test_a_body_that_does_not_come_is_given_up() -> None:
    exchange = Exchange(RequestGuard(App(), LIMITS)).part(b"1", more=True)
    assert await exchange.status() == 408
    assert (b"connection", b"close") in exchange.sent[0]["headers"]


async def test_all_bodies_together_are_bounded() -> None:
    guard = RequestGuard(App(), LIMITS)
    first = Exchange(guard).part(b"12345678", more=True)
    await settle()
    assert await Exchange(guard, address="b").part(b"12345678").status() == 503
    assert await first.part(b"").status() == 200
    assert await Exchange(guard, address="b").part(b"12345678").status() == 200


async def test_a_client_that_leaves_is_forgotten() -> None:
    app = App()
    exchange = Exchange(RequestGuard(app, LIMITS)).part(b"1", more=True).leave()
    await exchange.ended()
    assert (exchange.sent, app.bodies) == ([], [])


async def test_the_number_of_requests_is_bounded_for_an_address_and_in_all() -> None:
    app = App()
    app.goes_on.clear()
    guard = RequestGuard(app, LIMITS)
    running = [Exchange(guard).part(b"") for _ in range(2)]
    await settle()
    third = Exchange(guard).part(b"")
    assert await third.status() == 429
    assert third.problem()["type"] == "https://kaiweb.dev/problems/rate-limited"
    for header in (
        (b"retry-after", b"1"),
        (b"ratelimit-policy", b'"address";q=2;qu="concurrent-requests"'),
        (b"ratelimit", b'"address";r=0;t=1'),
    ):
        assert header in third.sent[0]["headers"]
    running.append(Exchange(guard, address="b").part(b""))
    await settle()
    assert await Exchange(guard, address="c").part(b"").status() == 503
    app.goes_on.set()
    assert [await answer_.status() for answer_ in running] == [200] * 3
    last = Exchange(guard).part(b"")
    assert await last.status() == 200
    assert (b"ratelimit", b'"address";r=1') in last.sent[0]["headers"]
    page = Exchange(guard, path="/queues").part(b"")
    assert (await page.status(), page.sent[0]["headers"]) == (200, [])


async def test_log_ins_have_few_places_so_that_other_requests_find_one() -> None:
    app = App()
    app.goes_on.clear()
    guard = RequestGuard(app, RequestLimits(requests=9, logins=2, logins_per_address=1))

    def log_in(address: str) -> Exchange:
        return Exchange(guard, method="POST", path="/login", address=address).part(b"")

    running = [log_in("a"), log_in("b")]
    await settle()
    assert [await log_in(address).status() for address in "aabc"] == [429] * 4
    others = [Exchange(guard, path="/login").part(b""), Exchange(guard).part(b"")]
    await settle()
    app.goes_on.set()
    assert [await answer_.status() for answer_ in (*running, *others, log_in("a"))] == [200] * 5


async def test_slow_bodies_take_no_place_and_liveness_is_always_answered() -> None:
    app = App()
    guard = RequestGuard(app, LIMITS)
    slow = [Exchange(guard).part(b"1", more=True) for _ in range(9)]
    await settle()
    assert await Exchange(guard).part(b"").status() == 200
    app.goes_on.clear()
    busy = [Exchange(guard, address=name).part(b"") for name in "aab"]
    await settle()
    alive = Exchange(guard, path="/healthz").part(b"")
    app.goes_on.set()
    assert await alive.status() == 200
    assert [await answer_.status() for answer_ in (*busy, *slow)] == [200] * 3 + [408] * 9


async def test_pages_are_refused_with_a_line_of_text() -> None:
    exchange = Exchange(RequestGuard(App(), LIMITS), path="/login", length="11")
    assert await exchange.status() == 413
    assert exchange.sent[1]["body"] == b"expected a body of at most 10 bytes"


async def test_live_sockets_pass() -> None:
    scopes: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        scopes.append(scope)

    await RequestGuard(app, LIMITS)({"type": "websocket"}, None, None)  # type: ignore[arg-type]
    assert scopes == [{"type": "websocket"}]
