"""Shards through REST: read, checked, written with a version, recorded; and the settings that hold."""

from __future__ import annotations

from typing import Any

import pytest
from rest_framework.test import APIClient

from kube.errors import ConflictError, ServerError
from kube.resources import CONFIGS, SHARDS
from queues.models import AuditKind, QuotaChange
from tests.fakes.gateway import FakeGateway
from tests.kaiweb.api.conftest import NOON

pytestmark = pytest.mark.django_db
URL = "/api/v1/shards"
USAGE = {"clientType": "prometheus", "connectionString": "http://ada:secret@metrics"}


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeGateway:
    """A cluster with the default shard and one for the nodes of pool a."""
    fake = FakeGateway(now=NOON)
    fake.seed(
        SHARDS,
        {"metadata": {"name": "default"}, "spec": {"args": {"schedule-period": "2s"}}},
        {
            "metadata": {"name": "pool-a"},
            "spec": {"partitionLabelValue": "a", "kValue": 2, "usageDBConfig": USAGE},
            "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "ready", "message": "yes"}]},
        },
    )  # fmt: skip
    for view in ("shards", "settings"):
        monkeypatch.setattr(f"kaiweb.api.views.shards.{view}.gateway", lambda: fake)
    return fake


def tag(client: APIClient, name: str = "pool-a") -> dict[str, str]:
    return {"If-Match": client.get(f"{URL}/{name}").json()["etag"]}


def send(
    client: APIClient, method: str, body: Any, name: str = "pool-a", query: str = "", **headers: str
) -> Any:
    condition = headers or tag(client, name)
    return getattr(client, method)(f"{URL}/{name}{query}", body, format="json", headers=condition)


def audit() -> list[tuple[str, str, str]]:
    rows = QuotaChange.objects.filter(kind=AuditKind.SHARD).order_by("pk")
    return [(row.action, row.target, row.state) for row in rows]


def test_a_shard_shows_its_spec_its_conditions_and_a_version(
    client: APIClient, cluster: FakeGateway
) -> None:
    items = client.get(URL).json()["items"]
    assert [item["name"] for item in items] == ["default", "pool-a"]
    response = client.get(f"{URL}/pool-a")
    assert response.json() == items[1]
    assert items[1]["spec"]["kValue"] == 2
    assert items[1]["partitionLabelValue"] == "a"
    assert items[1]["problem"] == ""
    assert items[1]["conditions"][0]["type"] == "Ready"
    assert response.headers["ETag"].startswith(f"{items[1]['etag'][:-1]}.")


def test_a_write_of_the_status_keeps_the_version(client: APIClient, cluster: FakeGateway) -> None:
    before = tag(client)
    cluster.patch(SHARDS, "pool-a", {"status": {"conditions": []}}, sub="status")
    assert tag(client) == before


def test_a_shard_that_a_scheduler_refuses_says_why(client: APIClient, cluster: FakeGateway) -> None:
    cluster.patch(SHARDS, "pool-a", {"spec": {"plugins": {"nonsense": {}}}})
    assert "unknown plugin 'nonsense'" in client.get(f"{URL}/pool-a").json()["problem"]


def test_only_admins_see_the_connection_of_the_usage_database(
    client: APIClient, viewer: APIClient, cluster: FakeGateway
) -> None:
    assert client.get(f"{URL}/pool-a").json()["spec"]["usageDBConfig"] == USAGE
    for address in (URL, f"{URL}/pool-a"):
        body = viewer.get(address).content
        assert b"secret" not in body
        assert b"clientType" in body


def test_an_unknown_shard_is_not_found(client: APIClient, cluster: FakeGateway) -> None:
    assert client.get(f"{URL}/nobody").status_code == 404
    gone = client.patch(f"{URL}/nobody", {"spec": {}}, format="json", headers={"If-Match": '"1-a"'})
    assert gone.status_code == 404


def test_a_patch_changes_what_it_names_and_is_recorded(
    client: APIClient, cluster: FakeGateway
) -> None:
    body = {"spec": {"kValue": None, "plugins": {"backfill": {"enabled": True}}}}
    response = send(client, "patch", body, query="?reason=nightly+jobs")
    assert response.status_code == 200
    spec = cluster.raw(SHARDS, "pool-a")["spec"]
    assert spec == {
        "partitionLabelValue": "a",
        "usageDBConfig": USAGE,
        "plugins": {"backfill": {"enabled": True}},
    }
    assert response.json()["diff"] == [
        {"pointer": "/spec/kValue", "before": 2, "after": None},
        {"pointer": "/spec/plugins/backfill/enabled", "before": None, "after": True},
    ]
    assert response.headers["ETag"] == tag(client)["If-Match"]
    entry = QuotaChange.objects.get()
    assert (entry.action, entry.target, entry.state) == ("update", "pool-a", "done")
    assert (entry.actor, entry.reason) == ("ada", "nightly jobs")
    assert entry.diff == response.json()["diff"]


def test_a_replacement_removes_what_it_does_not_name(
    client: APIClient, cluster: FakeGateway
) -> None:
    assert send(client, "put", {"spec": {"partitionLabelValue": "a"}}).status_code == 200
    assert cluster.raw(SHARDS, "pool-a")["spec"] == {"partitionLabelValue": "a"}


def test_the_audit_log_hides_the_connection(client: APIClient, cluster: FakeGateway) -> None:
    usage = {"connectionString": "http://other:secret@metrics"}
    response = send(client, "patch", {"spec": {"usageDBConfig": usage}})
    pointer = "/spec/usageDBConfig/connectionString"
    hidden = [{"pointer": pointer, "before": "(hidden)", "after": "(hidden)"}]
    assert response.json()["diff"] == QuotaChange.objects.get().diff == hidden


def test_the_same_spec_again_changes_nothing(client: APIClient, cluster: FakeGateway) -> None:
    response = send(client, "patch", {"spec": {"kValue": 2}})
    assert (response.status_code, response.json()["changed"]) == (200, False)
    assert audit() == []


def test_a_write_needs_the_version_that_was_read(client: APIClient, cluster: FakeGateway) -> None:
    stale = tag(client)
    send(client, "patch", {"spec": {"kValue": 3}})
    refused = send(client, "patch", {"spec": {"kValue": 4}}, **stale)
    assert refused.status_code == 412
    assert refused.json()["current"]["spec"]["kValue"] == 3
    assert refused.headers["ETag"] == tag(client)["If-Match"]
    without = client.patch(f"{URL}/pool-a", {"spec": {"kValue": 4}}, format="json")
    assert without.status_code == 428
    assert cluster.raw(SHARDS, "pool-a")["spec"]["kValue"] == 3


def test_the_version_of_an_item_can_be_sent_as_it_is(
    client: APIClient, cluster: FakeGateway
) -> None:
    etag = client.get(URL).json()["items"][1]["etag"]
    assert send(client, "patch", {"spec": {"kValue": 3}}, **{"If-Match": etag}).status_code == 200


def test_a_status_write_in_between_does_not_stop_an_edit(
    client: APIClient, cluster: FakeGateway
) -> None:
    version = tag(client)
    cluster.fail_next("patch", "schedulingshards", ConflictError("modified", status=409))
    assert send(client, "patch", {"spec": {"kValue": 3}}, **version).status_code == 200
    assert audit() == [("update", "pool-a", "done")]


def test_a_dry_run_checks_and_writes_nothing(client: APIClient, cluster: FakeGateway) -> None:
    response = send(client, "patch", {"spec": {"kValue": 3}}, query="?dryRun=true")
    assert response.json()["changed"] is True
    assert response.json()["shard"]["spec"]["kValue"] == 3
    refused = send(client, "patch", {"spec": {"actions": {"dance": {}}}}, query="?dryRun=true")
    assert refused.status_code == 422
    created = client.post(f"{URL}?dryRun=true", {"name": "pool-b", "spec": {"partitionLabelValue": "b"}}, format="json")  # fmt: skip
    assert created.status_code == 201
    deleted = send(client, "delete", None, query="?dryRun=true")
    assert deleted.json()["warnings"][0]["message"] == (
        "nobody schedules the nodes and workloads of 'a' any more"
    )
    assert cluster.raw(SHARDS, "pool-a")["spec"]["kValue"] == 2
    assert cluster.names(SHARDS) == ["default", "pool-a"]
    assert audit() == []


@pytest.mark.parametrize(
    ("spec", "pointer"),
    [
        ({"plugins": {"nonsense": {}}}, "/spec"),
        ({"kValue": "much"}, "/spec"),
        ({"args": {"schedule-period": "soon"}}, "/spec"),
        ({"kvalue": 1}, "/spec/kvalue"),
        ({"partitionLabelValue": ""}, "/spec/partitionLabelValue"),
        ("binpack", "/spec"),
    ],
)
def test_settings_that_a_scheduler_refuses_are_refused(
    spec: Any, pointer: str, client: APIClient, cluster: FakeGateway
) -> None:
    refused = send(client, "patch", {"spec": spec})
    assert refused.status_code == 422
    assert [entry["pointer"] for entry in refused.json()["errors"]] == [pointer]
    assert audit() == []


@pytest.mark.parametrize("body", [[], {}, {"spec": {}, "status": {}}])
def test_a_body_of_another_form_is_refused(
    body: Any, client: APIClient, cluster: FakeGateway
) -> None:
    assert send(client, "put", body).status_code == 422


def test_a_new_shard_gets_an_address_and_a_version(client: APIClient, cluster: FakeGateway) -> None:
    body = {"name": "pool-b", "spec": {"partitionLabelValue": "b"}}
    response = client.post(URL, body, format="json", headers={"Idempotency-Key": "k"})
    assert response.status_code == 201
    assert response.headers["Location"] == f"{URL}/pool-b"
    assert response.headers["ETag"] == tag(client, "pool-b")["If-Match"]
    again = client.post(URL, body, format="json", headers={"Idempotency-Key": "k"})
    assert (again.status_code, again.headers["Idempotent-Replayed"]) == (201, "true")
    other = client.post(URL, {**body, "name": "pool-c"}, format="json")
    assert other.json()["detail"] == (
        "partitionLabelValue: shard 'pool-b' schedules the nodes of 'b' already"
    )
    assert audit() == [("create", "pool-b", "done")]


def test_a_name_that_is_taken_is_a_conflict(client: APIClient, cluster: FakeGateway) -> None:
    body = {"name": "pool-a", "spec": {"partitionLabelValue": "z"}}
    assert client.post(URL, body, format="json").status_code == 409
    assert client.post(URL, {"name": "Pool/A"}, format="json").status_code == 422


def test_a_deleted_shard_is_gone(client: APIClient, cluster: FakeGateway) -> None:
    assert send(client, "delete", None).status_code == 204
    assert cluster.names(SHARDS) == ["default"]
    assert audit() == [("delete", "pool-a", "done")]


def test_a_write_that_the_cluster_did_not_answer_is_unclear_in_the_audit_log(
    client: APIClient, cluster: FakeGateway
) -> None:
    version = tag(client)
    cluster.fail_next("patch", "schedulingshards", ServerError("timeout", status=504))
    assert send(client, "patch", {"spec": {"kValue": 3}}, **version).status_code == 503
    assert audit() == [("update", "pool-a", "unclear")]


def named(items: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(item for item in items if item["name"] == name)


def test_settings_show_what_holds_and_what_is_stated(
    client: APIClient, cluster: FakeGateway
) -> None:
    send(client, "patch", {"spec": {"queueDepthPerAction": {"reclaim": 5}}}, "default")
    body = client.get("/api/v1/settings").json()
    assert (body["shard"], body["exists"], body["problem"]) == ("default", True, "")
    assert [action["name"] for action in body["actions"]] == [
        "allocate", "consolidation", "reclaim", "preempt", "stalegangeviction",
    ]  # fmt: skip
    assert named(body["actions"], "reclaim")["queueDepth"] == 5
    assert named(body["actions"], "allocate")["queueDepth"] is None
    assert named(body["options"], "schedule-period") == {
        "name": "schedule-period", "kind": "duration", "value": 2, "default": 1, "choices": None, "stated": True,
    }  # fmt: skip
    assert named(body["options"], "queue-limited-condition")["choices"] == [
        "Unschedulable", "QueueLimited",
    ]  # fmt: skip


def test_settings_of_a_shard_show_plugins_with_their_arguments(
    client: APIClient, cluster: FakeGateway
) -> None:
    plugins = client.get("/api/v1/settings?shard=pool-a").json()["plugins"]
    assert named(plugins, "proportion") == {
        "name": "proportion", "enabled": True, "onByDefault": True, "priority": 1800,
        "arguments": {"kValue": "2", "reclaimerUtilizationMultiplier": "1"},
    }  # fmt: skip
    assert named(plugins, "backfill") == {
        "name": "backfill", "enabled": False, "onByDefault": False, "priority": 0,
        "arguments": {"reservations": "4", "horizon": "86400s"},
    }  # fmt: skip


def test_the_default_shard_has_settings_without_an_object(
    client: APIClient, cluster: FakeGateway
) -> None:
    cluster.delete(SHARDS, "default")
    cluster.seed(CONFIGS, {"metadata": {"name": "kai-config"}, "spec": {"global": {"schedulerName": "mine"}}})  # fmt: skip
    body = client.get("/api/v1/settings").json()
    assert (body["exists"], named(body["options"], "scheduler-name")["value"]) == (False, "mine")
    assert client.get("/api/v1/settings?shard=nobody").status_code == 404


def test_settings_that_cannot_be_used_say_why(client: APIClient, cluster: FakeGateway) -> None:
    cluster.patch(SHARDS, "default", {"spec": {"args": {"schedule-period": "soon"}}})
    body = client.get("/api/v1/settings").json()
    assert "soon" in body["problem"]
    assert (body["actions"], body["plugins"], body["options"]) == ([], [], [])
