"""Simulations over REST: asked, run by a worker, read, refused; and nothing is written to the cluster."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from kombu.exceptions import OperationalError
from rest_framework.test import APIClient

from kaiweb.models import Simulation
from kaiweb.planning import simulations
from kube.errors import ServerError
from kube.resources import NODES, PODGROUPS, PODS, QUEUES
from tests.fakes.gateway import FakeGateway
from tests.kaiweb.api.conftest import token_client
from tests.scheduler.load.objects import group, node, pod

pytestmark = pytest.mark.django_db
URL = "/api/v1/simulations"


@pytest.fixture
def worker(cluster: FakeGateway, monkeypatch: pytest.MonkeyPatch) -> FakeGateway:
    """A worker that answers at once, and a cluster in which `physics` waits for its limit."""
    cluster.seed(NODES, node("n0", gpus=8))
    cluster.seed(PODGROUPS, group("train", queue="physics", minMember=1))
    requests = {"nvidia.com/gpu": "4"}
    cluster.seed(PODS, pod("train-0", group="train", requests=requests))
    monkeypatch.setattr(simulations, "send", lambda pk: simulations.run(pk, cluster, timezone.now))
    return cluster


@pytest.fixture
def idle(cluster: FakeGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that never comes to it."""
    monkeypatch.setattr(simulations, "send", lambda pk: None)


def ask(client: APIClient, body: Any, **headers: str) -> Any:
    return client.post(URL, body, format="json", headers=headers)


def slug(response: Any) -> str:
    return str(response.json()["type"].removeprefix("https://kaiweb.dev/problems/"))


def test_a_question_is_answered_with_what_would_change(
    client: APIClient, worker: FakeGateway
) -> None:
    before = dict(worker.objects)
    body = {"queues": [{"name": "physics", "edit": {"limit": {"gpu": 2}}}]}
    response = ask(client, body)
    assert response.status_code == 200
    answer = client.get(response["Location"]).json()["answer"]
    assert answer["verdict"] == "safe"
    assert answer["starts"] == []
    assert [(row["workload"], row["before"], row["after"]) for row in answer["blocked"]] == [
        ("ns/train", None, "OverLimit")
    ]
    assert worker.objects == before


def test_an_unfinished_simulation_is_202_and_can_be_read_later(
    client: APIClient, idle: None
) -> None:
    response = ask(client, {}, Prefer="wait=0")
    assert (response.status_code, response["Retry-After"]) == (202, "1")
    assert client.get(response["Location"]).json()["state"] == "queued"


def test_a_check_says_whether_a_workload_would_start(
    client: APIClient, worker: FakeGateway
) -> None:
    workload = {"name": "new", "queue": "physics", "gpu": 2}
    response = client.post(f"{URL}:check-workload", {"workload": workload}, format="json")
    starts = [row["workload"] for row in response.json()["answer"]["starts"]]
    assert "default/new" in starts
    assert client.post(f"{URL}:check-workload", {}, format="json").status_code == 422


def test_edits_that_cannot_be_made_are_a_verdict(client: APIClient, worker: FakeGateway) -> None:
    answer = ask(client, {"workloads": {"remove": ["ns/none"]}}).json()["answer"]
    assert (answer["verdict"], answer["errors"][0]["code"]) == ("invalid", "unknown-workload")


@pytest.mark.parametrize("body", [{"cycles": 0}, {"colour": 1}, [], "x"])
def test_a_question_that_cannot_be_read_is_refused(
    client: APIClient, worker: FakeGateway, body: Any
) -> None:
    response = ask(client, body)
    assert (response.status_code, slug(response)) == (422, "validation")
    assert not Simulation.objects.exists()


def test_viewers_simulate_and_tokens_need_the_scope(admin: User, worker: FakeGateway) -> None:
    vera = User.objects.create_user("vera")
    assert ask(token_client(vera, ["simulate"]), {}).status_code == 200
    assert ask(token_client(admin, ["read", "queues:write"]), {}).status_code == 403


def test_a_user_has_few_unfinished_simulations(client: APIClient, idle: None) -> None:
    for _number in range(simulations.MAX_OF_USER):
        assert ask(client, {}).status_code == 202
    refused = ask(client, {})
    assert refused.status_code == 429
    assert (refused.headers["RateLimit-Policy"], refused.headers["RateLimit"]) == (
        '"simulations";q=5;qu="unfinished-simulations"',
        '"simulations";r=0;t=5',
    )


def test_a_lost_simulation_has_failed_and_blocks_nobody(client: APIClient, idle: None) -> None:
    pk = ask(client, {}).json()["id"]
    Simulation.objects.update(created_at=timezone.now() - simulations.LOST_AFTER * 2)
    assert client.get(f"{URL}/{pk}").json()["state"] == "failed"
    simulations.trim(timezone.now() + timedelta(days=8))
    assert client.get(f"{URL}/{pk}").status_code == 404


def test_without_a_broker_nothing_is_stored(
    client: APIClient, cluster: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_pk: int) -> None:
        raise OperationalError("no broker")

    monkeypatch.setattr(simulations, "send", refuse)
    assert ask(client, {}).status_code == 503
    assert not Simulation.objects.exists()


def test_a_cluster_that_does_not_answer_fails_the_simulation(
    client: APIClient, worker: FakeGateway
) -> None:
    worker.fail_next("list", "pods", ServerError("down"))
    body = ask(client, {}).json()
    assert (body["state"], body["answer"]) == ("failed", None)


def test_only_the_author_and_admins_delete(
    client: APIClient, viewer: APIClient, worker: FakeGateway
) -> None:
    pk = ask(client, {}).json()["id"]
    assert viewer.delete(f"{URL}/{pk}").status_code == 403
    assert [item["id"] for item in viewer.get(URL).json()["items"]] == [pk]
    assert client.delete(f"{URL}/{pk}").status_code == 204
    assert worker.raw(QUEUES, "physics")["metadata"]["name"] == "physics"
