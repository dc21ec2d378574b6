"""What REST tells of the utilisation: of nodes, devices, workloads and hours; null is unknown."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from kaiweb.usage import rollup, sampler
from queues.mirror.feed import write_heartbeat
from queues.models import Node, Queue
from tests.kaiweb.api.conftest import token_client
from tests.kaiweb.utilisation.conftest import MIDNIGHT, UTIL, Prometheus, hold, series

pytestmark = pytest.mark.django_db
NOW = MIDNIGHT + timedelta(minutes=3)
FROM = "from=2026-11-30T00:00:00Z"


@pytest.fixture
def minutes(
    read_at: Callable[[float], int], prometheus: Prometheus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three minutes: `lazy` holds two GPUs and uses one, `busy` uses its one, `unseen` has no series."""
    Queue.objects.create(name="dept", uid="d", version=1, created_at=MIDNIGHT, quota_gpu=8)
    Queue.objects.create(
        name="team", parent="dept", uid="t", version=1, created_at=MIDNIGHT, quota_gpu=8
    )
    hold("lazy", 2, [0, 1])
    hold("busy", 1, [2])
    hold("unseen", 1, [3])
    Node.objects.filter(name="n1").update(used_gpu=4)
    prometheus.answers = {
        UTIL: [
            series(90, 0, namespace="ns", pod="lazy-0"),
            series(0, 1, namespace="ns", pod="lazy-0"),
            series(70, 2, namespace="ns", pod="busy-0"),
        ]
    }
    for seconds in range(0, 181, 20):
        read_at(seconds)
        moment = MIDNIGHT + timedelta(seconds=seconds)
        write_heartbeat(moment)
        sampler.sample(moment)
        rollup.roll_up(moment)
    monkeypatch.setattr("django.utils.timezone.now", lambda: NOW)


@pytest.fixture
def viewer(db: None) -> APIClient:
    return token_client(User.objects.create_user("vera"), ["read"], now=datetime.now().astimezone())


def get(client: APIClient, path: str) -> Any:
    response = client.get(f"/api/v1{path}")
    assert response.status_code == 200, response.content
    return response.json()


@pytest.mark.usefixtures("minutes")
def test_devices_tell_their_utilisation_and_since_when_they_are_idle(viewer: APIClient) -> None:
    node, other = get(viewer, "/nodes")["items"]
    cells = [(cell["utilisation"], cell["idleSince"]) for cell in node["devices"]]
    assert cells == [(90, None), (0, "2026-11-30T00:00:00.000Z"), (70, None), (None, None)]
    assert (node["gpuUtilisation"], node["gpuIdle"]) == (53.3, 1)
    assert (other["gpuUtilisation"], other["gpuIdle"]) == (None, None)
    idle = get(viewer, "/gpus?idle=true")["items"]
    assert [(cell["node"], cell["index"]) for cell in idle] == [("n1", 1)]
    assert len(get(viewer, "/gpus")["items"]) == 8


@pytest.mark.usefixtures("minutes")
def test_workloads_tell_how_many_of_their_gpus_are_idle(viewer: APIClient) -> None:
    rows = {row["name"]: row for row in get(viewer, "/workloads")["items"]}
    fields = ("gpuUtilisation", "gpuIdle", "idleSince")
    assert {name: tuple(row[field] for field in fields) for name, row in rows.items()} == {
        "lazy": (45, 1, None),
        "busy": (70, 0, None),
        "unseen": (None, None, None),
    }
    assert [row["name"] for row in get(viewer, "/workloads?idle=true")["items"]] == ["lazy"]
    body = get(viewer, "/workloads/ns/lazy/utilisation")
    assert body == {"stepSeconds": 300, "times": ["2026-11-30T00:00:00.000Z"], "utilisation": [45]}
    assert get(viewer, "/workloads/ns/unseen/utilisation")["utilisation"] == [None]


@pytest.mark.usefixtures("minutes")
def test_hours_are_held_but_not_used_or_unknown(viewer: APIClient) -> None:
    body = get(viewer, f"/usage?{FROM}")
    hours = {
        row["key"]: (row["gpuHours"], row["allocatedButIdleHours"], row["utilisationUnknownHours"])
        for row in body["items"]
    }
    assert hours == {"team": (0.2, 0.05, 0.05), "dept": (0.2, 0.05, 0.05)}
    assert body["total"]["allocatedButIdleHours"] == 0.05
    assert body["cluster"]["allocatedButIdleHours"] == 0.05
    assert body["cluster"]["utilisationUnknownHours"] == 0.05
    assert body["utilisation"] == {
        "idleBelowPercent": 5, "configured": True, "readAt": "2026-11-30T00:03:00.000Z",
        "devices": 3, "error": "",
    }  # fmt: skip
    for by, key in (("owner", "ada"), ("model", "NVIDIA-H100")):
        [row] = get(viewer, f"/usage?by={by}&{FROM}")["items"]
        assert (row["key"], row["allocatedButIdleHours"]) == (key, 0.05)
    table = viewer.get(f"/api/v1/usage?format=csv&{FROM}").content.decode().splitlines()
    assert table[0].endswith("allocatedButIdleHours,utilisationUnknownHours,cost")
    history = get(viewer, f"/history/usage?step=300&{FROM}")
    assert history["allocatedButIdleHours"] == [0.05]
