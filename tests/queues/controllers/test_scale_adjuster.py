"""Stand-ins for fractional demand: how many, when removed, what they look like."""

from __future__ import annotations

from typing import Any

import pytest

from kube.errors import InvalidError
from kube.objects.meta import convert
from kube.objects.pod import Pod
from kube.resources import PODS
from kube.store import Store
from queues.controllers.scale_adjuster import (
    AdjusterSettings,
    ScaleAdjuster,
    devices_needed,
    stand_in_body,
    waiting_demands,
)
from tests.fakes.gateway import FakeGateway

SETTINGS = AdjusterSettings()
UNSCHEDULABLE = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]


def waiting(name: str, **annotations: str) -> dict[str, Any]:
    named = {key.replace("_", "-"): value for key, value in annotations.items()}
    return {
        "metadata": {"name": name, "namespace": "lab", "annotations": named},
        "spec": {
            "schedulerName": "kai-scheduler",
            "nodeSelector": {"pool": "a"},
            "tolerations": [{"key": "gpu", "operator": "Exists"}],
            "containers": [
                {"name": "c", "resources": {"requests": {"cpu": "2"}, "limits": {"memory": "1Gi"}}}
            ],
        },
        "status": {"phase": "Pending", "conditions": UNSCHEDULABLE},
    }


def halves(count: int, **annotations: str) -> list[dict[str, Any]]:
    return [waiting(f"p{index:02}", **annotations) for index in range(count)]


class World:
    def __init__(self, *pods: dict[str, Any]) -> None:
        self.gateway = FakeGateway()
        self.gateway.seed(PODS, *pods)
        self.now = 1000.0
        self.ours, self.theirs = Store([PODS]), Store([PODS])
        self.adjuster = ScaleAdjuster(
            self.gateway, self.ours, self.theirs, SETTINGS, clock=lambda: self.now
        )

    def run(self) -> list[str]:
        """Make one pass; return the stand-ins there are."""
        self.ours.replace(PODS, self.gateway.list(PODS, as_type=Pod, namespace="lab"))
        self.theirs.replace(
            PODS, self.gateway.list(PODS, as_type=Pod, namespace="kai-scale-adjust")
        )
        self.adjuster.pass_once()
        return self.gateway.names(PODS, "kai-scale-adjust")


@pytest.mark.parametrize(
    ("pods", "devices"),
    [
        (halves(2, gpu_fraction="0.5"), 1),
        (halves(10, gpu_memory="500"), 1),
        ([waiting("a", gpu_fraction="0.5"), waiting("b", gpu_fraction="0.6")], 2),
        ([waiting("a", gpu_fraction="0.5", gpu_fraction_num_devices="2")], 1),
        (halves(8, gpu_fraction="0.125"), 2),  # 13 hundredths each: halves go up
        ([waiting("a", gpu_fraction="-0.5"), waiting("b", gpu_fraction="0.001")], 0),
        ([waiting("a", gpu_memory="20", gpu_fraction_num_devices="11")], 2),
        (
            [
                waiting("a", gpu_fraction="half"),
                waiting("b", gpu_fraction="0.5", gpu_fraction_num_devices="x"),
            ],
            0,
        ),
        ([], 0),
    ],
)
def test_devices_that_would_hold_all_parts(pods: list[dict[str, Any]], devices: int) -> None:
    demands = waiting_demands([convert(pod, Pod) for pod in pods], SETTINGS)
    assert devices_needed(demands) == devices


@pytest.mark.parametrize(
    "change",
    [
        {"spec": {"schedulerName": "other"}},
        {"spec": {"schedulerName": "kai-scheduler", "nodeName": "n"}},
        {"status": {"phase": "Failed", "conditions": UNSCHEDULABLE}},
        {
            "status": {
                "conditions": [
                    {"type": "PodScheduled", "status": "False", "reason": "QueueLimited"}
                ]
            }
        },
        {"metadata": {"name": "p", "annotations": {"gpu-fraction": ""}}},
    ],
)
def test_pods_that_call_for_no_node(change: dict[str, Any]) -> None:
    assert (
        waiting_demands([convert({**waiting("p", gpu_fraction="0.5"), **change}, Pod)], SETTINGS)
        == []
    )


def test_stand_ins_are_made_until_the_need_is_covered() -> None:
    world = World(waiting("need-a", gpu_fraction="0.5"), waiting("need-b", gpu_fraction="0.6"))
    assert world.run() == ["lab-need-a", "lab-need-b"]
    assert world.run() == ["lab-need-a", "lab-need-b"]
    assert World(*halves(2, gpu_fraction="0.5")).run() == ["lab-p00"]
    assert World(*halves(10, gpu_memory="500")).run() == ["lab-p00"]


def test_a_pod_of_more_devices_needs_a_stand_in_as_large() -> None:
    pods = [
        waiting("a", gpu_fraction="0.5"),
        waiting("b", gpu_fraction="0.1", gpu_fraction_num_devices="3"),
    ]
    world = World(*pods)
    assert world.run() == ["lab-a", "lab-b"]
    spec = world.gateway.raw(PODS, "lab-b", "kai-scale-adjust")["spec"]
    assert spec["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": "3"}


def test_a_stand_in_stands_where_its_pod_would() -> None:
    world = World(waiting("a", gpu_fraction="0.5"))
    world.run()
    body = world.gateway.raw(PODS, "lab-a", "kai-scale-adjust")
    assert body["metadata"]["labels"] == {
        "app": "scaling-pod",
        "shared-gpu-pod-name": "a",
        "shared-gpu-pod-namespace": "lab",
    }
    assert "schedulerName" not in body["spec"]
    assert body["spec"]["nodeSelector"] == {"pool": "a"}
    assert body["spec"]["tolerations"] == [{"key": "gpu", "operator": "Exists"}]
    assert body["spec"]["restartPolicy"] == "OnFailure"
    assert body["spec"]["serviceAccountName"] == "kai-scale-adjust"
    (container,) = body["spec"]["containers"]
    assert (container["name"], container["imagePullPolicy"]) == ("scaling-pod", "IfNotPresent")
    assert container["command"] == ["/bin/true"]
    assert body["spec"]["containers"][0]["resources"] == {
        "requests": {"cpu": "2", "memory": "1Gi", "nvidia.com/gpu": "1"},
        "limits": {"nvidia.com/gpu": "1"},
    }
    assert body["status"]["conditions"] == UNSCHEDULABLE


@pytest.mark.parametrize("end", ["scheduled", "deleted", "served"])
def test_a_stand_in_goes_when_it_has_served_and_none_comes_for_a_minute(end: str) -> None:
    world = World(waiting("a", gpu_fraction="0.5"))
    assert world.run() == ["lab-a"]
    bound = {"status": {"conditions": [{"type": "PodScheduled", "status": "True"}]}}
    if end == "scheduled":
        world.gateway.patch(PODS, "a", bound, namespace="lab", sub="status")
    elif end == "deleted":
        world.gateway.delete(PODS, "a", namespace="lab", grace_period_s=0)
    else:
        world.gateway.patch(
            PODS,
            "lab-a",
            {"status": {"phase": "Succeeded"}},
            namespace="kai-scale-adjust",
            sub="status",
        )
    assert world.run() == []
    world.gateway.seed(PODS, waiting("z", gpu_fraction="0.5"))
    world.now += 59
    assert world.run() == []
    world.now += 1
    assert "lab-z" in world.run() or end == "served"


def test_a_pod_without_the_condition_keeps_its_stand_in() -> None:
    world = World(waiting("a", gpu_fraction="0.5"))
    world.run()
    world.gateway.patch(PODS, "a", {"status": {"conditions": None}}, namespace="lab", sub="status")
    assert world.run() == ["lab-a"]


def test_an_image_of_ones_own_knows_how_to_end() -> None:
    need = waiting_demands([convert(waiting("a", gpu_fraction="0.5"), Pod)], SETTINGS)[0]
    body = stand_in_body(need, AdjusterSettings(image="example.test/scalingpod:1"))
    (container,) = body["spec"]["containers"]
    assert container["image"] == "example.test/scalingpod:1"
    assert "command" not in container


def test_what_else_lives_in_the_namespace_is_left_alone() -> None:
    world = World(waiting("a", gpu_fraction="0.5"))
    other = {"metadata": {"name": "other", "namespace": "kai-scale-adjust"}, "spec": {}}
    world.gateway.seed(PODS, other)
    assert world.run() == ["lab-a", "other"]


def test_a_pod_whose_stand_in_is_refused_does_not_hold_up_the_others() -> None:
    world = World(waiting("a", gpu_fraction="0.9"), waiting("b", gpu_fraction="0.9"))
    world.gateway.fail_next("create", "pods", InvalidError("must be no more than 63 characters"))
    assert world.run() == ["lab-b"]


def test_a_pod_that_only_its_queue_holds_needs_no_node() -> None:
    """The condition reason a shard may choose for such work is not the autoscalers' one."""
    world = World(waiting("a", gpu_fraction="0.5"))
    assert world.run() == ["lab-a"]
    held = [{"type": "PodScheduled", "status": "False", "reason": "QueueLimited"}]
    world.gateway.patch(PODS, "a", {"status": {"conditions": held}}, namespace="lab", sub="status")
    assert world.run() == []
