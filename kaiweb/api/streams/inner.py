"""Call an ASGI application and collect its answer, instead of passing it on to the client."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Answer:
    """The messages of an answer."""

    messages: tuple[Mapping[str, Any], ...]

    @property
    def status(self) -> int:
        return int(self.messages[0]["status"])

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.messages[1:])

    async def pass_on(self, send: Send) -> None:
        """Send the answer to the client."""
        for message in self.messages:
            await send(message)


async def call(app: App, scope: Scope) -> Answer:
    """Send the request of a scope, without its body, to an application."""
    messages: list[Mapping[str, Any]] = []

    requests = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> Mapping[str, Any]:
        # After the request Django waits here for the client to go, until it has answered.
        return requests.pop() if requests else await asyncio.Future[Mapping[str, Any]]()

    async def send(message: Mapping[str, Any]) -> None:
        messages.append(message)

    await app({**scope}, receive, send)
    return Answer(tuple(messages))


async def until_disconnect(receive: Receive) -> None:
    """Return when the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
