"""Requests that wait: asked again without a thread, until reached, gone or out of time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from binder import mirror as binder_mirror
from kaiweb.api.streams import waiting
from kaiweb.api.streams.waiting import WaitingRequests
from kube.objects.bindrequest import BindRequest
from kube.objects.meta import convert
from kube.resources import BINDREQUESTS, PODGROUPS, PODS, QUEUES
from queues.mirror.feed import Mirror
from queues.mirror.kinds import KINDS
from queues.mirror.writer import Writer
from queues.models import PodGroup
from tests.kaiweb.api.conftest import NOON, token_client
from tests.queues.cluster_objects import a_group, a_pod, a_queue, added, listed, meta, modified


class App:
    """Answers with the next status of a list; the last one stays."""

    def __init__(self, *statuses: int) -> None:
        self.statuses = list(statuses)
        self.looks = 0

    async def __call__(self, _scope: Any, _receive: Any, send: Any) -> None:
        self.looks += 1
        status = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": str(status).encode()})


async def ask(
    app: App,
    *,
    timeout: str = "5",
    path: str = "/api/v1/workloads/a/b/wait",
    gone_after_s: float = 60.0,
) -> list[int]:
    """Return the statuses that the client sees."""
    sent: list[int] = []

    async def receive() -> Mapping[str, Any]:
        await asyncio.sleep(gone_after_s)
        return {"type": "http.disconnect"}

    async def send(message: Mapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            sent.append(message["status"])

    query = f"for=running&timeout={timeout}".encode()
    scope = {"type": "http", "method": "GET", "path": path, "query_string": query, "headers": []}
    await WaitingRequests(app)(scope, receive, send)
    return sent


@pytest.fixture(autouse=True)
def short_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "PAUSE_S", 0.01)


@pytest.mark.asyncio
async def test_the_client_gets_one_answer_when_it_is_reached() -> None:
    app = App(202, 202, 200)
    assert (await ask(app), app.looks) == ([200], 3)


@pytest.mark.asyncio
async def test_a_right_that_is_lost_ends_the_wait() -> None:
    assert await ask(App(202, 403)) == [403]


@pytest.mark.asyncio
async def test_out_of_time_the_client_gets_the_202() -> None:
    app = App(202)
    assert await ask(app, timeout="0") == [202]
    assert app.looks == 1


@pytest.mark.asyncio
async def test_a_client_that_goes_ends_the_wait_at_once() -> None:
    async with asyncio.timeout(2):
        assert await ask(App(202), timeout="300", gone_after_s=0.05) == []


@pytest.mark.asyncio
@pytest.mark.parametrize("timeout", ["-1", "abc", "99999", "²"])
async def test_a_timeout_that_cannot_be_read_waits_for_nothing(timeout: str) -> None:
    app = App(202)
    assert await ask(app, timeout=timeout) == [202]
    assert app.looks == 1


@pytest.mark.asyncio
async def test_other_requests_and_those_above_the_limit_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert await ask(App(202), path="/api/v1/queues") == [202]
    monkeypatch.setattr(waiting, "MAX_WAITERS", 0)
    app = App(202, 200)
    assert (await ask(app), app.looks) == ([202], 1)


# -------------------------------------------------------------------------------------------- views


@pytest.fixture
def world(db: None) -> Mirror:
    """Pod group `train` of two pods that wait in queue `team`."""
    writer = Writer(sleep=lambda _s: None)
    mirror = Mirror((*KINDS, binder_mirror.KIND), writer, now=lambda: NOON)
    pods = [a_pod(f"p{index}", group="train") for index in range(2)]
    mirror.consume(
        [
            listed(QUEUES, a_queue("team")),
            listed(PODGROUPS, a_group("train", min_member=2)),
            listed(PODS, *pods),
        ]
    )
    return mirror


@pytest.fixture
def reader(db: None) -> APIClient:
    return token_client(User.objects.create_user("vera"), ["read"])


def look(client: APIClient, query: str, path: str = "workloads/default/train") -> Any:
    return client.get(f"/api/v1/{path}/wait?{query}")


def statuses(client: APIClient) -> dict[str, int]:
    events = ("explained", "scheduled", "bound", "running", "finished")
    return {event: look(client, f"for={event}").status_code for event in events}


def place(world: Mirror, version: int, phase: str) -> None:
    pods = [a_pod(f"p{index}", version, group="train", node="n", phase=phase) for index in range(2)]
    world.consume([modified(PODS, pod) for pod in pods])


def test_each_event_is_reached_in_turn(reader: APIClient, world: Mirror) -> None:
    not_yet = dict.fromkeys(("explained", "scheduled", "bound", "running", "finished"), 202)
    assert statuses(reader) == not_yet
    assert look(reader, "for=bound")["Retry-After"] == "1"
    for index in range(2):
        body = {
            "metadata": meta(f"r{index}", 2, namespace="default"),
            "spec": {"podName": f"p{index}", "selectedNode": "n"},
            "status": {"phase": "Pending"},
        }
        world.consume([added(BINDREQUESTS, convert(body, BindRequest))])
    assert statuses(reader) == {**not_yet, "scheduled": 200}
    place(world, 3, "Pending")
    at_nodes = {"explained": 200, "scheduled": 200, "bound": 200}
    assert statuses(reader) == {**not_yet, **at_nodes}
    place(world, 4, "Running")
    assert statuses(reader) == {**not_yet, **at_nodes, "running": 200}
    place(world, 5, "Succeeded")
    assert set(statuses(reader).values()) == {200}
    assert look(reader, "for=finished").json()["state"] == "finished"


def test_what_can_no_longer_happen_is_a_conflict(reader: APIClient, world: Mirror) -> None:
    PodGroup.objects.update(state="failed")
    answer = look(reader, "for=running")
    assert (answer.status_code, answer.json()["type"]) == (409, "https://kaiweb.dev/problems/impossible")  # fmt: skip
    assert look(reader, "for=finished").json()["reached"] is True


@pytest.mark.parametrize(
    "query", ["", "for=x", "for=bound&timeout=301", "for=bound&timeout=-1", "for=bound&timeout=²"]
)
def test_a_wrong_parameter_is_named(reader: APIClient, world: Mirror, query: str) -> None:
    assert look(reader, query).status_code == 400


def test_a_queue_is_waited_for_by_generation(reader: APIClient, world: Mirror) -> None:
    generation = look(reader, "generation=0", "queues/team").json()["generation"]
    assert look(reader, f"generation={generation}", "queues/team").status_code == 200
    assert look(reader, f"generation={generation + 1}", "queues/team").status_code == 202
    assert look(reader, f"for=synced&generation={generation}", "queues/team").status_code == 200
    assert look(reader, "generation=x", "queues/team").status_code == 400
    assert look(reader, "for=bound&generation=1", "queues/team").status_code == 400
    assert look(reader, "generation=1", "queues/none").status_code == 404
