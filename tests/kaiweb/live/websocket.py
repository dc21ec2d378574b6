"""A websocket client for ASGI applications in the same process.

The one of Channels cannot be imported without Daphne, which we do not use.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from asgiref.testing import ApplicationCommunicator


class WebsocketCommunicator(ApplicationCommunicator):
    """Connects, sends and receives text."""

    def __init__(
        self,
        application: Any,
        path: str,
        *,
        headers: list[tuple[bytes, bytes]],
        subprotocols: list[str],
    ) -> None:
        parts = urlsplit(path)
        scope = {
            "type": "websocket",
            "path": parts.path,
            "query_string": parts.query.encode(),
            "headers": headers,
            "subprotocols": subprotocols,
        }
        super().__init__(application, scope)

    async def connect(self, *, timeout: float) -> tuple[bool, str | None]:
        """Return whether the connection was accepted, and with which subprotocol."""
        await self.send_input({"type": "websocket.connect"})
        answer = await self.receive_output(timeout)
        return answer["type"] == "websocket.accept", answer.get("subprotocol")

    async def send_to(self, *, text_data: str) -> None:
        await self.send_input({"type": "websocket.receive", "text": text_data})

    async def receive_from(self, *, timeout: float) -> str:
        answer = await self.receive_output(timeout)
        assert answer["type"] == "websocket.send", answer
        return str(answer["text"])

    async def disconnect(self) -> None:
        await self.send_input({"type": "websocket.disconnect", "code": 1000})
        await self.wait(5)
