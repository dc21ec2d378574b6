"""Every topic of the live socket × every kind of caller."""

from __future__ import annotations

from collections.abc import AsyncIterator

import orjson
import pytest
import pytest_asyncio
from asgiref.sync import sync_to_async
from channels.routing import URLRouter
from channels.sessions import SessionMiddlewareStack
from django.contrib.auth.models import User
from django.db import connections
from rest_framework.test import APIClient

from kaiweb.live import consumers
from kaiweb.live.routing import websocket_urlpatterns
from kaiweb.live.topics import DETAILS, FAMILIES, SINGLES
from tests.kaiweb.api.conftest import token_client
from tests.kaiweb.live.websocket import WebsocketCommunicator

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]
TOPICS = [name for name in FAMILIES if name != DETAILS] + [f"{name}:x" for name in SINGLES]
#: Scopes of a token (None: a log-in) -> whether its owner may subscribe. Reading needs no role.
CALLERS = {
    None: True, "read": True, "admin": True,
    "queues:write": False, "workloads:write": False, "simulate": False,
}  # fmt: skip


@pytest_asyncio.fixture(autouse=True)
async def close_connections() -> AsyncIterator[None]:
    yield
    # The worker thread's connection would keep PostgreSQL from dropping the test database.
    await sync_to_async(connections.close_all)()


@sync_to_async
def ticket_status(scope: str | None) -> tuple[int, str]:
    user, _ = User.objects.get_or_create(username="vera")
    client = APIClient()
    if scope is None:
        client.force_login(user)
    else:
        client = token_client(user, [scope])
    response = client.post("/api/v1/live/tickets")
    return response.status_code, response.json().get("ticket", "")


async def answers(ticket: str) -> dict[str, str]:
    """Return topic -> the type of the first frame that answers a subscription."""
    application = SessionMiddlewareStack(URLRouter(websocket_urlpatterns))
    path = f"/api/v1/live?ticket={ticket}"
    headers = [(b"host", b"testserver")]
    socket = WebsocketCommunicator(
        application, path, headers=headers, subprotocols=[consumers.PROTOCOL]
    )
    await socket.connect(timeout=5)
    frames = {}
    for topic in TOPICS:
        frame = orjson.dumps({"t": "sub", "id": topic, "topic": topic}).decode()
        await socket.send_to(text_data=frame)
        frames[topic] = orjson.loads(await socket.receive_from(timeout=5))["t"]
    await socket.disconnect()
    return frames


async def test_a_topic_is_open_to_whoever_may_read() -> None:
    for scope, may_read in CALLERS.items():
        status, ticket = await ticket_status(scope)
        assert status == (201 if may_read else 403), scope
        if may_read:
            assert await answers(ticket) == dict.fromkeys(TOPICS, "snap"), scope
