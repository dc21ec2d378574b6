"""The volume controller: which volume a claim gets, and what becomes of it."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from kube.objects.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from kube.resources import PVCS, PVS, STORAGE_CLASSES
from kube.static_volumes import SELECTED_NODE
from sandbox.controllers.volumes import PROVISIONER, VolumeController
from tests.fakes.gateway import FakeGateway

Json = dict[str, Any]


def claim(name: str = "data", *, storage_class: str = "", node: str = "", volume: str = "") -> Json:
    return {
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": f"uid-{name}",
            "annotations": {SELECTED_NODE: node} if node else {},
        },
        "spec": {
            "storageClassName": storage_class,
            "accessModes": ["ReadWriteOnce"],
            "volumeName": volume,
            "resources": {"requests": {"storage": "5Gi"}},
        },
        "status": {"phase": "Pending"},
    }


def volume(name: str, size: str, *, storage_class: str = "", reference: Json | None = None) -> Json:
    return {
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            **({"claimRef": reference} if reference else {}),
        },
        "status": {"phase": "Available"},
    }


def storage_class(name: str, mode: str, provisioner: str = PROVISIONER) -> Json:
    return {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode}


class Cluster:
    def __init__(self, *bodies: Json) -> None:
        self.gateway = FakeGateway()
        for body in bodies:
            if "provisioner" in body:
                self.gateway.seed(STORAGE_CLASSES, body)
            else:
                is_volume = "capacity" in body["spec"]
                self.gateway.seed(PVS if is_volume else PVCS, body)
        self.controller = VolumeController(
            self.gateway, threading.Event(), on_fatal=lambda error: None
        )

    def settle(self) -> None:
        """Reconcile all objects until nothing is written any more."""
        for _ in range(10):
            before = len(self.gateway.calls)
            for resource, as_type in (
                (PVCS, PersistentVolumeClaim),
                (PVS, PersistentVolume),
                (STORAGE_CLASSES, StorageClass),
            ):
                listing = self.gateway.list(resource, as_type=as_type)
                self.controller.store.replace(resource, listing)
            for resource in (PVCS, PVS):
                for body in self.gateway.list(resource, as_type=dict).items:
                    meta = body["metadata"]
                    key = "/".join(part for part in (meta.get("namespace"), meta["name"]) if part)
                    self.controller.reconcile(f"{resource.plural} {key}")
            if len(self.gateway.calls) == before:
                return
        raise AssertionError(f"the controller writes for ever: {self.gateway.calls[-4:]}")

    def claim(self, name: str = "data") -> tuple[str, str]:
        body = self.gateway.raw(PVCS, name, "ns")
        return body["status"]["phase"], body["spec"].get("volumeName", "")

    def volume(self, name: str) -> tuple[str, str]:
        body = self.gateway.raw(PVS, name)
        return body["status"]["phase"], body["spec"].get("claimRef", {}).get("uid", "")


def test_a_claim_gets_the_smallest_volume_that_is_large_enough() -> None:
    cluster = Cluster(claim(), volume("tiny", "1Gi"), volume("huge", "50Gi"), volume("fits", "6Gi"))
    cluster.settle()
    assert cluster.claim() == ("Bound", "fits")
    assert cluster.volume("fits") == ("Bound", "uid-data")
    assert cluster.volume("huge") == ("Available", "")
    assert cluster.gateway.raw(PVCS, "data", "ns")["status"]["capacity"] == {"storage": "6Gi"}


def test_a_volume_reserved_for_a_claim_by_name_goes_to_it() -> None:
    reference = {"namespace": "ns", "name": "data"}
    cluster = Cluster(claim(), volume("small", "5Gi"), volume("mine", "50Gi", reference=reference))
    cluster.settle()
    assert cluster.claim() == ("Bound", "mine")
    assert cluster.volume("mine") == ("Bound", "uid-data")


def test_two_claims_never_share_a_volume() -> None:
    cluster = Cluster(claim("one"), claim("two"), volume("only", "5Gi"))
    cluster.settle()
    assert [cluster.claim("one"), cluster.claim("two")] == [("Bound", "only"), ("Pending", "")]


def test_a_claim_may_name_its_volume_unless_another_has_it() -> None:
    other_claim = {"namespace": "ns", "name": "other", "uid": "uid-other"}
    named = claim(volume="big")
    cluster = Cluster(named, claim("late", volume="gone"), volume("big", "50Gi"))
    cluster.settle()
    assert cluster.claim() == ("Bound", "big")
    cluster = Cluster(claim(volume="big"), volume("big", "50Gi", reference=other_claim))
    cluster.settle()
    assert cluster.claim()[0] == "Pending"


@pytest.mark.parametrize(("node", "expected"), [("", "Pending"), ("n1", "Bound")])
def test_a_class_that_waits_for_a_consumer_waits_for_the_chosen_node(
    node: str, expected: str
) -> None:
    late = storage_class("late", "WaitForFirstConsumer")
    cluster = Cluster(late, claim(storage_class="late", node=node))
    cluster.settle()
    assert cluster.claim()[0] == expected
    if node:
        terms = cluster.gateway.raw(PVS, "pvc-uid-data")["spec"]["nodeAffinity"]["required"]
        (expression,) = terms["nodeSelectorTerms"][0]["matchExpressions"]
        assert expression["values"] == ["n1"]


def test_a_class_that_does_not_wait_makes_its_volume_at_once() -> None:
    cluster = Cluster(storage_class("fast", "Immediate"), claim(storage_class="fast"))
    cluster.settle()
    assert cluster.claim() == ("Bound", "pvc-uid-data")


def test_no_volume_is_made_for_the_class_of_another_provisioner() -> None:
    other = storage_class("other", "Immediate", provisioner="disks.example.com")
    cluster = Cluster(other, claim(storage_class="other"))
    cluster.settle()
    assert cluster.claim() == ("Pending", "")


def test_after_its_claim_a_made_volume_is_deleted_and_a_static_one_released() -> None:
    cluster = Cluster(
        storage_class("fast", "Immediate"),
        claim("made", storage_class="fast"),
        claim("static"),
        volume("disk", "5Gi"),
    )
    cluster.settle()
    for name in ("made", "static"):
        cluster.gateway.delete(PVCS, name, namespace="ns")
    cluster.settle()
    assert cluster.volume("disk") == ("Released", "uid-static")
    assert [body["metadata"]["name"] for body in cluster.gateway.list(PVS, as_type=dict).items] == [
        "disk"
    ]
