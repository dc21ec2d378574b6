"""The snapshot of a shard over REST is the file that `kaiweb snapshot replay` reads."""

from __future__ import annotations

import json
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from rest_framework.test import APIClient

from kaiweb.api.views.shards import snapshot
from kube.resources import CONFIGMAPS, NODES, PODGROUPS, PODS, QUEUES, SHARDS
from scheduler.load.archive import MEMBER, read_archive
from scheduler.tools.replay import decision_lines, replay
from tests.fakes.gateway import FakeGateway
from tests.kaiweb.api.conftest import NOON, queue_body

pytestmark = pytest.mark.django_db
URL = "/api/v1/snapshot"


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeGateway:
    """A cluster with a node, a pod that waits, and a second shard."""
    fake = FakeGateway(now=NOON)
    allocatable = {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "4", "pods": "110"}
    fake.seed(QUEUES, queue_body("team", quota=4))
    fake.seed(NODES, {"metadata": {"name": "n1"}, "status": {"allocatable": allocatable, "conditions": [{"type": "Ready", "status": "True"}]}})  # fmt: skip
    fake.seed(PODGROUPS, {"metadata": {"name": "job", "namespace": "ns"}, "spec": {"queue": "team", "minMember": 1}})  # fmt: skip
    fake.seed(PODS, {
        "metadata": {"name": "job-0", "namespace": "ns", "annotations": {"pod-group-name": "job"}},
        "spec": {
            "schedulerName": "kai-scheduler",
            "containers": [{"name": "c", "resources": {"requests": {"nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "1"}}}],
        },
        "status": {"phase": "Pending"},
    })  # fmt: skip
    fake.seed(CONFIGMAPS, {"metadata": {"name": "secretive", "namespace": "ns"}, "data": {"a": "b"}})  # fmt: skip
    fake.seed(SHARDS, {"metadata": {"name": "pool-a"}, "spec": {"partitionLabelValue": "a"}})
    monkeypatch.setattr(snapshot, "gateway", lambda: fake)
    return fake


def content(response: Any) -> dict[str, Any]:
    with zipfile.ZipFile(BytesIO(response.content)) as archive:
        body: dict[str, Any] = json.loads(archive.read(MEMBER))
    return body


def test_it_replays_and_holds_no_config_maps(
    client: APIClient, cluster: FakeGateway, tmp_path: Path
) -> None:
    response = client.get(URL)
    assert (response.status_code, response.headers["Content-Type"]) == (200, "application/zip")
    assert response.headers["Content-Disposition"] == 'attachment; filename="snapshot-default.zip"'
    file = tmp_path / "snapshot.zip"
    file.write_bytes(response.content)
    assert decision_lines(replay(read_archive(file))) == ["bind ns/job-0 to n1"]
    assert b"secretive" not in zipfile.ZipFile(file).read(MEMBER)


def test_names_can_be_replaced(client: APIClient, cluster: FakeGateway) -> None:
    objects = content(client.get(f"{URL}?anonymise=true"))["rawObjects"]
    assert objects["queues"][0]["metadata"]["name"] != "team"


def test_another_shard_has_its_own_objects(client: APIClient, cluster: FakeGateway) -> None:
    body = content(client.get(f"{URL}?shard=pool-a"))
    assert (body["kaiweb"]["shard"], body["rawObjects"]["nodes"]) == ("pool-a", [])
    assert client.get(f"{URL}?shard=pool-b").status_code == 404


def test_settings_that_cannot_be_used_have_no_snapshot(
    client: APIClient, cluster: FakeGateway
) -> None:
    cluster.patch(SHARDS, "pool-a", {"spec": {"actions": {"dance": {}}}})
    refused = client.get(f"{URL}?shard=pool-a")
    assert refused.status_code == 409
    assert "unknown action 'dance'" in refused.json()["detail"]


def test_one_is_made_at_a_time(client: APIClient, cluster: FakeGateway) -> None:
    with snapshot._one_at_a_time:
        busy = client.get(URL)
    assert (busy.status_code, busy.headers["Retry-After"]) == (503, "5")
    assert client.get(URL).status_code == 200


def test_it_is_for_admins(viewer: APIClient, cluster: FakeGateway) -> None:
    assert viewer.get(URL).status_code == 403
