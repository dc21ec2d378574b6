"""The live socket end to end in one process: database, hub, consumer and the in-memory layer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest
import pytest_asyncio
from asgiref.sync import sync_to_async
from channels.routing import URLRouter
from channels.sessions import SessionMiddlewareStack
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connections
from django.test import Client
from django.utils import timezone

from kaiweb.live import consumers
from kaiweb.live import sockets as live_sockets
from kaiweb.live.routing import websocket_urlpatterns
from kaiweb.live.topics import Topic
from kube.resources import NODES, PODGROUPS, PODS, QUEUES
from queues import live
from queues.access import tokens
from queues.mirror.feed import Message, Mirror
from queues.mirror.kinds import KINDS
from queues.mirror.writer import Writer
from queues.models import LiveChange, PodGroup, Role, RoleBinding
from tests.kaiweb.live.websocket import WebsocketCommunicator
from tests.queues.cluster_objects import (
    a_group,
    a_node,
    a_pod,
    a_queue,
    added,
    deleted,
    listed,
    modified,
)

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]
NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
application = SessionMiddlewareStack(URLRouter(websocket_urlpatterns))


@sync_to_async
def consume(*messages: Message) -> None:
    Mirror(KINDS, Writer(sleep=lambda _s: None), now=lambda: NOON).consume(messages)


@sync_to_async
def logged_in_cookie(name: str) -> str:
    user, _created = User.objects.get_or_create(username=name)
    browser = Client()
    browser.force_login(user)
    return f"{settings.SESSION_COOKIE_NAME}={browser.cookies[settings.SESSION_COOKIE_NAME].value}"


class Browser:
    """A client that speaks the protocol."""

    def __init__(self, socket: WebsocketCommunicator) -> None:
        self.socket = socket

    async def say(self, **frame: Any) -> None:
        await self.socket.send_to(text_data=orjson.dumps(frame).decode())

    async def hear(self) -> dict[str, Any]:
        frame: dict[str, Any] = orjson.loads(await self.socket.receive_from(timeout=5))
        return frame

    async def subscribe(self, topic: str, **more: Any) -> dict[str, Any]:
        await self.say(t="sub", id="1", topic=topic, **more)
        return await self.hear()


Connect = Callable[..., Any]


@pytest_asyncio.fixture
async def connect() -> AsyncIterator[Connect]:
    sockets: list[WebsocketCommunicator] = []

    async def open_socket(
        *,
        cookie: str | None = None,
        origin: str = "http://testserver",
        host: str = "testserver",
        user: str = "ada",
        proto: str = "",
        ticket: str = "",
        protocol: str = consumers.PROTOCOL,
    ) -> Browser:
        headers = [(b"host", host.encode()), (b"origin", origin.encode())]
        if proto:
            headers.append((b"x-forwarded-proto", proto.encode()))
        if cookie is None and not ticket:
            cookie = await logged_in_cookie(user)
        if cookie:
            headers.append((b"cookie", cookie.encode()))
        path = "/api/v1/live" + (f"?ticket={ticket}" if ticket else "")
        socket = WebsocketCommunicator(application, path, headers=headers, subprotocols=[protocol])
        is_open, _protocol = await socket.connect(timeout=5)
        assert is_open
        sockets.append(socket)
        return Browser(socket)

    yield open_socket
    for socket in sockets:
        await socket.disconnect()
    # The worker thread's connection would keep PostgreSQL from dropping the test database.
    await sync_to_async(connections.close_all)()


async def close_code(browser: Browser) -> int:
    message = await browser.socket.receive_output(timeout=5)
    assert message["type"] == "websocket.close"
    return int(message["code"])


async def test_hello_is_answered_with_the_limits(connect: Connect) -> None:
    browser = await connect()
    await browser.say(t="hello", client="test", locale="en")
    welcome = await browser.hear()
    assert (welcome["t"], welcome["hb"], welcome["limits"]) == (
        "welcome", 5, {"subs": 32, "unacked": 64, "intervalMs": 250},
    )  # fmt: skip


async def test_a_snapshot_then_chained_deltas(connect: Connect) -> None:
    await consume(listed(QUEUES, a_queue("a", 1), a_queue("b", 2)))
    browser = await connect()
    snap = await browser.subscribe("queues")
    assert (snap["t"], snap["part"], snap["of"]) == ("snap", 1, 1)
    assert [item["k"] for item in snap["items"]] == ["a", "b"]
    await consume(modified(QUEUES, a_queue("a", 3, gpu={"quota": 4})))
    first = await browser.hear()
    assert (first["t"], first["prev"]) == ("delta", snap["seq"])
    assert [(change["k"], change["set"]["quota"]) for change in first["up"]] == [("a", {"gpu": 4})]
    await consume(deleted(QUEUES, a_queue("b", 4)))
    second = await browser.hear()
    assert (second["prev"], second["del"], second["up"]) == (first["seq"], ["b"], [])


async def test_a_pod_reaches_its_workload_its_node_and_the_cluster(connect: Connect) -> None:
    await consume(listed(QUEUES, a_queue("team", 1)), listed(NODES, a_node("n1", 2)))
    await consume(added(PODGROUPS, a_group("g", 3)), added(PODS, a_pod("p", 4, group="g", gpus=2)))
    browser = await connect()
    for number, topic in enumerate(("workload:default/g", "node:n1", "cluster")):
        await browser.say(t="sub", id=str(number), topic=topic)
        assert (await browser.hear())["t"] == "snap"
    await consume(modified(PODS, a_pod("p", 5, group="g", gpus=2, node="n1", phase="Running")))
    heard: dict[str, Any] = {}
    while len(heard) < 3:
        frame = await browser.hear()
        heard[frame["id"]] = frame["up"][0]["set"]
    assert (heard["0"]["state"], heard["0"]["podList"][0]["devices"]) == ("running", [0, 1])
    assert [cell["state"] for cell in heard["1"]["devices"]][:3] == ["whole", "whole", "free"]
    assert heard["1"]["devices"][0]["holders"][0]["queue"] == "team"
    assert heard["2"]["gpus"] == {"total": 8, "allocated": 2, "free": 6, "unusable": 0}


async def test_a_filter_lets_rows_in_and_out(connect: Connect) -> None:
    await consume(listed(QUEUES, a_queue("top", 1), a_queue("team", 2, parent="top")))
    await consume(
        added(PODGROUPS, a_group("g", 3)), added(PODGROUPS, a_group("x", 4, queue="other"))
    )
    browser = await connect()
    params = {"queue": "top", "subtree": True, "state": ["pending"]}
    snap = await browser.subscribe("workloads", params=params)
    assert [item["k"] for item in snap["items"]] == ["default/g"]
    await consume(added(PODS, a_pod("p", 5, group="g", node="n", phase="Running")))
    delta = await browser.hear()
    assert (delta["up"], delta["del"]) == ([], ["default/g"])


async def test_a_client_resumes_without_a_snapshot_and_gets_what_it_missed(
    connect: Connect,
) -> None:
    await consume(listed(QUEUES, a_queue("a", 1), a_queue("b", 2)))
    first = await connect()
    snap = await first.subscribe("queues")
    await first.socket.disconnect()
    await consume(modified(QUEUES, a_queue("a", 3, parent="b")), deleted(QUEUES, a_queue("c", 4)))
    again = await connect()
    resume = {"epoch": snap["epoch"], "seq": snap["seq"]}
    resumed = await again.subscribe("queues", resume=resume)
    assert resumed == {"t": "resumed", "id": "1", "from": snap["seq"]}
    delta = await again.hear()
    assert (delta["prev"], [change["k"] for change in delta["up"]]) == (snap["seq"], ["a", "b"])


@pytest.mark.parametrize(
    ("epoch", "seq", "reason"), [("other", "1", "epoch"), (None, "1", "gap"), (None, "x", "gap")]
)
async def test_what_cannot_be_resumed_is_reset(
    connect: Connect, epoch: str | None, seq: str, reason: str
) -> None:
    await consume(listed(QUEUES, a_queue("a", 1)), modified(QUEUES, a_queue("a", 2)))
    await consume(modified(QUEUES, a_queue("a", 3)))
    await LiveChange.objects.order_by("id")[:1].aget()
    oldest = await LiveChange.objects.order_by("id").afirst()
    await LiveChange.objects.filter(id__lte=oldest.pk + 1).adelete()
    browser = await connect()
    known = await sync_to_async(live.epoch)()
    answer = await browser.subscribe("queues", resume={"epoch": epoch or known, "seq": seq})
    assert answer == {"t": "reset", "id": "1", "reason": reason}
    assert (await browser.hear())["t"] == "snap"


async def test_a_new_epoch_of_the_log_forces_a_snapshot(connect: Connect) -> None:
    await consume(listed(QUEUES, a_queue("a", 1)))
    browser = await connect()
    snap = await browser.subscribe("queues")
    await sync_to_async(live.start_epoch)()
    answer = await browser.subscribe("queues", resume={"epoch": snap["epoch"], "seq": snap["seq"]})
    assert answer["reason"] == "epoch"


async def test_a_connected_client_is_reset_when_the_log_begins_anew(connect: Connect) -> None:
    await consume(listed(QUEUES, a_queue("a", 1)))
    browser = await connect()
    snap = await browser.subscribe("queues")
    await sync_to_async(live.start_epoch)()
    assert await browser.hear() == {"t": "reset", "id": "1", "reason": "epoch"}
    assert (await browser.hear())["epoch"] not in ("", snap["epoch"])


async def test_a_client_that_never_acknowledges_is_reset_as_slow(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kaiweb.live.subscription.MAX_UNACKED", 2)
    await consume(listed(QUEUES, a_queue("a", 1)))
    browser = await connect()
    await browser.subscribe("queues")
    kinds = []
    for version in range(2, 5):
        await consume(modified(QUEUES, a_queue("a", version)))
        kinds.append((await browser.hear())["t"])
    assert kinds == ["delta", "delta", "reset"]
    assert (await browser.hear())["t"] == "snap"


async def test_a_large_topic_begins_with_the_work_that_waits(connect: Connect) -> None:
    def workload(number: int) -> PodGroup:
        return PodGroup(
            key=f"n/w{number:03}", namespace="n", name=f"w{number:03}", uid=str(number), version=number,
            created_at=datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=number),
            state="pending" if number == 7 else "running",
        )  # fmt: skip

    await PodGroup.objects.abulk_create([workload(number) for number in range(600)])
    browser = await connect()
    first = await browser.subscribe("workloads")
    second = await browser.hear()
    assert [(part["part"], part["of"]) for part in (first, second)] == [(1, 2), (2, 2)]
    keys = [item["k"] for part in (first, second) for item in part["items"]]
    others = [f"n/w{number:03}" for number in reversed(range(600)) if number != 7]
    assert keys == ["n/w007", *others]


async def test_an_unknown_topic_is_answered_and_the_connection_lives(connect: Connect) -> None:
    browser = await connect()
    answer = await browser.subscribe("weather")
    assert (answer["t"], answer["id"]) == ("err", "1")
    assert "weather" in answer["problem"]["detail"]
    assert (await browser.subscribe("queues"))["t"] == "snap"


@pytest.mark.parametrize(
    "raw", ["{", "[]", '"x"', '{"t":"dance"}', '{"t":"pause","id":"1"}', '{"t":"sub"}', '{"t":7}']
)
async def test_a_malformed_request_closes_the_connection(connect: Connect, raw: str) -> None:
    browser = await connect()
    await browser.socket.send_to(text_data=raw)
    assert (await browser.hear())["t"] == "err"
    assert await close_code(browser) == 4400


async def test_unauthenticated_and_cross_origin_sockets_are_refused(connect: Connect) -> None:
    assert await close_code(await connect(cookie="")) == 4401
    assert await close_code(await connect(cookie="sessionid=invented")) == 4401
    assert await close_code(await connect(origin="http://evil.example")) == 4401
    assert await close_code(await connect(protocol="kaiweb.live.v9")) == 4400


async def test_a_page_of_another_site_costs_no_look_into_the_database(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(scope: Any) -> None:
        raise AssertionError(f"looked for the client of {scope['path']}")

    monkeypatch.setattr(consumers, "authenticate", look)
    assert await close_code(await connect(origin="http://evil.example")) == 4401
    assert await close_code(await connect(host="evil.example")) == 4401


async def test_the_origin_must_have_our_scheme_and_the_host_must_be_ours(
    connect: Connect, settings: Any
) -> None:
    assert await close_code(await connect(origin="https://testserver")) == 4401
    foreign = await connect(host="evil.example", origin="http://evil.example")
    assert await close_code(foreign) == 4401
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    assert await close_code(await connect(proto="https")) == 4401
    behind_proxy = await connect(origin="https://testserver", proto="https")
    assert (await behind_proxy.subscribe("queues"))["t"] == "snap"


async def test_a_ticket_does_not_open_the_socket_under_a_foreign_name(connect: Connect) -> None:
    user = await User.objects.acreate(username="bot")
    ticket = await sync_to_async(tokens.issue_ticket)(user=user, token=None, now=timezone.now())
    assert await close_code(await connect(ticket=ticket, host="evil.example")) == 4401


async def test_sockets_are_counted_by_user_and_in_all(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_sockets, "MAX_SOCKETS_PER_USER", 2)
    monkeypatch.setattr(live_sockets, "MAX_SOCKETS", 3)
    first, _second = await connect(), await connect()
    assert await close_code(await connect()) == 4429
    assert (await (await connect(user="emmy")).subscribe("queues"))["t"] == "snap"
    assert await close_code(await connect(user="vera")) == 4429
    await first.socket.disconnect()
    assert (await (await connect()).subscribe("queues"))["t"] == "snap"


async def test_a_ticket_opens_one_connection_once(connect: Connect) -> None:
    user = await User.objects.acreate(username="bot")
    ticket = await sync_to_async(tokens.issue_ticket)(user=user, token=None, now=timezone.now())
    browser = await connect(ticket=ticket, origin="http://elsewhere")
    assert (await browser.subscribe("queues"))["t"] == "snap"
    assert await close_code(await connect(ticket=ticket)) == 4401


async def test_too_many_subscriptions_end_the_connection(connect: Connect) -> None:
    browser = await connect()
    for number in range(33):
        await browser.say(t="sub", id=str(number), topic="queue:none")
    # The answers to the others may come before and after.
    while (frame := await browser.hear())["t"] != "err":
        assert frame["t"] == "snap"
    assert frame["id"] == "32"
    assert await close_code(browser) == 4429


async def test_lost_and_changed_rights_are_noticed(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumers, "RIGHTS_CHECK_S", 0.1)
    browser = await connect()
    await browser.subscribe("queues")
    user = await User.objects.aget(username="ada")
    await RoleBinding.objects.acreate(user=user, role=Role.EDITOR, subtree="a")
    assert (await browser.hear()) == {"t": "reset", "id": "1", "reason": "rights"}
    assert (await browser.hear())["t"] == "snap"
    user.is_active = False
    await user.asave()
    assert await close_code(browser) == 4401


async def test_a_broken_wake_up_costs_a_second_and_no_change(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "wake", lambda: None)
    await consume(listed(QUEUES, a_queue("a", 1)))
    browser = await connect()
    await browser.subscribe("queues")
    started = asyncio.get_running_loop().time()
    await consume(modified(QUEUES, a_queue("a", 2)))
    assert (await browser.hear())["t"] == "delta"
    assert asyncio.get_running_loop().time() - started < 2.5


async def test_clients_that_come_together_share_one_reading_until_something_changes(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    await consume(listed(QUEUES, a_queue("a", 1)))
    readings: list[str] = []
    original = Topic.snapshot

    def counted(topic: Topic) -> Any:
        readings.append(topic.family.name)
        return original(topic)

    monkeypatch.setattr(Topic, "snapshot", counted)
    for _number in range(3):
        browser = await connect()
        assert [item["k"] for item in (await browser.subscribe("queues"))["items"]] == ["a"]
    assert readings == ["queues"]
    await consume(added(QUEUES, a_queue("b", 2)))
    late = await (await connect()).subscribe("queues")
    assert ([item["k"] for item in late["items"]], readings) == (["a", "b"], ["queues"] * 2)
