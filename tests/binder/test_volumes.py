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

    def prepare(self, node: str) -> None:
        spec = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "books"}}]}
        job = BindJob(
            request=convert(request(node=node), BindRequest),
            pod=convert(pod(spec=spec), Pod),
            node=node,
        )
        step = Volumes(self.gateway, DEFAULT_STEPS[0], clock=lambda: self.time, sleep=self._sleep)
        step.prepare(job)

    def claim_of(self, name: str) -> Any:
        return self.gateway.raw(PVS, name)["spec"].get("claimRef")

    def _sleep(self, seconds: float) -> None:
        self.time += seconds
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
    annotations = harness.gateway.raw(PVCS, "books", "ns")["metadata"]["annotations"]
    assert annotations == {"volume.kubernetes.io/selected-node": "n1"}
    assert sum(waited) == 120.0
    reason = (
        "plugin volumebinding failed in PreBind: K8sPlugin VolumeBinding failed Bind for pod: ns/p "
        "and node n1. error: timed out waiting for claims to be bound: books"
    )
    assert harness.status() == {"phase": "Failed", "reason": reason, "failedAttempts": 1}
    assert harness.condition("PodBound")["status"] == "False"
    assert "nodeName" not in harness.pod()["spec"]
