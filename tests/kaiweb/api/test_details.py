"""What pages of one object show beyond its item: shares in steps, access, manifests, events, topologies, pods of a node."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import yaml
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from kaiweb.api.http.renderers import YamlRenderer
from kaiweb.items import topologies
from kaiweb.items.nodes import MAX_SHOWN_DEVICES
from kube.resources import EVENTS, NODES, PODGROUPS, PODS, QUEUES, TOPOLOGIES
from kube.values.times import format_time
from queues.mirror.feed import Mirror
from queues.mirror.kinds import KINDS
from queues.mirror.writer import Writer
from queues.models import AuditKind, PodGroup, Queue, QuotaChange, Role, RoleBinding
from scheduler.models import EvictionRecord, QueueShare
from tests.fakes.gateway import FakeGateway
from tests.kaiweb.api.conftest import Renew
from tests.queues.cluster_objects import a_group, a_node, a_pod, a_queue, listed

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
API = "/api/v1"
OPEN = {"limit": -1, "overQuotaWeight": 1}


def mirror(*messages: Any) -> None:
    Mirror(KINDS, Writer(sleep=lambda _s: None), now=lambda: NOON).consume([*messages])


def get(client: APIClient, path: str, status: int = 200) -> Any:
    response = client.get(API + path)
    assert response.status_code == status, response.content
    return response.json()


def family(shares: dict[str, float], requests: dict[str, float], **gpu: dict[str, float]) -> None:
    """Put queues below `dept`, which has a share of 20 GPUs, with what they request and the shares they have."""
    mirror(
        listed(
            QUEUES,
            a_queue("dept", gpu={**OPEN, "quota": 20}),
            *(a_queue(name, parent="dept", gpu={**OPEN, **bounds}) for name, bounds in gpu.items()),
        )
    )
    for name, requested in requests.items():
        Queue.objects.filter(name=name).update(requested_gpu=requested)
    for name, share in {"dept": 20.0, **shares}.items():
        QueueShare.objects.create(shard="default", queue=name, cycle=1, gpu=share)


@pytest.mark.parametrize(
    ("requests", "bounds", "shares", "steps"),
    [
        pytest.param(
            {"a": 30, "b": 30}, {"a": {"quota": 4}, "b": {"quota": 8}}, {"a": 8.0, "b": 12.0},
            [("quota", 4), ("weight", 4)], id="quota, then half of what is left",
        ),
        pytest.param(
            {"a": 6, "b": 30}, {"a": {"quota": 4}, "b": {"quota": 8}}, {"a": 6.0, "b": 14.0},
            [("quota", 4), ("weight", 4), ("demand", -2)], id="no more than requested",
        ),
        pytest.param(
            {"a": 30, "b": 30}, {"a": {"quota": 4, "limit": 5}, "b": {"quota": 8}},
            {"a": 5.0, "b": 15.0},
            [("quota", 4), ("weight", 4), ("limit", -3)], id="no more than the limit",
        ),
        pytest.param(
            {"a": 30, "b": 9}, {"a": {"quota": 4}, "b": {"quota": 8}}, {"a": 11.0, "b": 9.0},
            [("quota", 4), ("weight", 4), ("rest", 3)], id="and what a sibling leaves",
        ),
        pytest.param(
            {"a": 30, "b": 30}, {"a": {"quota": 4}, "b": {"quota": 8}}, {"a": 10.0, "b": 10.0},
            [("quota", 4), ("weight", 4), ("other", 2)], id="the scheduler knows more",
        ),
    ],
)  # fmt: skip
def test_the_steps_of_a_share_add_up(
    client: APIClient,
    requests: dict[str, float],
    bounds: dict[str, dict[str, float]],
    shares: dict[str, float],
    steps: list[tuple[str, float]],
) -> None:
    family(shares, requests, **bounds)
    item = get(client, "/queues/a/share")
    gpu = item["resources"]["gpu"]
    assert (item["parent"], gpu["pool"], gpu["share"]) == ("dept", 20, shares["a"])
    assert [(step["kind"], step["amount"]) for step in gpu["steps"]] == steps
    assert sum(step["amount"] for step in gpu["steps"]) == gpu["share"]
    assert {sibling["queue"]: sibling["share"] for sibling in gpu["siblings"]} == shares


def test_an_idle_queue_sees_what_it_would_get(client: APIClient) -> None:
    family({"a": 0.0, "b": 20.0}, {"a": 0, "b": 30}, a={"quota": 4}, b={"quota": 8})
    gpu = get(client, "/queues/a/share")["resources"]["gpu"]
    assert (gpu["share"], gpu["wouldGet"]) == (0, 8)


def test_a_higher_priority_is_served_before(client: APIClient) -> None:
    family({"a": 4.0, "b": 16.0}, {"a": 30, "b": 30}, a={"quota": 4}, b={"quota": 8})
    Queue.objects.filter(name="b").update(priority=200)
    gpu = get(client, "/queues/a/share")["resources"]["gpu"]
    assert [(step["kind"], step["amount"]) for step in gpu["steps"]] == [
        ("quota", 4), ("weight", 0),
    ]  # fmt: skip


def test_a_top_queue_divides_the_healthy_nodes(client: APIClient) -> None:
    mirror(
        listed(QUEUES, a_queue("top", gpu={**OPEN, "quota": 2})),
        listed(NODES, a_node("n1", gpus=8), a_node("n2", gpus=4, ready=False)),
    )
    assert get(client, "/queues/top/share")["resources"]["gpu"]["pool"] == 8
    get(client, "/queues/nowhere/share", 404)


def test_access_names_who_may_edit_and_why(
    client: APIClient, editor: APIClient, viewer: APIClient
) -> None:
    mirror(listed(QUEUES, a_queue("science"), a_queue("physics", parent="science"), a_queue("x")))
    RoleBinding.objects.create(
        user=User.objects.create_user("paul"), role=Role.EDITOR, subtree="physics"
    )
    rows = [
        (row["username"], row["role"], row["subtree"], row["mayEdit"])
        for row in get(editor, "/queues/physics/access")["items"]
    ]
    assert rows == [
        ("ada", "admin", None, True),
        ("emmy", "editor", "science", True),
        ("paul", "editor", "physics", False),
    ]
    get(editor, "/queues/x/access", 403)
    get(viewer, "/queues/physics/access", 403)


@pytest.fixture
def cluster_with_work(renew: Renew, mirrored: None) -> FakeGateway:
    cluster = renew()
    cluster.seed(NODES, {"metadata": {"name": "n1", "managedFields": [{"manager": "kubelet"}]}})
    return cluster


def test_a_manifest_is_the_object_of_the_cluster(
    client: APIClient, cluster_with_work: FakeGateway
) -> None:
    for path, kind, name in (
        ("/queues/physics/yaml", "Queue", "physics"),
        ("/nodes/n1/yaml", "Node", "n1"),
        ("/workloads/team/in-physics/yaml", "PodGroup", "in-physics"),
    ):
        response = client.get(API + path, HTTP_ACCEPT="application/yaml")
        assert response["Content-Type"].startswith("application/yaml")
        body = yaml.safe_load(response.content)
        assert (body["kind"], body["metadata"]["name"]) == (kind, name)
        assert "managedFields" not in body["metadata"]
        assert get(client, path)["kind"] == kind
    full = get(client, "/nodes/n1/yaml?managedFields=true")
    assert full["metadata"]["managedFields"] == [{"manager": "kubelet"}]
    refusal = client.get(f"{API}/queues/nowhere/yaml", HTTP_ACCEPT="application/yaml")
    assert refusal.status_code == 404


def test_events_of_a_workload_and_its_pods_come_newest_first(
    client: APIClient, cluster_with_work: FakeGateway
) -> None:
    mirror(listed(PODS, a_pod("p0", group="in-physics", namespace="team")))
    for number, (kind, name, reason) in enumerate(
        (("PodGroup", "in-physics", "Evict"), ("Pod", "p0", "Pipelined"), ("Pod", "other", "X"))
    ):
        cluster_with_work.seed(
            EVENTS,
            {
                "metadata": {"name": f"e{number}", "namespace": "team"},
                "involvedObject": {"kind": kind, "name": name},
                "reason": reason, "message": "text", "type": "Normal", "count": 2,
                "lastTimestamp": f"2026-11-29T12:00:0{number}Z",
            },
        )  # fmt: skip
    rows = get(client, "/workloads/team/in-physics/events")["items"]
    assert [(row["about"], row["reason"], row["count"]) for row in rows] == [
        ("Pod p0", "Pipelined", 2), ("PodGroup in-physics", "Evict", 2),
    ]  # fmt: skip


def test_a_timeline_has_evictions_requests_and_events_newest_first(
    client: APIClient, cluster_with_work: FakeGateway
) -> None:
    key, start = "team/in-physics", PodGroup.objects.get(key="team/in-physics").created_at
    PodGroup.objects.filter(key=key).update(started_at=start + timedelta(seconds=1))
    EvictionRecord.objects.create(
        session=7, at=start + timedelta(seconds=2), shard="default", rule="reclaim", workload=key,
        queue="physics", evictor="team/x", evictor_queue="product", pods=2, gpu=2, text="because",
    )  # fmt: skip
    QuotaChange.objects.create(
        kind=AuditKind.WORKLOAD, target=key, action="hold", actor="ada", reason="later",
        at=start + timedelta(seconds=3), queue="physics",
    )  # fmt: skip
    cluster_with_work.seed(
        EVENTS,
        {
            "metadata": {"name": "e", "namespace": "team"},
            "involvedObject": {"kind": "PodGroup", "name": "in-physics"},
            "reason": "Evict", "message": "text", "type": "Normal", "count": 3,
            "lastTimestamp": format_time(start + timedelta(seconds=4)),
        },
    )  # fmt: skip
    rows = get(client, f"/workloads/{key}/timeline")["items"]
    assert [(row["kind"], row["what"], row["about"], row["text"], row["count"]) for row in rows] == [
        ("event", "Evict", "PodGroup in-physics", "text", 3),
        ("request", "hold", "", "later", 1),
        ("evicted", "reclaim", "team/x", "because", 2),
        ("started", "started", "", "", 1),
        ("created", "created", "", "", 1),
    ]  # fmt: skip
    assert (rows[1]["actor"], rows[2]["session"]) == ("ada", 7)
    assert client.get(f"{API}/workloads/team/none/timeline").status_code == 404


def test_a_topology_counts_free_gpus_and_spread(
    client: APIClient, renew: Renew, monkeypatch: pytest.MonkeyPatch
) -> None:
    levels = [{"nodeLabel": "block"}, {"nodeLabel": "example.com/rack", "alias": "rack"}]
    renew().seed(TOPOLOGIES, {"metadata": {"name": "net"}, "spec": {"levels": levels}})
    nodes = [
        a_node(f"n{number}", number, gpus=8, labels={"block": "b1", "example.com/rack": rack})
        for number, rack in enumerate(("r1", "r1", "r2"))
    ]
    mirror(
        listed(QUEUES, a_queue("q")),
        listed(NODES, *nodes, a_node("outside", 9, gpus=8)),
        listed(PODGROUPS, a_group("wide", queue="q"), a_group("small", 2, queue="q")),
        listed(
            PODS,
            a_pod("w0", 1, group="wide", node="n0", gpus=3, phase="Running"),
            a_pod("w1", 2, group="wide", node="n2", gpus=8, phase="Running"),
            a_pod("s0", 3, group="small", node="n0", gpus=1, phase="Running"),
        ),
    )
    assert get(client, "/topologies")["items"] == [
        {"name": "net", "levels": ["block", "example.com/rack"]}
    ]
    item = get(client, "/topologies/net")
    assert [level["name"] for level in item["levels"]] == ["block", "rack"]
    figures = [
        (row["id"], row["parent"], row["gpuTotal"], row["gpuFree"], row["largestGang"], row["workloads"])
        for row in item["domains"]
    ]  # fmt: skip
    assert figures == [
        ("b1", None, 24, 12, 12, 2), ("b1/r1", "b1", 16, 12, 12, 2), ("b1/r2", "b1", 8, 0, 0, 1),
    ]  # fmt: skip
    assert item["outside"] == ["outside"]
    spread = {row["workload"]: (row["gpu"], row["domains"][1]) for row in item["workloads"]}
    assert spread == {
        "default/wide": (11, ["b1/r1", "b1/r2"]), "default/small": (1, ["b1/r1"]),
    }  # fmt: skip
    monkeypatch.setattr(topologies, "LISTED_WORKLOADS", 1)
    item = get(client, "/topologies/net")
    assert [row["workload"] for row in item["workloads"]] == ["default/wide"]
    assert item["domains"][0]["workloads"] == 2  # also those that are not listed
    get(client, "/topologies/nowhere", 404)


def test_a_node_that_claims_too_many_gpus_has_a_bounded_answer(client: APIClient) -> None:
    mirror(listed(NODES, a_node("n1", gpus=100_000)))
    item = get(client, "/nodes/n1")
    assert (item["gpuTotal"], len(item["devices"])) == (100_000, MAX_SHOWN_DEVICES)
    get(client, f"/gpus/n1/{MAX_SHOWN_DEVICES}", 404)


def test_a_node_lists_its_pods_also_those_without_gpus(client: APIClient) -> None:
    mirror(
        listed(NODES, a_node("n1", gpus=8)),
        listed(PODGROUPS, a_group("g", queue="q")),
        listed(
            PODS,
            a_pod("big", 1, group="g", node="n1", gpus=4, phase="Running"),
            a_pod("agent", 2, node="n1", phase="Running"),
            a_pod("done", 3, node="n1", gpus=8, phase="Succeeded"),
        ),
    )
    rows = [
        (row["name"], row["queue"], row["gpu"], row["state"])
        for row in get(client, "/nodes/n1/pods")["items"]
    ]
    assert rows == [("big", "q", 4, "running"), ("agent", "", 0, "running")]
    assert "labels" in get(client, "/nodes/n1")
    get(client, "/nodes/n2/pods", 404)


APPLIED = {
    "manager": "argocd", "operation": "Apply", "apiVersion": "scheduling.run.ai/v2",
    "time": "2026-11-29T11:00:00Z", "fieldsType": "FieldsV1",
    "fieldsV1": {"f:spec": {"f:resources": {"f:gpu": {"f:quota": {}}}}},
}  # fmt: skip


def owned_queue(cluster: FakeGateway) -> None:
    body = cluster.raw(QUEUES, "physics")
    body["metadata"]["managedFields"] = [APPLIED]
    cluster.replace(QUEUES, "physics", body)


def test_a_draft_of_a_queue_that_git_owns_is_exported_as_patches(
    client: APIClient, cluster_with_work: FakeGateway
) -> None:
    owned_queue(cluster_with_work)
    edits = [
        {"name": "physics", "edit": {"quota": {"gpu": 6}, "priority": 5, "limit": {"gpu": None}}},
        {"name": "fresh", "action": "create", "edit": {"parent": "science", "quota": {"gpu": 1}}},
        {"name": "product", "action": "delete"},
    ]
    change = client.post(f"{API}/changes", {"edits": edits, "title": "More"}, format="json").json()
    assert "field-owned" in {error["code"] for error in change["errors"]}
    response = client.get(f"{API}/changes/{change['id']}/patch")
    assert response["Content-Type"].startswith("application/yaml")
    text = response.content.decode()
    assert text.startswith("# More\n")
    patch, created, deleted = yaml.safe_load_all(text)
    assert patch == {
        "apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": "physics"},
        "spec": {"resources": {"gpu": {"quota": 6, "limit": None}}, "priority": 5},
    }  # fmt: skip
    assert (created["metadata"]["name"], created["spec"]["parentQueue"]) == ("fresh", "science")
    assert deleted["$patch"] == "delete"
    assert client.get(f"{API}/changes/999/patch").status_code == 404


def test_an_admin_takes_a_queue_over_and_the_audit_log_says_from_whom(
    client: APIClient, cluster_with_work: FakeGateway
) -> None:
    owned_queue(cluster_with_work)
    path = f"{API}/queues/physics/take-over?reason=moved"
    refused = client.post(path, {"owner": "flux"}, format="json")
    assert (refused.status_code, refused.json()["type"].rsplit("/", 1)[1]) == (409, "field-owned")
    response = client.post(path, {"owner": "argocd"}, format="json")
    assert (response.status_code, response.json()["managedBy"]) == (200, "")
    managers = [
        entry["manager"]
        for entry in cluster_with_work.raw(QUEUES, "physics")["metadata"].get("managedFields", [])
    ]
    assert "argocd" not in managers
    [entry] = get(client, "/audit?queue=physics")["items"]
    assert (entry["action"], entry["state"], entry["reason"], entry["diff"]) == (
        "takeOver", "done", "moved",
        [{"pointer": "/managedBy", "before": "argocd", "after": "kaiweb"}],
    )  # fmt: skip
    edit = [{"name": "physics", "edit": {"quota": {"gpu": 6}}}]
    change = client.post(f"{API}/changes", {"edits": edit}, format="json").json()
    assert change["errors"] == []


def test_only_admins_take_queues_over(editor: APIClient, cluster_with_work: FakeGateway) -> None:
    owned_queue(cluster_with_work)
    answer = editor.post(f"{API}/queues/physics/take-over", {"owner": "argocd"}, format="json")
    assert answer.status_code == 403


def test_yaml_shows_a_text_of_several_lines_as_a_block():
    annotations = {"owner": "name: train\nkind: Job\n", "user": "ada"}
    expected = b"owner: |\n  name: train\n  kind: Job\nuser: ada\n"
    assert YamlRenderer().encode(annotations) == expected
