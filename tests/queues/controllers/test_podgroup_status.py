"""What a pod group's status says it asks for and holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kube.errors import ServerError
from kube.gateway import EventType, WatchEvent
from kube.objects.devices import ResourceClaim
from kube.objects.pod import Pod
from kube.process.workqueue import WorkQueue
from kube.resources import NODES, PODGROUPS, PODS, PRIORITY_CLASSES, RESOURCE_CLAIMS
from queues.controllers.podgroup_status import SETTLE_S, PodGroupController
from queues.grouping.base import Settings
from queues.grouping.offline.manifests import read_manifests
from queues.grouping.offline.report import group_objects
from tests.queues.controllers.fake_cluster import Cluster, group, pod


class World(Cluster):
    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.controller = PodGroupController(
            self.gateway, self.store, WorkQueue(clock=lambda: self.now)
        )
        self.controller.follow()

    def settle(self) -> None:
        self.sync()
        self.work()

    def work(self) -> None:
        self.now += SETTLE_S
        while (key := self.controller.queue.get(timeout_s=0)) is not None:
            self.controller.work(key)
            self.controller.queue.done(key)

    def resources(self, name: str = "g") -> dict[str, Any]:
        return self.status(PODGROUPS, name, "lab").get("resourcesStatus", {})


def test_changes_are_collected_for_longer_while_many_groups_wait() -> None:
    world = World()
    assert world.controller._settle_s() == SETTLE_S
    for number in range(600):
        world.controller.queue.add_after(f"lab/g{number}", 1.0)
    assert world.controller._settle_s() == SETTLE_S + 0.5
    for number in range(600, 9000):
        world.controller.queue.add_after(f"lab/g{number}", 1.0)
    assert world.controller._settle_s() == 2.0


@pytest.mark.parametrize(
    ("phase", "is_bound", "is_requested", "is_allocated"),
    [
        ("Pending", False, True, False),
        ("Pending", True, True, True),
        ("Running", False, True, True),
        ("Succeeded", True, False, False),
        ("Failed", True, False, False),
        ("Unknown", True, False, False),
    ],
)
def test_phases(phase: str, is_bound: bool, is_requested: bool, is_allocated: bool) -> None:
    world = World()
    world.gateway.seed(PODGROUPS, group("g"))
    world.gateway.seed(PODS, pod("p", "g", phase, is_bound=is_bound))
    world.settle()
    requests = {"cpu": "1", "nvidia.com/gpu": "1"}
    expected = {"requested": requests} if is_requested else {}
    if is_allocated:
        expected["allocated"] = requests
    assert world.resources() == expected


def test_a_pod_that_is_being_deleted_counts_while_it_runs() -> None:
    world = World()
    leaving = pod("p", "g", "Running")
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    leaving["metadata"]["finalizers"] = ["test/keep"]
    world.gateway.seed(PODGROUPS, group("g"))
    world.gateway.seed(PODS, leaving)
    world.settle()
    requests = {"cpu": "1", "nvidia.com/gpu": "1"}
    assert world.resources() == {"requested": requests, "allocated": requests}


@pytest.mark.parametrize(
    ("received", "held"),
    [
        ("Fraction", {"nvidia.com/gpu": "1"}),
        ("Regular", {}),
        ("fraction", {}),
        ("", {}),
        (None, {}),
    ],
)
def test_a_share_is_held_once_the_binder_says_so(
    received: str | None, held: dict[str, str]
) -> None:
    world = World()
    world.gateway.seed(PODGROUPS, group("g"))
    annotations = {"gpu-fraction": "0.5", "gpu-fraction-num-devices": "2"}
    if received is not None:
        annotations["received-resource-type"] = received
    share = pod("p", "g", "Running", annotations=annotations, requests={"cpu": "1"})
    world.gateway.seed(PODS, share)
    world.settle()
    assert world.resources() == {
        "requested": {"cpu": "1", "nvidia.com/gpu": "1"},
        "allocated": {"cpu": "1", **held},
    }


def test_the_highest_of_several_default_classes_counts() -> None:
    world = World()
    classes = [("one", 50), ("two", 100)]
    world.gateway.seed(
        PRIORITY_CLASSES,
        *({"metadata": {"name": n}, "value": v, "globalDefault": True} for n, v in classes),
    )
    world.gateway.seed(PODGROUPS, group("g"))
    world.gateway.seed(PODS, pod("p", "g", "Running"))
    world.settle()
    assert world.resources()["allocatedNonPreemptible"] == {"cpu": "1", "nvidia.com/gpu": "1"}


def test_a_claim_that_comes_after_its_pod_is_counted() -> None:
    world = World()
    world.gateway.seed(PODGROUPS, group("g"))
    body = pod("p", "g", requests={"cpu": "1"})
    body["spec"]["resourceClaims"] = [{"name": "c", "resourceClaimName": "late"}]
    world.gateway.seed(PODS, body)
    world.settle()
    assert world.resources() == {"requested": {"cpu": "1"}}
    exactly = {"deviceClassName": "gpu.example.test", "count": 2}
    spec = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
    claim = {"metadata": {"name": "late", "namespace": "lab"}, "spec": spec}
    world.gateway.seed(RESOURCE_CLAIMS, claim)
    claim_object = world.gateway.get(
        RESOURCE_CLAIMS, "late", as_type=ResourceClaim, namespace="lab"
    )
    event = WatchEvent(
        type=EventType.ADDED,
        object=claim_object,
        resource_version=claim_object.metadata.resource_version,
    )
    world.store.apply(RESOURCE_CLAIMS, event)
    world.settle()
    assert world.resources() == {"requested": {"cpu": "1", "gpu.example.test": "2"}}


def test_a_claim_that_several_pods_use_counts_once_in_their_group() -> None:
    world = World()
    world.gateway.seed(PODGROUPS, group("g"))
    exactly = {"deviceClassName": "gpu.example.test", "count": 2}
    spec = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
    claim = {"metadata": {"name": "shared", "namespace": "lab"}, "spec": spec}
    world.gateway.seed(RESOURCE_CLAIMS, claim)
    for name in ("p", "q", "r"):
        body = pod(name, "g", "" if name == "p" else "Running", requests={"cpu": "1"})
        body["spec"]["resourceClaims"] = [{"name": "c", "resourceClaimName": "shared"}]
        world.gateway.seed(PODS, body)
    world.settle()
    resources = world.resources()
    assert resources["requested"] == {"cpu": "3", "gpu.example.test": "2"}
    assert resources["allocated"] == {"cpu": "2", "gpu.example.test": "2"}


@pytest.mark.parametrize(
    ("labels", "held"),
    [
        ({"beta.amd.com/gpu.vram.16G": "4"}, {"nvidia.com/gpu": "125m"}),
        ({"beta.amd.com/gpu.vram.16G": "4", "nvidia.com/gpu.memory": "16384"}, None),
    ],
)
def test_device_memory_of_the_other_vendor(
    labels: dict[str, str], held: dict[str, str] | None, caplog: pytest.LogCaptureFixture
) -> None:
    world = World()
    world.gateway.seed(NODES, {"metadata": {"name": "n", "labels": labels}})
    world.gateway.seed(PODGROUPS, group("g"))
    annotations = {"gpu-memory": "2000", "received-resource-type": "Fraction"}
    body = pod("p", "g", "Running", node="n", annotations=annotations, requests={})
    world.gateway.seed(PODS, body)
    world.settle()
    if held is None:
        assert world.resources() == {}
        assert caplog.messages == [
            "status of pod group lab/g: the node n has both nvidia and amd gpu labels. Such nodes "
            "aren't supported for fraction resource requests"
        ]
    else:
        assert world.resources()["allocated"] == held


def test_sums_follow_the_pods_and_vanish_with_them() -> None:
    world = World()
    world.gateway.seed(PODGROUPS, group("g"))
    world.gateway.seed(PODS, pod("a", "g", "Running"), pod("b", "g"), pod("other", "h", "Running"))
    world.settle()
    assert world.resources() == {
        "requested": {"cpu": "2", "nvidia.com/gpu": "2"},
        "allocated": {"cpu": "1", "nvidia.com/gpu": "1"},
    }
    world.gateway.delete(PODS, "a", namespace="lab", grace_period_s=0)
    world.gateway.patch(
        PODS, "b", {"status": {"phase": "Succeeded"}}, namespace="lab", sub="status"
    )
    world.settle()
    assert {key: value for key, value in world.resources().items() if value} == {}


def test_nothing_is_written_when_the_amounts_are_the_same_by_value() -> None:
    world = World()
    body = group("g")
    body["status"] = {"resourcesStatus": {"requested": {"cpu": "1000m", "nvidia.com/gpu": 1}}}
    world.gateway.seed(PODGROUPS, body)
    world.gateway.seed(PODS, pod("p", "g"))
    world.settle()
    assert world.gateway.calls == []


@pytest.mark.parametrize(
    ("spec", "is_kept"),
    [
        ({"priorityClassName": "train"}, False),
        ({"priorityClassName": "build"}, True),
        ({"priorityClassName": "build", "preemptibility": "preemptible"}, False),
        ({"priorityClassName": "train", "preemptibility": "non-preemptible"}, True),
        ({"priorityClassName": "unknown"}, True),
    ],
)
def test_non_preemptible_groups_count_apart(spec: dict[str, Any], is_kept: bool) -> None:
    world = World()
    world.gateway.seed(
        PRIORITY_CLASSES,
        {"metadata": {"name": "train"}, "value": 50},
        {"metadata": {"name": "build"}, "value": 100},
        {"metadata": {"name": "everyone"}, "value": 200, "globalDefault": True},
    )
    world.gateway.seed(PODGROUPS, group("g", **spec))
    world.gateway.seed(PODS, pod("p", "g", "Running"))
    world.settle()
    assert ("allocatedNonPreemptible" in world.resources()) is is_kept


def test_of_a_semi_preemptible_group_the_minimum_counts_as_non_preemptible() -> None:
    world = World()
    world.gateway.seed(PODGROUPS, group("g", preemptibility="semi-preemptible", minMember=2))
    world.gateway.seed(PODS, *(pod(name, "g", "Running") for name in "abc"), pod("d", "g"))
    world.settle()
    resources = world.resources()
    assert resources["allocated"] == {"cpu": "3", "nvidia.com/gpu": "3"}
    assert resources["allocatedNonPreemptible"] == {"cpu": "2", "nvidia.com/gpu": "2"}


def test_without_any_class_a_group_is_preemptible() -> None:
    world = World()
    world.gateway.seed(PODGROUPS, group("g", priorityClassName="gone"))
    world.gateway.seed(PODS, pod("p", "g", "Running"))
    world.settle()
    assert "allocatedNonPreemptible" not in world.resources()


def test_what_was_non_preemptible_is_cleared_when_the_group_turns_preemptible() -> None:
    world = World()
    world.gateway.seed(PODGROUPS, group("g", preemptibility="non-preemptible"))
    world.gateway.seed(PODS, pod("p", "g", "Running"))
    world.settle()
    assert world.resources()["allocatedNonPreemptible"] == {"cpu": "1", "nvidia.com/gpu": "1"}
    world.gateway.patch(
        PODGROUPS, "g", {"spec": {"preemptibility": "preemptible"}}, namespace="lab"
    )
    world.settle()
    assert world.resources().get("allocatedNonPreemptible", {}) == {}


def test_device_memory_is_held_as_a_part_of_the_nodes_device() -> None:
    world = World()
    world.gateway.seed(
        NODES, {"metadata": {"name": "n", "labels": {"nvidia.com/gpu.memory": "16384"}}}
    )
    world.gateway.seed(PODGROUPS, group("g"))
    annotations = {"gpu-memory": "2000", "received-resource-type": "Fraction"}
    world.gateway.seed(
        PODS, pod("p", "g", "Running", node="n", annotations=annotations, requests={})
    )
    world.settle()
    assert world.resources() == {
        "requested": {"run.ai/gpu.memory": "2k"},
        "allocated": {"nvidia.com/gpu": "122070313n"},
    }


def test_a_pod_that_cannot_be_counted_is_tried_again() -> None:
    world = World()
    world.gateway.seed(NODES, {"metadata": {"name": "n"}})
    world.gateway.seed(PODGROUPS, group("g"))
    annotations = {"gpu-memory": "2000", "received-resource-type": "Fraction"}
    world.gateway.seed(PODS, pod("p", "g", "Running", node="n", annotations=annotations))
    world.settle()
    assert world.resources() == {}
    assert world.controller.queue._failures == {"lab/g": 1}


def test_a_failed_write_is_tried_again_and_a_vanished_group_is_not() -> None:
    world = World()
    world.gateway.seed(PODGROUPS, group("g"))
    world.gateway.seed(PODS, pod("p", "g"))
    world.gateway.fail_next("patch", "podgroups", ServerError("down"))
    world.settle()
    assert world.controller.queue._failures == {"lab/g": 1}
    world.gateway.delete(PODGROUPS, "g", namespace="lab")
    world.sync()
    world.controller.work("lab/g")
    assert world.controller.queue._failures == {}


def test_a_pods_event_is_its_groups_event() -> None:
    world = World()
    world.gateway.seed(PODGROUPS, group("g"))
    world.settle()
    world.gateway.seed(PODS, pod("p", "g"))
    late: Pod = world.gateway.get(PODS, "p", as_type=Pod, namespace="lab")
    world.store.apply(
        PODS,
        WatchEvent(
            type=EventType.ADDED, object=late, resource_version=late.metadata.resource_version
        ),
    )
    assert world.controller.queue.get(timeout_s=0) is None
    world.now += SETTLE_S
    assert world.controller.queue.get(timeout_s=0) == "lab/g"


def test_other_devices_are_requested_by_their_own_names() -> None:
    objects = read_manifests([Path(__file__).parent.parent / "manifests" / "devices.yaml"])
    report = group_objects(objects, Settings())
    world = World()
    world.gateway.seed(PODGROUPS, *report.pod_groups)
    for body in objects:
        resource = RESOURCE_CLAIMS if body["kind"] == "ResourceClaim" else PODS
        if resource == PODS:
            body["metadata"]["annotations"] = {
                "pod-group-name": report.pods[f"lab/{body['metadata']['name']}"].pod_group
            }
        world.gateway.seed(resource, body)
    world.settle()
    requested = {
        name: world.resources(f"pg-{name}-u-{name}").get("requested", {})
        for name in ("slice", "claimed", "extended", "disk")
    }
    assert requested == {
        "slice": {"nvidia.com/mig-1g.10gb": "1"},
        "claimed": {"gpu.example.test": "1"},
        "extended": {"example.test/gpu": "1"},
        "disk": {},
    }
