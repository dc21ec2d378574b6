"""The message of a pod whose volumes are out of reach: every reason, from cluster objects to the pod's condition."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kube.resources import (
    BINDREQUESTS,
    CSI_DRIVERS,
    CSI_STORAGE_CAPACITIES,
    NODES,
    PVCS,
    PVS,
    STORAGE_CLASSES,
)
from tests.scheduler.explain.waiting_pod import NO_NODES, args, message_of_pod, queues, wants
from tests.scheduler.load.objects import meta, node
from tests.scheduler.loop.harness import Harness
from tests.scheduler.loop.harness import harness as open_harness

IN_B = {
    "required": {
        "nodeSelectorTerms": [
            {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["b"]}]}
        ]
    }
}
MOUNTS: Any = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}


@pytest.fixture
def harness() -> Iterator[Harness]:
    with open_harness() as opened:
        yield opened


def claim(size: str = "5Gi", **more: Any) -> dict[str, Any]:
    spec = {
        "storageClassName": "fast",
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": size}},
        "volumeName": more.pop("volume", ""),
    }
    status = {"phase": more.pop("phase", "Pending")}
    return {"metadata": meta("data", "ns", **more), "spec": spec, "status": status}


def storage_class(harness: Harness, provisioner: str = "csi.example.com", **more: Any) -> Harness:
    body = {"provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer", **more}
    return harness.seed(STORAGE_CLASSES, {"metadata": meta("fast"), **body})


def driver(harness: Harness, capacity: str) -> Harness:
    harness.seed(
        CSI_DRIVERS, {"metadata": meta("csi.example.com"), "spec": {"storageCapacity": True}}
    )
    body = {"storageClassName": "fast", "capacity": capacity, "nodeTopology": {}}
    return harness.seed(CSI_STORAGE_CAPACITIES, {"metadata": meta("cap", "kube-system"), **body})


def _bound_elsewhere(harness: Harness) -> None:
    harness.seed(PVCS, claim(volume="pv", phase="Bound"))
    spec = {"capacity": {"storage": "5Gi"}, "nodeAffinity": IN_B}
    harness.seed(PVS, {"metadata": meta("pv"), "spec": spec})


def _bound_to_nothing(harness: Harness) -> None:
    harness.seed(PVCS, claim(volume="gone", phase="Bound"))


def _nothing_to_bind(harness: Harness) -> None:
    storage_class(harness, "kubernetes.io/no-provisioner").seed(PVCS, claim())


def _no_space(harness: Harness) -> None:
    driver(storage_class(harness), "4Gi").seed(PVCS, claim())


@pytest.mark.parametrize(
    ("arrange", "reason"),
    [
        (_bound_elsewhere, "node(s) didn't match PersistentVolume's node affinity"),
        (
            _bound_to_nothing,
            "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
        ),
        (_nothing_to_bind, "node(s) didn't find available persistent volumes to bind"),
        (_no_space, "node(s) did not have enough free storage"),
    ],
)
def test_volumes_out_of_reach(
    harness: Harness, arrange: Callable[[Harness], None], reason: str
) -> None:
    queues(harness).seed(NODES, node("n0", labels={"zone": "a"}))
    arrange(harness)
    assert message_of_pod(wants(harness, **MOUNTS)) == f"{NO_NODES}: 1 {reason}."


def test_a_driver_with_room_is_no_obstacle(harness: Harness) -> None:
    queues(harness).seed(NODES, node("n0"))
    driver(storage_class(harness), "5Gi").seed(PVCS, claim())
    wants(harness, **MOUNTS).cycle()
    assert harness.gateway.names(BINDREQUESTS) == ["p"]


def test_a_lack_of_storage_names_the_class(harness: Harness) -> None:
    args(queues(harness), schedule_csi_storage="true").seed(NODES, node("n0"))
    driver(storage_class(harness), "4Gi").seed(PVCS, claim())
    assert message_of_pod(wants(harness, **MOUNTS)) == (
        f"{NO_NODES}: 1 node(s) did not have enough free storage for storageclass fast."
    )


def test_storage_without_a_capacity_object(harness: Harness) -> None:
    args(queues(harness), schedule_csi_storage="true").seed(NODES, node("n0"))
    harness.seed(CSI_DRIVERS, {"metadata": meta("csi.example.com")})
    storage_class(harness).seed(PVCS, claim())
    assert message_of_pod(wants(harness, **MOUNTS)) == (
        f"{NO_NODES}: 1 no allocatable storage from storageclass fast found."
    )


def test_a_claim_whose_owner_is_gone(harness: Harness) -> None:
    args(queues(harness), schedule_csi_storage="true").seed(NODES, node("n0"))
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "old", "uid": "uid-old"}
    driver(storage_class(harness), "40Gi").seed(PVCS, claim(ownerReferences=[owner]))
    assert (
        message_of_pod(wants(harness, **MOUNTS))
        == f"{NO_NODES}: 1 task has deleted storage claims: ns/data."
    )
