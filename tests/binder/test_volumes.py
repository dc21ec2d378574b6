"""A pod's waiting claim is joined with a static volume that its node reaches, and only with such a one."""

from __future__ import annotations

from typing import Any

import pytest

from binder.errors import BindError
from binder.params import DEFAULT_STEPS
from binder.steps.base import BindJob
from binder.steps.volumes import Volumes
from kube.objects.bindrequest import BindRequest
from kube.objects.meta import convert
from kube.objects.pod import Pod
from kube.resources import NODES, PVCS, PVS, STORAGE_CLASSES
from kube.static_volumes import SELECTED_NODE
from tests.binder.objects import Harness as BinderRig
from tests.binder.objects import pod, request
from tests.fakes.gateway import FakeGateway


def _volume(name: str, node: str, size: str = "10Gi", **spec: Any) -> dict[str, Any]:
    term = {"matchExpressions": [{"key": "name", "operator": "In", "values": [node]}]}
    return {
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "by-hand",
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
            **spec,
        },
        "status": {"phase": "Available"},
    }


class Harness:
    """A claim `books` of pod `p`, and a volume controller that joins what is claimed while we wait."""

    def __init__(self, *volumes: dict[str, Any]) -> None:
        self.gateway = FakeGateway()
        for name in ("n1", "n2"):
            self.gateway.seed(NODES, {"metadata": {"name": name, "labels": {"name": name}}})
        self.gateway.seed(PVS, *volumes)
        self.gateway.seed(
            STORAGE_CLASSES,
            {
                "metadata": {"name": "by-hand"},
                "provisioner": "kubernetes.io/no-provisioner",
                "volumeBindingMode": "WaitForFirstConsumer",
            },
        )
        self.gateway.seed(
            PVCS,
            {
                "metadata": {"name": "books", "namespace": "ns", "uid": "uid-books"},
                "spec": {
                    "storageClassName": "by-hand",
                    "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": "5Gi"}},
                },
                "status": {"phase": "Pending"},
            },
        )
        self.time = 0.0
        self.is_controller_there = True
        self.made_on = ""

    def prepare(self, node: str) -> None:
        self.step().prepare(self.job(node))

    def roll_back(self, node: str) -> None:
        self.step().roll_back(self.job(node))

    def step(self) -> Volumes:
        return Volumes(self.gateway, DEFAULT_STEPS[0], clock=lambda: self.time, sleep=self._sleep)

    def job(self, node: str) -> BindJob:
        spec = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "books"}}]}
        return BindJob(
            request=convert(request(node=node), BindRequest),
            pod=convert(pod(spec=spec), Pod),
            node=node,
        )

    def provision(self, volume_node: str = "") -> None:
        """Let the class have a provisioner, which makes a volume that one node can mount."""
        self.gateway.patch(STORAGE_CLASSES, "by-hand", {"provisioner": "shelves.test"})
        self.made_on = volume_node

    def annotations(self) -> dict[str, str]:
        metadata = self.gateway.raw(PVCS, "books", "ns")["metadata"]
        annotations: dict[str, str] = metadata.get("annotations") or {}
        return annotations

    def claim_of(self, name: str) -> Any:
        return self.gateway.raw(PVS, name)["spec"].get("claimRef")

    def _sleep(self, seconds: float) -> None:
        self.time += seconds
        if self.made_on:
            self.gateway.seed(PVS, _volume("made", self.made_on))
            patch = {"spec": {"volumeName": "made"}}
            self.gateway.patch(PVCS, "books", patch, namespace="ns")
            self.made_on = ""
        if self.is_controller_there:
            self.gateway.patch(
                PVCS, "books", {"status": {"phase": "Bound"}}, namespace="ns", sub="status"
            )


def test_the_smallest_volume_that_the_node_can_mount_is_reserved():
    harness = Harness(
        _volume("near-big", "n1", "20Gi"), _volume("near", "n1"), _volume("far", "n2", "5Gi")
    )
    harness.prepare("n1")
    assert harness.claim_of("near") == {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": "ns",
        "name": "books",
        "uid": "uid-books",
    }
    assert (harness.claim_of("far"), harness.claim_of("near-big")) == (None, None)


def test_a_volume_that_the_node_cannot_mount_is_not_reserved():
    harness = Harness(_volume("far", "n2"))
    with pytest.raises(BindError, match=r"didn't find available persistent volumes to bind"):
        harness.prepare("n1")
    assert harness.claim_of("far") is None


def test_a_second_attempt_uses_the_volume_reserved_by_the_first():
    harness = Harness(_volume("near", "n1"), _volume("nearer", "n1", "6Gi"))
    harness.is_controller_there = False
    with pytest.raises(BindError, match="timed out waiting for claims to be bound: books"):
        harness.prepare("n1")
    assert harness.claim_of("nearer")["name"] == "books"
    harness.is_controller_there = True
    harness.prepare("n1")
    assert harness.claim_of("near") is None


def test_a_static_volume_is_taken_before_a_provisioner_makes_one() -> None:
    harness = Harness(_volume("near", "n1"))
    harness.provision()
    harness.prepare("n1")
    assert harness.claim_of("near")["name"] == "books"
    assert harness.annotations() == {}


def test_without_a_static_volume_in_reach_the_provisioner_gets_the_node() -> None:
    harness = Harness(_volume("far", "n2"))
    harness.provision("n1")
    harness.prepare("n1")
    assert harness.annotations() == {SELECTED_NODE: "n1"}
    assert harness.claim_of("far") is None


def test_a_volume_made_for_an_earlier_node_fails_the_attempt() -> None:
    harness = Harness()
    harness.provision("n2")
    with pytest.raises(
        BindError, match=r'failed Bind .* pv "made" node affinity doesn\'t match node "n1"'
    ):
        harness.prepare("n1")


def test_a_lost_claim_fails_at_once() -> None:
    harness = Harness(_volume("near", "n1"))
    harness.gateway.patch(
        PVCS, "books", {"status": {"phase": "Lost"}}, namespace="ns", sub="status"
    )
    harness.is_controller_there = False
    with pytest.raises(BindError, match='persistentvolumeclaim "books" lost its volume'):
        harness.prepare("n1")
    assert harness.time == 0.0


def test_undo_takes_the_node_from_a_claim_that_is_not_bound() -> None:
    harness = Harness()
    harness.provision()
    harness.is_controller_there = False
    with pytest.raises(BindError, match="timed out"):
        harness.prepare("n1")
    harness.roll_back("n2")
    assert harness.annotations() == {SELECTED_NODE: "n1"}
    harness.roll_back("n1")
    assert harness.annotations() == {}


def test_undo_releases_a_static_volume_that_is_not_bound() -> None:
    harness = Harness(_volume("near", "n1"))
    harness.is_controller_there = False
    with pytest.raises(BindError, match="timed out"):
        harness.prepare("n1")
    annotations = harness.gateway.raw(PVS, "near")["metadata"]["annotations"]
    assert annotations == {"pv.kubernetes.io/bound-by-controller": "yes"}
    harness.roll_back("n1")
    assert harness.claim_of("near") is None
    assert harness.gateway.raw(PVS, "near")["metadata"]["annotations"] == {}


def test_undo_leaves_a_volume_that_a_person_reserved() -> None:
    reserved = {"namespace": "ns", "name": "books"}
    harness = Harness(_volume("near", "n1", claimRef=reserved))
    harness.is_controller_there = False
    with pytest.raises(BindError, match="timed out"):
        harness.prepare("n1")
    harness.roll_back("n1")
    assert harness.claim_of("near")["name"] == "books"


def test_undo_leaves_a_bound_claim_and_a_bound_volume() -> None:
    harness = Harness(_volume("near", "n1"))
    harness.prepare("n1")
    harness.roll_back("n1")
    assert harness.claim_of("near")["name"] == "books"


def test_undo_of_a_claim_that_is_gone_does_nothing() -> None:
    harness = Harness(_volume("near", "n1"))
    harness.gateway.delete(PVCS, "books", namespace="ns")
    harness.roll_back("n1")
    assert harness.claim_of("near") is None


def test_a_claim_that_stays_unbound_fails_the_request_after_two_minutes() -> None:
    harness = BinderRig()
    claim = {"storageClassName": "late", "resources": {"requests": {"storage": "1Gi"}}}
    late = {"provisioner": "shelves.test", "volumeBindingMode": "WaitForFirstConsumer"}
    harness.gateway.seed(STORAGE_CLASSES, {"metadata": {"name": "late"}, **late})
    harness.gateway.seed(PVCS, {"metadata": {"name": "books", "namespace": "ns"}, "spec": claim})
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "books"}}
    harness.seed(pods=[pod(spec={"volumes": [volume]})], requests=[request()])
    waited: list[float] = []
    step = Volumes(
        harness.gateway, DEFAULT_STEPS[0], clock=lambda: sum(waited), sleep=waited.append
    )
    harness.worker.service.steps = (("volumebinding", step),)
    harness.run()
    assert SELECTED_NODE not in harness.gateway.raw(PVCS, "books", "ns")["metadata"]["annotations"]
    assert sum(waited) == 120.0
    reason = (
        "plugin volumebinding failed in PreBind: K8sPlugin VolumeBinding failed Bind for pod: ns/p "
        "and node n1. error: timed out waiting for claims to be bound: books"
    )
    assert harness.status() == {"phase": "Failed", "reason": reason, "failedAttempts": 1}
    assert harness.condition("PodBound")["status"] == "False"
    assert "nodeName" not in harness.pod()["spec"]
