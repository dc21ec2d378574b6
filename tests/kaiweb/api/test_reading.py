"""Workloads, nodes, GPUs, sessions, bind requests, the cluster: the mirror as people and scripts see it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rest_framework.test import APIClient

from binder import mirror as binder_mirror
from kube.objects.bindrequest import BindRequest
from kube.objects.meta import convert
from kube.resources import BINDREQUESTS, NODES, PODGROUPS, PODS, QUEUES
from queues.mirror.feed import Mirror, write_heartbeat
from queues.mirror.kinds import KINDS
from queues.mirror.lone_pods import show_lone_pods
from queues.mirror.rollup import ReasonSources
from queues.mirror.writer import Writer
from queues.workloads.reasons import Standing
from scheduler.models import PlacementRecord, QueueShare, SessionRecord
from tests.queues.cluster_objects import a_group, a_node, a_pod, a_queue, added, listed, meta

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
API = "/api/v1"
#: The nodes of these tests are tainted `dedicated=ml`.
TOLERANT = {"tolerations": [{"key": "dedicated", "operator": "Exists"}]}
NOT_N1 = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n1"]}]}
            ]
        }
    }
}


@pytest.fixture
def world(db: None) -> Mirror:
    """Two queues; one running gang, one pod that waits with a reason, one part of a device."""
    writer = Writer(
        sleep=lambda _s: None, sources=ReasonSources(bind_errors=binder_mirror.bind_errors)
    )
    mirror = Mirror((*KINDS, binder_mirror.KIND), writer, now=lambda: NOON)
    condition = {
        "nodePool": "default", "reason": "Unschedulable", "status": "True", "transitionID": "1",
        "message": "OverLimit: team quota has reached the allowable limit of GPUs.",
        "lastTransitionTime": "2026-11-29T12:03:00Z",
        "reasons": [{
            "reason": "OverLimit", "message": "Limit is 2 GPUs",
            "details": {"queueDetails": {
                "name": "team", "podGroupRequestedResources": {"nvidia.com/gpu": "4"},
                "queueResourceLimits": {"nvidia.com/gpu": "2"},
                "queueAllocatedResources": {"nvidia.com/gpu": "1"},
            }},
        }],
    }  # fmt: skip
    mirror.consume(
        [
            listed(QUEUES, a_queue("top", 1, gpu={"quota": 8}), a_queue("team", 2, parent="top")),
            listed(NODES, a_node("n1", 3), a_node("n2", 4, gpus=4, ready=False)),
            added(PODGROUPS, a_group("gang", 5, min_member=2)),
            added(PODGROUPS, a_group("waits", 6, conditions=[condition])),
            added(PODS, a_pod("g0", 7, group="gang", node="n1", gpus=2, phase="Running")),
            added(PODS, a_pod("g1", 8, group="gang", node="n1", gpus=2, phase="Running")),
            added(PODS, a_pod("w0", 9, group="waits", gpus=4, message="no room")),
        ]
    )
    return mirror


def get(client: APIClient, path: str) -> Any:
    response = client.get(API + path)
    assert response.status_code == 200, response.content
    return response.json()


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("", ["gang", "waits"]),
        ("?state=pending", ["waits"]),
        ("?state=pending,running", ["gang", "waits"]),
        ("?queue=top", []),
        ("?queue=top&subtree=true", ["gang", "waits"]),
        ("?reason=OverLimit", ["waits"]),
        ("?q=GAN", ["gang"]),
        ("?namespace=other", []),
        ("?sort=-gpu&limit=1", ["gang"]),
        ("?sort=-createdAt", ["gang", "waits"]),
    ],
)
def test_workloads_are_filtered(
    client: APIClient, world: Mirror, query: str, names: list[str]
) -> None:
    assert [item["name"] for item in get(client, f"/workloads{query}")["items"]] == names


@pytest.mark.parametrize("query", ["?state=asleep", "?statte=pending", "?subtree=maybe&queue=top"])
def test_a_filter_that_means_nothing_is_refused(
    client: APIClient, world: Mirror, query: str
) -> None:
    assert client.get(f"{API}/workloads{query}").status_code == 400


def test_a_waiting_workload_has_the_same_reason_everywhere(
    client: APIClient, world: Mirror
) -> None:
    text = "OverLimit: team quota has reached the allowable limit of GPUs."
    item = get(client, "/workloads?state=pending")["items"][0]
    detail = get(client, "/workloads/default/waits")
    explain = get(client, "/workloads/default/waits/explain")
    assert [(workload["reason"], workload["reasonText"]) for workload in (item, detail)] == [
        ("OverLimit", text)
    ] * 2
    assert (explain["reason"], explain["text"]) == ("OverLimit", text)
    assert explain["since"] == item["reasonSince"] == "2026-11-29T12:03:00.000Z"
    assert explain["evidence"] == [
        {
            "name": "limit of GPUs", "asked": "4", "available": "2, of which 1 in use",
            "where": "team",
        }
    ]  # fmt: skip
    stages = {stage["stage"]: stage["state"] for stage in explain["stages"]}
    assert stages == {
        "managed": "ok", "grouped": "ok", "queue": "ok", "quota": "ok", "limit": "blocked",
        "order": "unknown", "nodes": "unknown", "topology": "unknown", "volumes": "unknown",
        "bind": "unknown", "started": "unknown",
    }  # fmt: skip


def test_a_placed_workload_shows_why_its_pods_are_on_their_nodes(
    client: APIClient, world: Mirror
) -> None:
    reason = {"strategy": "binpack", "decidedBy": "binpack", "possible": 2}
    later = NOON + timedelta(days=400)
    for pod, node in (("g0", "n1"), ("g1", "n9"), ("gone", "n1")):
        PlacementRecord.objects.create(
            pod=f"default/{pod}", workload="default/gang", node=node, at=later, reason=reason
        )
    placements = get(client, "/workloads/default/gang/explain")["placements"]
    assert placements == [{"pod": "g0", "node": "n1", "at": "2028-01-03T12:00:00.000Z", **reason}]
    PlacementRecord.objects.update(at=NOON - timedelta(days=400))
    assert get(client, "/workloads/default/gang/explain")["placements"] == []
    assert get(client, "/workloads/default/waits/explain")["placements"] == []


def test_the_order_lists_the_position_and_the_workloads_ahead(
    client: APIClient, world: Mirror
) -> None:
    standings_by_group = {
        f"default/{name}": Standing(code="DeviceShortage", position=place)
        for name, place in (("waits", 3), ("first", 1), ("second", 2))
    }
    world.writer.sources = ReasonSources(
        standings=lambda keys: {k: standings_by_group[k] for k in keys if k in standings_by_group}
    )
    for number, (name, queue) in enumerate((("first", "top"), ("second", "team"))):
        world.consume(
            [
                added(PODGROUPS, a_group(name, 20 + number, queue=queue)),
                added(PODS, a_pod(f"{name}-0", 30 + number, group=name, gpus=1)),
            ]
        )
    world.writer.refresh_groups(["default/waits"])
    item = get(client, "/workloads/default/waits")
    assert item["position"] == 3
    order = item["explain"]["order"]
    assert (order["position"], order["of"], order["aheadInQueue"]) == (3, 3, 1)
    assert [(workload["name"], workload["queue"], workload["position"]) for workload in order["ahead"]] == [
        ("second", "team", 2), ("first", "top", 1),
    ]  # fmt: skip
    assert get(client, "/workloads/default/gang")["explain"]["order"] is None

    def names(path: str) -> list[str]:
        return [item["name"] for item in get(client, path)["items"]]

    assert names("/order") == ["first", "second", "waits"]
    assert names("/queues/team/order") == ["second", "waits"]
    assert names("/queues/top/order?pool=") == ["first", "second", "waits"]
    assert names("/order?pool=a100") == []
    assert client.get(f"{API}/queues/nowhere/order").status_code == 404


def test_who_finds_no_room_sees_the_most_that_is_free(client: APIClient, world: Mirror) -> None:
    standings_by_group = {"default/big": Standing(code="DeviceShortage", position=1)}
    world.writer.sources = ReasonSources(
        standings=lambda keys: {k: standings_by_group[k] for k in keys if k in standings_by_group}
    )
    world.consume(
        [
            added(PODGROUPS, a_group("big", 20)),
            added(PODS, a_pod("big-0", 21, group="big", gpus=8, spec=TOLERANT)),
        ]
    )
    assert get(client, "/workloads/default/big/explain")["evidence"] == [
        {
            "name": "GPUs for one pod", "asked": "8", "available": "4 at most",
            "where": "n1, of 1 nodes",
        },
        {
            "name": "CPU cores for one pod", "asked": "0.5", "available": "63 at most",
            "where": "n1, of 1 nodes",
        },
        {
            "name": "memory (GB) for one pod", "asked": "1.074", "available": "272.73 at most",
            "where": "n1, of 1 nodes",
        },
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("spec", "evidence"),
    [
        (TOLERANT | {"nodeSelector": {"kubernetes.io/hostname": "n3"}}, ["2 at most", "n3, of 1 nodes it may use (2 are ready)"]),
        (TOLERANT | {"affinity": NOT_N1}, ["2 at most", "n3, of 1 nodes it may use (2 are ready)"]),
        (TOLERANT, ["4 at most", "n1, of 2 nodes"]),
        ({}, ["0", "2 nodes are ready; its node selector, its affinity or their taints exclude all"]),
    ],
)  # fmt: skip
def test_evidence_about_nodes_is_only_about_nodes_the_pod_may_use(
    client: APIClient, world: Mirror, spec: dict[str, Any], evidence: list[str]
) -> None:
    world.writer.sources = ReasonSources(
        standings=lambda keys: {key: Standing(code="DeviceShortage") for key in keys}
    )
    world.consume(
        [
            added(NODES, a_node("n3", 19, gpus=2, labels={"kubernetes.io/hostname": "n3"})),
            added(PODGROUPS, a_group("big", 20)),
            added(PODS, a_pod("big-0", 21, group="big", gpus=8, spec=spec)),
        ]
    )
    first = get(client, "/workloads/default/big/explain")["evidence"][0]
    assert [first["available"], first["where"]] == evidence


def test_a_resource_that_was_not_short_is_no_evidence(client: APIClient, world: Mirror) -> None:
    condition = {
        "nodePool": "default", "reason": "Unschedulable", "status": "True", "transitionID": "1",
        "message": "over quota", "lastTransitionTime": "2026-11-29T12:03:00Z",
        "reasons": [{
            "reason": "NonPreemptibleOverQuota", "message": "over quota",
            "details": {"queueDetails": {
                "name": "team",
                "podGroupRequestedResources": {"nvidia.com/gpu": "4", "cpu": "500m", "memory": "1G"},
                "queueDeservedResources": {"nvidia.com/gpu": "3", "cpu": "-1m", "memory": "2G"},
                "queueAllocatedNonPreemptibleResources": {"nvidia.com/gpu": "500m"},
            }},
        }],
    }  # fmt: skip
    world.consume([added(PODGROUPS, a_group("waits", 30, conditions=[condition]))])
    assert get(client, "/workloads/default/waits/explain")["evidence"] == [
        {
            "name": "quota of GPUs", "asked": "4", "available": "3, of which 0.5 in use",
            "where": "team",
        }
    ]  # fmt: skip


def test_a_workload_that_cannot_start_has_no_turn(client: APIClient, world: Mirror) -> None:
    world.writer.sources = ReasonSources(
        standings=lambda keys: {key: Standing(code="NeverFits", position=1) for key in keys}
    )
    world.consume(
        [added(PODGROUPS, a_group("huge", 20)), added(PODS, a_pod("h", 21, group="huge"))]
    )
    assert get(client, "/workloads/default/huge/explain")["order"] is None


def test_a_pod_that_nobody_manages_is_a_workload_too(client: APIClient, world: Mirror) -> None:
    labels = {"kai.scheduler/queue": "team"}
    lone = a_pod("lone", 20, gpus=1, labels=labels, scheduler="kai-scheduler")
    world.consume([added(PODS, lone)])
    show_lone_pods("kai-scheduler", NOON + timedelta(minutes=1))
    (item,) = get(client, "/workloads?reason=Unmanaged")["items"]
    assert (item["name"], item["kind"], item["owner"], item["queue"]) == (
        "pod:lone", "Pod", "lone", "team",
    )  # fmt: skip
    detail = get(client, "/workloads/default/pod:lone")
    assert [pod["name"] for pod in detail["podList"]] == ["lone"]
    assert get(client, "/workloads/default/pod:lone/pods")["items"] == detail["podList"]
    assert detail["explain"]["stages"][0] == {
        "stage": "managed", "state": "blocked",
        "text": "The pod grouper has created no pod group for it",
    }  # fmt: skip


def test_a_running_gang_shows_its_pods_and_cells(client: APIClient, world: Mirror) -> None:
    gang = get(client, "/workloads/default/gang")
    assert (gang["state"], gang["ready"], gang["minMember"], gang["gpu"]) == ("running", 2, 2, 4)
    assert (gang["kind"], gang["owner"], gang["nodes"]) == ("Job", "train", ["n1"])
    assert [(pod["name"], pod["state"], pod["devices"]) for pod in gang["podList"]] == [
        ("g0", "running", [0, 1]), ("g1", "running", [2, 3]),
    ]  # fmt: skip
    assert get(client, "/workloads/default/gang/pods")["items"] == gang["podList"]
    assert {stage["state"] for stage in gang["explain"]["stages"]} == {"ok"}


def test_a_failed_binding_is_the_reason_that_counts(client: APIClient, world: Mirror) -> None:
    failed = convert(
        {
            "metadata": meta("w0", 20, namespace="default"),
            "spec": {"podName": "w0", "selectedNode": "n1"},
            "status": {"phase": "Failed", "reason": "volume is busy", "failedAttempts": 1},
        },
        BindRequest,
    )
    world.consume([added(BINDREQUESTS, failed)])
    waits = get(client, "/workloads/default/waits")
    assert (waits["reason"], waits["reasonText"]) == ("BindFailing", "volume is busy")
    assert waits["podList"][0]["message"] == "volume is busy"
    requests = get(client, "/bind-requests?phase=Failed")["items"]
    assert [
        (request["pod"], request["node"], request["failedAttempts"]) for request in requests
    ] == [("w0", "n1", 1)]
    assert get(client, "/bind-requests/default/w0") == requests[0]
    assert client.get(f"{API}/bind-requests/default/other").status_code == 404


def test_nodes_and_gpus_agree(client: APIClient, world: Mirror) -> None:
    nodes = get(client, "/nodes")["items"]
    assert [(node["name"], node["ready"], node["gpuTotal"], node["gpuAllocated"]) for node in nodes] == [
        ("n1", True, 8, 4), ("n2", False, 4, 0),
    ]  # fmt: skip
    assert nodes[0]["cpu"] == {"allocatable": 64000, "allocated": 1000}
    cells = get(client, "/gpus?state=whole")["items"]
    assert [(cell["node"], cell["index"], cell["holders"][0]["pod"]) for cell in cells] == [
        ("n1", 0, "default/g0"), ("n1", 1, "default/g0"), ("n1", 2, "default/g1"), ("n1", 3, "default/g1"),
    ]  # fmt: skip
    node = get(client, "/nodes/n1")
    assert {name: value for name, value in node.items() if name != "labels"} == nodes[0]
    assert client.get(f"{API}/nodes/n9").status_code == 404
    assert get(client, "/gpus/n1/2") == cells[2]
    for unknown_gpu in ("n1/8", "n9/0"):
        assert client.get(f"{API}/gpus/{unknown_gpu}").status_code == 404


def test_a_broken_device_is_shown(client: APIClient, world: Mirror) -> None:
    node = a_node("n3", 30)
    body = convert(
        {
            "metadata": meta("n3", 31),
            "status": {
                "capacity": {"nvidia.com/gpu": "2"}, "allocatable": {"nvidia.com/gpu": "1"},
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        },
        type(node),
    )  # fmt: skip
    world.consume([added(NODES, body)])
    assert [cell["state"] for cell in get(client, "/nodes/n3")["devices"]] == ["free", "unhealthy"]


def test_the_queue_adds_up_workloads_and_shares(client: APIClient, world: Mirror) -> None:
    QueueShare.objects.create(shard="default", queue="team", cycle=1, gpu=1.5, cpu=100, memory=10)
    QueueShare.objects.create(shard="other", queue="team", cycle=1, gpu=0.5, cpu=0, memory=0)
    top, team = get(client, "/queues/top"), get(client, "/queues/team")
    assert (top["pendingWorkloads"], top["runningWorkloads"], top["totalWorkloads"]) == (1, 1, 2)
    assert team["share"] == {"gpu": 2, "cpuMilli": 100, "memoryBytes": 10}
    assert (top["share"], top["leaf"], team["leaf"]) == (None, False, True)


def test_the_cluster_in_one_item(client: APIClient, world: Mirror) -> None:
    write_heartbeat(NOON)
    cluster = get(client, "/cluster")
    assert cluster["gpus"] == {"total": 12, "allocated": 4, "free": 4, "unusable": 4}
    assert cluster["models"] == [{"model": "H100", **cluster["gpus"]}]
    assert [(each["free"], each["nodes"]) for each in cluster["freeByNode"]] == [(4, 1), (0, 1)]
    assert cluster["nodes"] == {"total": 2, "ready": 1, "cordoned": 0}
    assert cluster["workloads"] == {"pending": 1, "running": 1, "finished": 0, "failed": 0}
    assert cluster["pendingByReason"] == [{"reason": "OverLimit", "workloads": 1, "gpu": 4}]
    assert cluster["mirrorAt"] == cluster["asOf"]["time"] == "2026-11-29T12:00:00.000Z"


def test_sessions_come_newest_first(client: APIClient) -> None:
    for number in range(3):
        SessionRecord.objects.create(
            shard="default", number=number, started_at=NOON + timedelta(seconds=number),
            duration_ms=1.23456, bound=number, actions=[{"name": "allocate", "ms": 1.2}],
        )  # fmt: skip
    items = get(client, "/sessions?limit=2")["items"]
    assert [(item["number"], item["bound"], item["durationMs"]) for item in items] == [
        (2, 2, 1.235), (1, 1, 1.235),
    ]  # fmt: skip
    assert get(client, f"/sessions/{items[0]['id']}") == {**items[0], "decisions": []}
    assert get(client, "/sessions?shard=other")["items"] == []


@pytest.mark.parametrize(
    "path",
    [
        "/queues/x",
        "/workloads/a/b",
        "/workloads/a/b/explain",
        "/nodes/x",
        "/sessions/99",
        "/nothing",
    ],
)
def test_what_is_not_there_is_a_problem(client: APIClient, path: str) -> None:
    response = client.get(API + path)
    assert response.status_code == 404
    body = response.json()
    assert body["type"] == "https://kaiweb.dev/problems/not-found"
    assert body["instance"] == API + path
    assert body["requestId"] == response["Request-Id"]
    assert body["detail"]


def test_a_list_shows_only_the_fields_that_are_named(client: APIClient, world: Mirror) -> None:
    [first, *_rest] = get(client, "/workloads?fields=name,gpu&sort=-gpu,name")["items"]
    assert list(first) == ["name", "gpu"]
    assert get(client, "/workloads?fields=")["items"][0]["namespace"] == "default"
    refused = client.get(f"{API}/workloads?fields=name,colour")
    assert refused.status_code == 400
    assert "name" in refused.json()["errors"][0]["allowed"]
    assert client.get(f"{API}/workloads?sort=gpu,evictions").status_code == 400


def test_workloads_are_found_by_when_they_were_created(client: APIClient, world: Mirror) -> None:
    created = [row["createdAt"] for row in get(client, "/workloads?sort=createdAt")["items"]]
    newest = get(client, f"/workloads?createdAfter={created[-1]}")["items"]
    assert [row["createdAt"] for row in newest] == [at for at in created if at == created[-1]]
    assert client.get(f"{API}/workloads?createdAfter=today").status_code == 400
