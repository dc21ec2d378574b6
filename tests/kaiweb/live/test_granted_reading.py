"""With `KAIWEB_READING=granted` a live connection shows only the own subtrees: in snapshots, deltas, and after resuming."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest
import pytest_asyncio
from asgiref.sync import sync_to_async
from channels.routing import URLRouter
from channels.sessions import SessionMiddlewareStack
from django.contrib.auth.models import User
from django.db import connections

from kaiweb.live import consumers
from kaiweb.live.routing import websocket_urlpatterns
from kaiweb.live.topics import DETAILS, FAMILIES, SINGLES
from kube.resources import NODES, PODGROUPS, PODS, QUEUES
from queues.models import Role, RoleBinding
from tests.kaiweb.api.conftest import token_client
from tests.kaiweb.api.streams.test_event_stream import Stream
from tests.kaiweb.live.test_live import Browser, consume
from tests.kaiweb.live.websocket import WebsocketCommunicator
from tests.queues.cluster_objects import a_group, a_node, a_pod, a_queue, listed, modified

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]
TOPICS = [name for name in FAMILIES if name != DETAILS]
KEYS = {"queue": "product", "node": "n1", DETAILS: "default/in-product"}


@pytest_asyncio.fixture(autouse=True)
async def a_cluster(settings: Any) -> AsyncIterator[None]:
    settings.KAIWEB_READING = "granted"
    groups = [a_group(f"in-{queue}", queue=queue) for queue in ("physics", "product")]
    pod = a_pod("in-product-0", group="in-product", node="n1", gpus=1, phase="Running")
    await consume(
        listed(
            QUEUES, a_queue("science"), a_queue("physics", parent="science"), a_queue("product")
        ),
        listed(NODES, a_node("n1")),
        listed(PODGROUPS, *groups),
        listed(PODS, pod),
    )
    yield
    # The worker thread's connection would keep PostgreSQL from dropping the test database.
    await sync_to_async(connections.close_all)()


@sync_to_async
def ticket_of(subtree: str) -> tuple[str, str]:
    """Return a ticket and a token of a viewer of a subtree."""
    user, _ = User.objects.get_or_create(username="tess")
    RoleBinding.objects.all().delete()
    RoleBinding.objects.create(user=user, role=Role.VIEWER, subtree=subtree)
    client = token_client(user, ["read"])
    header: str = client._credentials["HTTP_AUTHORIZATION"]
    return client.post("/api/v1/live/tickets").json()["ticket"], header.removeprefix("Bearer ")


async def connect(subtree: str) -> Browser:
    ticket, _token = await ticket_of(subtree)
    socket = WebsocketCommunicator(
        SessionMiddlewareStack(URLRouter(websocket_urlpatterns)),
        f"/api/v1/live?ticket={ticket}",
        headers=[(b"host", b"testserver")],
        subprotocols=[consumers.PROTOCOL],
    )
    assert (await socket.connect(timeout=5))[0]
    return Browser(socket)


async def test_no_snapshot_names_what_is_outside() -> None:
    browser = await connect("science")
    for topic in [*TOPICS, *(f"{single}:{KEYS[single]}" for single in SINGLES)]:
        frame = await browser.subscribe(topic)
        assert frame["t"] == "snap"
        assert "product" not in orjson.dumps(frame["items"]).decode(), topic
        if topic in ("queues", "workloads", "nodes", "cluster"):
            assert frame["items"]
    await browser.socket.disconnect()


async def test_a_delta_has_no_change_outside() -> None:
    browser = await connect("science")
    await browser.subscribe("queues")
    await consume(modified(QUEUES, a_queue("product", 7, gpu={"quota": 7})))
    await consume(modified(QUEUES, a_queue("physics", 8, parent="science", gpu={"quota": 8})))
    delta = await browser.hear()
    assert ([entry["k"] for entry in delta["up"]], delta["del"]) == (["physics", "science"], [])
    await browser.socket.disconnect()


async def test_resuming_is_answered_with_a_snapshot() -> None:
    browser = await connect("science")
    first = await browser.subscribe("queues")
    await consume(modified(QUEUES, a_queue("product", 9, gpu={"quota": 9})))
    again = await browser.subscribe("queues", resume={"epoch": first["epoch"], "seq": first["seq"]})
    assert (again["t"], again["reason"]) == ("reset", "rights")
    assert {item["k"] for item in (await browser.hear())["items"]} == {"science", "physics"}
    await browser.socket.disconnect()


async def test_a_queue_that_moves_away_leaves_open_connections(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(consumers, "RIGHTS_CHECK_S", 0.05)
    browser = await connect("science")
    await browser.subscribe("queues")
    await consume(modified(QUEUES, a_queue("physics", 10, parent="product")))
    frames = [await browser.hear() for _ in range(2)]
    while not (frames[-2]["t"] == "reset" and frames[-1]["t"] == "snap"):
        frames.append(await browser.hear())
    assert [item["k"] for item in frames[-1]["items"]] == ["science"]
    await browser.socket.disconnect()


async def test_the_event_stream_shows_the_same() -> None:
    _ticket, token = await ticket_of("science")
    stream = Stream("topic=queues", token)
    body = b""
    while b"event: snap" not in body:
        body += (await asyncio.wait_for(stream.messages.get(), 5)).get("body", b"")
    assert b"physics" in body
    assert b"product" not in body
    stream.gone.set()
    await stream.task
