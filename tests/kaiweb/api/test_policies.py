"""The policies about changes of queues: edited by admins, and kept on every way to a queue."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from rest_framework.test import APIClient

from kaiweb.planning import simulations
from kube.resources import QUEUES
from queues.models import ChangePolicy, Queue, QuotaChange
from tests.fakes.gateway import FakeGateway

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sync", "reach")]
URL = "/api/v1/policies"
QUEUE = "/api/v1/queues/physics"
LOWER, RAISE = {"quota": {"gpu": 8}}, {"quota": {"gpu": 13}}


@pytest.fixture
def reach(cluster: FakeGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the views reach the fake cluster, and simulations run at once."""
    for views in ("changes", "queue_trees"):
        monkeypatch.setattr(f"kaiweb.api.views.{views}.gateway", lambda: cluster)
    monkeypatch.setattr(simulations, "send", lambda pk: simulations.run(pk, cluster, timezone.now))


@pytest.fixture
def other(db: None) -> APIClient:
    """Another admin, logged in."""
    client = APIClient()
    client.force_login(User.objects.create_superuser("grace"))
    return client


def quota(cluster: FakeGateway) -> Any:
    return cluster.raw(QUEUES, "physics")["spec"]["resources"]["gpu"]["quota"]


def slug(response: Any) -> str:
    return str(response.json()["type"].removeprefix("https://kaiweb.dev/problems/"))


def patch_queue(client: APIClient, edit: Any, query: str = "") -> Any:
    headers = {"If-Match": client.get(QUEUE)["ETag"]}
    return client.patch(f"{QUEUE}{query}", edit, format="json", headers=headers)


def draft(client: APIClient, edit: Any = LOWER) -> str:
    edits = [{"name": "physics", "edit": edit}]
    number = client.post("/api/v1/changes", {"edits": edits}, format="json").json()["id"]
    return f"/api/v1/changes/{number}"


def test_without_a_row_nothing_is_asked_for(client: APIClient) -> None:
    assert client.get(URL).json() == {
        "belowUse": "warn", "approval": "none", "etag": '"warn-none"',
    }  # fmt: skip
    assert patch_queue(client, LOWER).status_code == 200


def test_admins_edit_the_version_they_read_and_the_audit_log_says_what(
    client: APIClient, editor: APIClient
) -> None:
    tag = {"If-Match": client.get(URL)["ETag"]}
    body = {"approval": "reductions"}
    assert editor.patch(URL, body, format="json", headers=tag).status_code == 403
    assert client.patch(URL, body, format="json").status_code == 428
    edited = client.patch(f"{URL}?reason=rules", body, format="json", headers=tag)
    assert (edited.json()["belowUse"], edited.json()["approval"]) == ("warn", "reductions")
    stale = client.patch(URL, {"approval": "all"}, format="json", headers=tag)
    assert (stale.status_code, stale.json()["current"]["approval"]) == (412, "reductions")
    wrong = client.patch(
        URL, {"approval": "often"}, format="json", headers={"If-Match": edited["ETag"]}
    )
    assert (wrong.status_code, wrong.json()["errors"][0]["pointer"]) == (422, "/approval")
    entry = client.get("/api/v1/audit?kind=policy").json()["items"][0]
    assert (entry["target"], entry["actor"], entry["reason"]) == ("changes", "ada", "rules")
    assert entry["diff"] == [{"pointer": "/approval", "before": "none", "after": "reductions"}]


def test_a_reduction_needs_another_admin_on_every_way(
    client: APIClient, other: APIClient, cluster: FakeGateway, sync: Callable[[], None]
) -> None:
    ChangePolicy.objects.create(approval="reductions")
    assert patch_queue(client, RAISE).status_code == 200
    sync()
    tree = {"name": "physics", **LOWER}
    for answer in (
        patch_queue(client, LOWER),
        patch_queue(client, LOWER, "?dryRun=true"),
        client.put(f"{QUEUE}?fieldManager=ci", LOWER, format="json"),
        client.put("/api/v1/queue-trees/physics", tree, format="json"),
        client.put("/api/v1/queue-trees/physics?dryRun=true", tree, format="json"),
        client.delete(QUEUE, headers={"If-Match": client.get(QUEUE)["ETag"]}),
    ):
        assert (answer.status_code, slug(answer)) == (409, "approval-needed")
    change = draft(client)
    assert client.get(change).json()["needsApproval"] is True
    assert slug(client.post(f"{change}:apply")) == "approval-needed"
    assert client.post(f"{change}:request").status_code == 200
    assert client.post(f"{change}:approve").status_code == 403
    assert quota(cluster) == 13
    assert other.post(f"{change}:approve").json()["needsApproval"] is False
    assert client.post(f"{change}:apply").json()["state"] == "applied"
    assert quota(cluster) == 8


def test_raising_a_bound_again_needs_none_and_with_the_strictest_rule_everything_does(
    client: APIClient,
) -> None:
    policy = ChangePolicy.objects.create(approval="reductions")
    assert client.get(draft(client, RAISE)).json()["needsApproval"] is False
    policy.approval = "all"
    policy.save()
    assert client.get(draft(client, RAISE)).json()["needsApproval"] is True
    assert slug(patch_queue(client, {"displayName": "Physics"})) == "approval-needed"
    new_queue = {"name": "chem", "parent": "science"}
    assert slug(client.post("/api/v1/queues", new_queue, format="json")) == "approval-needed"
    assert not QuotaChange.objects.exists()


def test_an_approval_by_the_author_does_not_outlive_a_stricter_policy(client: APIClient) -> None:
    change = draft(client)
    client.post(f"{change}:request")
    assert client.post(f"{change}:approve").status_code == 200
    ChangePolicy.objects.create(approval="reductions")
    assert slug(client.post(f"{change}:apply")) == "approval-needed"


def test_a_bound_below_use_is_refused_where_the_policy_says_so(
    client: APIClient, cluster: FakeGateway
) -> None:
    Queue.objects.filter(name="physics").update(allocated_gpu=10)
    below = {"limit": {"gpu": 4}}
    assert patch_queue(client, below, "?dryRun=true").status_code == 200
    ChangePolicy.objects.create(below_use="block")
    refused = patch_queue(client, below)
    assert (refused.status_code, refused.json()["errors"][0]["code"]) == (
        422, "limit-below-allocated",
    )  # fmt: skip
    assert patch_queue(client, {"limit": {"gpu": 11}}).status_code == 200
    change = client.get(draft(client, below)).json()
    assert (change["policy"], change["errors"][0]["code"]) == ("block", "limit-below-allocated")
