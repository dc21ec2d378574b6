"""Failed binds as people and scripts see them, and the other attempt for a workload's pods and for a node."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from rest_framework.test import APIClient

from kaiweb.items.amounts import timestamp
from kube.resources import NODES, PODGROUPS, PODS, QUEUES
from kube.values.times import time_or_none
from queues.mirror.feed import Mirror
from queues.mirror.kinds import KINDS
from queues.mirror.writer import Writer
from queues.models import Role, RoleBinding
from scheduler.models import RestingNode
from tests.fakes.gateway import FakeGateway
from tests.kaiweb.api.conftest import NOON, token_client
from tests.queues.cluster_objects import a_group, a_node, a_pod, a_queue, added, listed

pytestmark = pytest.mark.django_db
API = "/api/v1"


@pytest.fixture
def world(db: None) -> Mirror:
    """Workload `waits` in queue `team`, with one pod that waits, and two nodes."""
    mirror = Mirror(KINDS, Writer(sleep=lambda _s: None), now=lambda: NOON)
    mirror.consume(
        [
            listed(QUEUES, a_queue("top", 1), a_queue("team", 2, parent="top")),
            listed(NODES, a_node("n1", 3), a_node("n2", 4)),
            added(PODGROUPS, a_group("waits", 6)),
            added(PODS, a_pod("w0", 9, group="waits", gpus=4)),
        ]
    )
    return mirror


def get(client: APIClient, path: str) -> Any:
    response = client.get(API + path)
    assert response.status_code == 200, response.content
    return response.json()


FAILED_TWICE = {
    "count": 2, "last": "2026-11-29T12:00:10Z", "next": "2026-11-29T12:00:14Z", "nodes": ["n1"],
    "reason": "denied by a webhook",
}  # fmt: skip


def failed_pod(version: int, **more: Any) -> Any:
    notes = {"kaiweb.dev/bind-failures": json.dumps(FAILED_TWICE)}
    return added(PODS, a_pod("w0", version, group="waits", gpus=4, annotations=notes, **more))


def test_a_pod_shows_how_often_its_bind_failed_and_when_it_is_tried_next(
    client: APIClient, world: Mirror
) -> None:
    world.consume([failed_pod(40)])
    pod = get(client, "/workloads/default/waits")["podList"][0]
    assert pod["failedBinds"] == {
        "count": 2, "lastAt": "2026-11-29T12:00:10.000Z", "nextAt": "2026-11-29T12:00:14.000Z",
        "nodes": ["n1"], "error": "denied by a webhook",
    }  # fmt: skip
    reset = {"kaiweb.dev/binds-reset-at": "2026-11-29T12:00:11Z"}
    world.consume([added(PODGROUPS, a_group("waits", 41, annotations=reset))])
    assert get(client, "/workloads/default/waits/pods")["items"][0]["failedBinds"] is None
    world.consume([failed_pod(42, node="n1")])
    assert get(client, "/workloads/default/waits")["podList"][0]["failedBinds"] is None


def test_a_node_that_rests_shows_until_when_and_can_have_pods_again(
    client: APIClient,
    world: Mirror,
    cluster: FakeGateway,
    monkeypatch: pytest.MonkeyPatch,
    settings: Any,
) -> None:
    monkeypatch.setattr("kaiweb.api.views.nodes.gateway", lambda: cluster)
    cluster.seed(PODGROUPS, {"metadata": {"name": "waits", "namespace": "default"}, "spec": {}})
    world.consume([failed_pod(40)])
    until = timezone.now().replace(microsecond=0) + timedelta(seconds=50)
    RestingNode.objects.create(name="n1", shard="default", until=until, pods=["default/w0"])
    RestingNode.objects.create(name="n2", shard="default", until=NOON - timedelta(days=9))
    rests = [node["rest"] for node in get(client, "/nodes")["items"]]
    assert rests == [{"until": timestamp(until), "pods": ["default/w0"]}, None]

    user = User.objects.create_user("editor-elsewhere")
    RoleBinding.objects.create(user=user, role=Role.EDITOR, subtree="elsewhere")
    elsewhere = token_client(user, ["workloads:write", "read"])
    refusal = elsewhere.post(f"{API}/nodes/n1/retry-bind")
    assert (refusal.status_code, b"team" in refusal.content) == (403, False)
    settings.KAIWEB_READING = "granted"
    assert get(elsewhere, "/nodes/n1")["rest"]["pods"] == [""]
    settings.KAIWEB_READING = "all"
    answer = client.post(f"{API}/nodes/n1/retry-bind")
    assert answer.json() == {"name": "n1", "workloads": ["default/waits"]}
    annotations = cluster.raw(PODGROUPS, "waits", "default")["metadata"]["annotations"]
    assert time_or_none(annotations["kaiweb.dev/binds-reset-at"]) is not None
    entry = get(client, "/audit?kind=workload")["items"][0]
    assert (entry["action"], entry["target"], entry["state"]) == ("retryBind", "default/waits", "done")  # fmt: skip
    assert client.post(f"{API}/nodes/n2/retry-bind").json()["workloads"] == []
    assert client.post(f"{API}/nodes/n9/retry-bind").status_code == 404


def test_an_editor_of_its_queue_lets_a_failed_bind_be_tried_again(
    client: APIClient, world: Mirror, cluster: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kaiweb.api.views.workload_actions.gateway", lambda: cluster)
    cluster.seed(PODGROUPS, {"metadata": {"name": "waits", "namespace": "default"}, "spec": {}})
    path = f"{API}/workloads/default/waits/retry-bind"
    for subtree, status in (("elsewhere", 403), ("team", 204), ("top", 204)):
        user = User.objects.create_user(f"editor-of-{subtree}")
        RoleBinding.objects.create(user=user, role=Role.EDITOR, subtree=subtree)
        assert token_client(user, ["workloads:write"]).post(path).status_code == status
    annotations = cluster.raw(PODGROUPS, "waits", "default")["metadata"]["annotations"]
    assert time_or_none(annotations["kaiweb.dev/binds-reset-at"]) is not None
    assert client.post(f"{API}/workloads/default/nobody/retry-bind").status_code == 404
