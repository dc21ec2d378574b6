"""`simulate=true` on a dry run: the answer says what the scheduler would do, and nothing is written."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from kaiweb.models import ChangeSet, Simulation
from kaiweb.planning import simulations
from kube.resources import PODGROUPS, QUEUES, SHARDS
from queues.models import PodGroup, QuotaChange
from tests.fakes.gateway import FakeGateway

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sync", "reach")]
URL = "/api/v1/queues"
QUERY = "?dryRun=true&simulate=true"

Send = Callable[..., Any]


@pytest.fixture
def reach(cluster: FakeGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the views reach the fake cluster, and simulations run at once."""
    for views in ("changes", "workload_actions", "shards.shards"):
        monkeypatch.setattr(f"kaiweb.api.views.{views}.gateway", lambda: cluster)
    monkeypatch.setattr(simulations, "send", lambda pk: simulations.run(pk, cluster, timezone.now))


@pytest.fixture
def send(client: APIClient, cluster: FakeGateway) -> Send:
    """Send a dry run with a preview; check that the queues stay as they are."""

    def call(method: str, path: str, body: Any = None, query: str = QUERY) -> Any:
        before = {name: deepcopy(cluster.raw(QUEUES, name)) for name in cluster.names(QUEUES)}
        headers = {}
        if method in ("patch", "delete"):
            headers["If-Match"] = client.get(f"{URL}/{path}").json()["etag"]
        answer = getattr(client, method)(
            f"{URL}/{path}{query}".replace("/?", "?"), body, format="json", headers=headers
        )
        after = {name: cluster.raw(QUEUES, name) for name in cluster.names(QUEUES)}
        assert (after, QuotaChange.objects.count()) == (before, 0)
        return answer

    return call


@pytest.mark.parametrize(
    ("method", "path", "body", "edit"),
    [
        ("post", "", {"name": "chem", "parent": "science", "quota": {"gpu": 2}},
         {"name": "chem", "action": "create", "edit": {"parent": "science", "quota": {"gpu": 2}}}),
        ("patch", "physics", {"quota": {"gpu": 4}},
         {"name": "physics", "action": "update", "edit": {"quota": {"gpu": 4}}}),
        ("patch", "physics", {"parent": "product"},
         {"name": "physics", "action": "update", "edit": {"parent": "product"}}),
        ("delete", "physics", None, {"name": "physics", "action": "delete", "edit": {}}),
    ],
    ids=["create", "patch", "move", "delete"],
)  # fmt: skip
def test_a_dry_run_answers_with_the_preview(
    send: Send, method: str, path: str, body: Any, edit: dict[str, Any]
) -> None:
    answer = send(method, path, body)
    assert answer.status_code == (201 if method == "post" else 200)
    content = answer.json()
    assert (content["dryRun"], content["verdict"]) == (
        True,
        "safe" if edit["action"] != "update" else "no-effect",
    )
    assert content["simulated"]["id"] == content["simulation"] == Simulation.objects.get().pk
    assert content["simulated"]["question"]["queues"] == [edit]
    assert content["simulated"]["answer"]["totals"]["evictedWorkloads"] == 0


def test_a_preview_of_an_apply_and_of_a_creation_by_put(send: Send) -> None:
    applied = send("put", "physics", {"limit": {"gpu": 4}}, f"{QUERY}&fieldManager=ci").json()
    assert applied["simulated"]["question"]["queues"][0]["edit"] == {"limit": {"gpu": 4}}
    created = send("put", "chem", {"parent": "science"}, f"{QUERY}&fieldManager=ci").json()
    assert created["simulated"]["question"]["queues"][0]["action"] == "create"


def test_without_simulate_nothing_is_simulated(send: Send) -> None:
    content = send("patch", "physics", {"quota": {"gpu": 4}}, "?dryRun=true").json()
    assert not {"simulation", "verdict", "simulated"} & set(content)
    assert not Simulation.objects.exists()


@pytest.mark.parametrize("query", ["?simulate=true", "?dryRun=false&simulate=true"])
def test_a_preview_of_a_write_that_is_made_is_refused(send: Send, query: str) -> None:
    answer = send("patch", "physics", {"quota": {"gpu": 4}}, query)
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, "?simulate")


def test_what_would_be_refused_is_refused_without_a_simulation(send: Send) -> None:
    assert send("patch", "physics", {"parent": "physics"}).status_code == 422
    assert not Simulation.objects.exists()


def test_a_shard_is_tried_with_other_settings(client: APIClient, cluster: FakeGateway) -> None:
    cluster.seed(SHARDS, {"metadata": {"name": "default"}, "spec": {"kValue": 1}})
    address = "/api/v1/shards/default"
    tag = {"If-Match": client.get(address)["ETag"]}
    body = {"spec": {"placementStrategy": {"gpu": "spread"}, "kValue": None}}
    answer = client.patch(f"{address}{QUERY}", body, format="json", headers=tag)
    assert (answer.status_code, answer.json()["verdict"]) == (200, "no-effect")
    assert answer.json()["simulated"]["question"]["settings"] == body["spec"]
    assert cluster.raw(SHARDS, "default")["spec"] == {"kValue": 1}
    refused = client.patch(f"{address}?simulate=true", body, format="json", headers=tag)
    assert refused.status_code == 400


@pytest.mark.parametrize("action", ["hold", "release", "requeue"])
def test_an_action_on_a_workload_is_tried(
    client: APIClient, cluster: FakeGateway, action: str
) -> None:
    meta = {"name": "train", "namespace": "team", "labels": {"kai.scheduler/queue": "physics"}}
    cluster.seed(PODGROUPS, {"metadata": meta, "spec": {"queue": "physics", "minMember": 1}})
    PodGroup.objects.create(
        key="team/train", namespace="team", name="train", uid="u", version=1,
        created_at=timezone.now(), queue="physics", owner_kind="Job",
    )  # fmt: skip
    before = deepcopy(cluster.raw(PODGROUPS, "train", "team"))
    address = f"/api/v1/workloads/team/train/{action}"
    answer = client.post(f"{address}{QUERY}", {}, format="json")
    assert (answer.status_code, answer.json()["verdict"]) == (200, "no-effect")
    assert answer.json()["simulated"]["question"]["workloads"][action] == ["team/train"]
    assert cluster.raw(PODGROUPS, "train", "team") == before
    assert client.post(f"{address}?simulate=true", {}, format="json").status_code == 400


def test_a_preview_needs_the_right_to_simulate(editor: APIClient) -> None:
    body = {"name": "chem", "parent": "science", "quota": {"gpu": 0}}
    assert editor.post(f"{URL}{QUERY}", body, format="json").status_code == 403


def test_a_change_set_is_tried_without_being_applied(
    client: APIClient, cluster: FakeGateway
) -> None:
    edits = [{"name": "physics", "edit": {"quota": {"gpu": 4}}}]
    number = client.post("/api/v1/changes", {"edits": edits}, format="json").json()["id"]
    apply = f"/api/v1/changes/{number}:apply"
    content = client.post(f"{apply}{QUERY}", {"reason": "tried"}, format="json").json()
    assert (content["state"], content["verdict"]) == ("draft", "no-effect")
    assert content["plan"][0]["diff"][0]["after"] == 4
    row = ChangeSet.objects.get()
    assert (row.state, row.reason, row.preview_id) == ("draft", "", None)
    assert cluster.raw(QUEUES, "physics")["spec"]["resources"]["gpu"]["quota"] == 12
    assert client.post(f"{apply}?simulate=true").status_code == 400
    assert client.post(apply).json()["state"] == "applied"
    assert client.post(f"{apply}?dryRun=true").status_code in (409, 412)
