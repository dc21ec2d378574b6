"""What would unblock a workload: only what a simulation has shown, and for the asker's rights."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.cache import cache
from django.utils import timezone
from rest_framework.test import APIClient

from kaiweb.models import Simulation
from kaiweb.planning import simulations
from kube.objects.meta import convert
from kube.objects.pod import Pod
from kube.resources import NODES, PODGROUPS, PODS, QUEUES
from queues.mirror.feed import Mirror
from queues.mirror.kinds import KINDS
from queues.mirror.views import QueueView
from queues.mirror.writer import Writer
from queues.models import PodGroup
from tests.fakes.gateway import FakeGateway
from tests.kaiweb.api.conftest import NOON
from tests.queues.cluster_objects import a_group, a_node, listed
from tests.scheduler.load.objects import group, node, pod

pytestmark = pytest.mark.django_db
URL = "/api/v1/workloads/ns/train/explain"


@pytest.fixture
def waits(cluster: FakeGateway, monkeypatch: pytest.MonkeyPatch) -> FakeGateway:
    """Workload `train` of `physics` wants 20 GPUs on nodes of 20; the limit is 16."""
    cache.clear()
    cluster.seed(NODES, node("n0", gpus=20))
    cluster.seed(PODGROUPS, group("train", queue="physics", minMember=1))
    cluster.seed(PODS, pod("train-0", group="train", requests={"nvidia.com/gpu": "20"}))
    monkeypatch.setattr(simulations, "send", lambda pk: simulations.run(pk, cluster, timezone.now))
    return cluster


def show(cluster: FakeGateway, reason: str, details: dict[str, Any]) -> None:
    """Let the mirror show the workload with this reason."""
    condition = {
        "type": "UnschedulableOnNodePool", "nodePool": "default", "transitionID": "1",
        "reasons": [{"reason": reason, "message": "", "details": {"queueDetails": details}}],
    }  # fmt: skip
    mirror = Mirror(KINDS, Writer(sleep=lambda _s: None), now=lambda: NOON)
    mirror.consume(
        [
            listed(QUEUES, *cluster.list(QUEUES, as_type=QueueView).items),
            listed(NODES, a_node("n0", gpus=20)),
            listed(PODGROUPS, a_group("train", queue="physics", namespace="ns", conditions=[condition])),
            listed(PODS, convert_pod(cluster)),
        ]
    )  # fmt: skip
    PodGroup.objects.update(reason_code=reason)


def convert_pod(cluster: FakeGateway) -> Any:
    return convert(cluster.raw(PODS, "train-0", "ns"), Pod)


OVER_LIMIT = {
    "name": "physics",
    "podGroupRequestedResources": {"nvidia.com/gpu": "20"},
    "queueResourceLimits": {"nvidia.com/gpu": "16"},
    "queueAllocatedResources": {"nvidia.com/gpu": "0"},
}


def test_a_higher_limit_is_shown_after_a_simulation_in_which_the_workload_starts(
    client: APIClient, waits: FakeGateway
) -> None:
    show(waits, "OverLimit", OVER_LIMIT)
    assert "unblocks" not in client.get(URL).json()
    [unblock] = client.get(f"{URL}?verify=true").json()["unblocks"]
    assert (unblock["code"], unblock["evictedWorkloads"]) == ("raise-limit", 0)
    assert unblock["text"] == "a higher limit of queue 'physics': gpu 16 → 20"
    assert unblock["edits"] == {"queues": [{"name": "physics", "edit": {"limit": {"gpu": 20}}}]}
    assert client.get(f"{URL}?verify=true").json()["unblocks"] == [unblock]
    assert Simulation.objects.count() == 1


def test_what_does_not_help_is_not_shown(client: APIClient, waits: FakeGateway) -> None:
    # The parent has a limit too, so that of the queue alone changes nothing.
    waits.patch(QUEUES, "science", {"spec": {"resources": {"gpu": {"limit": 10}}}})
    show(waits, "OverLimit", OVER_LIMIT)
    assert client.get(f"{URL}?verify=true").json()["unblocks"] == []
    assert Simulation.objects.count() == 1


def test_another_node_is_tried_where_room_is_short(client: APIClient, waits: FakeGateway) -> None:
    waits.patch(QUEUES, "physics", {"spec": {"resources": {"gpu": {"limit": -1}}}})
    busy = pod("busy-0", node="n0", phase="Running", requests={"nvidia.com/gpu": "20"})
    waits.seed(PODS, {**busy, "spec": {**busy["spec"], "schedulerName": "other"}})
    show(waits, "DeviceShortage", {})
    unblocks = client.get(f"{URL}?verify=true").json()["unblocks"]
    assert [item["code"] for item in unblocks] == ["add-node"]


def test_verify_needs_the_right_to_simulate(viewer: APIClient, waits: FakeGateway) -> None:
    show(waits, "OverLimit", OVER_LIMIT)
    assert viewer.get(URL).status_code == 200
    assert viewer.get(f"{URL}?verify=true").status_code == 403
