"""A cluster with whole GPUs, shared GPUs, MIG slices and published devices, and the pods that want them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from kube.resources import (
    DEVICE_CLASSES,
    EVENTS,
    NODES,
    PODGROUPS,
    PODS,
    PRIORITY_CLASSES,
    QUEUES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
)
from tests.fakes.gateway import FakeGateway
from tests.scheduler.load.objects import group, meta, node, pod, queue
from tests.scheduler.loop.harness import FREE, START

RESERVATIONS = "kai-resource-reservation"
GPU_NODES = {"g0": 2, "g1": 2}
DEVICE_MIB = 16000
MIG_NODE, MIG_RESOURCE, MIG_SLICES = "m0", "nvidia.com/mig-1g.5gb", 2
DRA_NODE, DRA_DRIVER, DRA_DEVICES = "d0", "gpu.example.com", ("d0", "d1")
SHARED_CLAIM = "shared"
EXTENDED_RESOURCE = "example.com/gpu"
#: Kind of pod -> devices, MiB of each.
FRACTIONS = {"half": (1, 8000), "third": (1, 5000), "two-halves": (2, 8000), "memory": (1, 6000)}
_FRACTION_MARKS = {
    "half": {"gpu-fraction": "0.5"},
    "third": {"gpu-fraction": "0.3125"},
    "two-halves": {"gpu-fraction": "0.5", "gpu-fraction-num-devices": "2"},
    "memory": {"gpu-memory": "6000"},
}
#: A claim that is not made from a template names its queue.
LABELS = {"kai.scheduler/queue": "q"}
WHOLE = {"one": 1, "two": 2}
KINDS = (*FRACTIONS, *WHOLE, "mig", "claim", "shared-claim", "extended")
KIND_MARK = "test/kind"


class DeviceCluster(FakeGateway):
    """The API server of that cluster; `seconds` is the time since the start."""

    seconds: float
    pods_made: int

    def begin(self) -> None:
        self.seconds = 0.0
        self.pods_made = 0
        ordinary = {"cpu": "32", "memory": "128Gi", "pods": "110"}
        for name, gpus in GPU_NODES.items():
            labels = {"nvidia.com/gpu.memory": str(DEVICE_MIB), "nvidia.com/gpu.count": str(gpus)}
            self.seed(NODES, node(name, gpus=gpus, labels=labels))
        slices = {**ordinary, MIG_RESOURCE: str(MIG_SLICES)}
        self.seed(
            NODES,
            node(MIG_NODE, labels={"nvidia.com/mig.strategy": "mixed"}, allocatable=slices),
            node(DRA_NODE, allocatable=ordinary),
        )
        resources = {"cpu": FREE, "memory": FREE, "gpu": FREE}
        self.seed(QUEUES, queue("top", resources=resources))
        self.seed(QUEUES, queue("q", resources=resources, parentQueue="top"))
        for name, value in (("low", 10), ("high", 50)):
            self.seed(PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value})
        devices = [{"name": name} for name in DRA_DEVICES]
        place = {"pool": {"name": DRA_NODE, "resourceSliceCount": 1}, "nodeName": DRA_NODE}
        self.seed(
            RESOURCE_SLICES,
            {
                "metadata": meta("slice"),
                "spec": {"driver": DRA_DRIVER, "devices": devices, **place},
            },
        )
        self.seed(
            DEVICE_CLASSES,
            {
                "metadata": meta("gpu"),
                "spec": {"extendedResourceName": EXTENDED_RESOURCE},
            },
        )
        self.seed(RESOURCE_CLAIMS, _claim(SHARED_CLAIM, labels=LABELS))

    def create(self, resource: Any, body: Any, **options: Any) -> dict[str, Any]:
        """Create an object; events are not kept, because nothing here reads them."""
        return {} if resource == EVENTS else super().create(resource, body, **options)

    def wait(self, seconds: float) -> None:
        self.seconds += seconds
        self.now = START + timedelta(seconds=self.seconds)

    def bodies(self, resource: Any) -> list[dict[str, Any]]:
        """Return the stored objects of a kind, not to be changed."""
        return [body for key, body in self.objects.items() if key[0] == resource]

    def users(self) -> list[dict[str, Any]]:
        """Return the pods that request devices."""
        return [body for body in self.bodies(PODS) if body["metadata"]["namespace"] == "ns"]

    def holders(self) -> list[dict[str, Any]]:
        """Return the reservation pods that hold a device or soon will."""
        return [
            body
            for body in self.bodies(PODS)
            if body["metadata"]["namespace"] == RESERVATIONS and not is_finished(body)
        ]

    def arrive(self, name: str, kind: str, priority: str) -> None:
        """Create a pod, its pod group and its own claim."""
        if (PODGROUPS, "ns", name) in self.objects:
            self.delete(PODGROUPS, name, namespace="ns")
        self.pods_made += 1
        uid = f"uid-{name}-{self.pods_made}"
        pod_group = group(name, priorityClassName=priority, minMember=1)
        pod_group["metadata"]["uid"] = f"group-{uid}"
        self.seed(PODGROUPS, pod_group)
        body = _pod_body(name, kind)
        body["metadata"]["uid"] = uid
        body["metadata"]["annotations"][KIND_MARK] = kind
        self.seed(PODS, body)
        if kind == "claim":
            owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid}
            self.seed(
                RESOURCE_CLAIMS,
                _claim(f"of-{name}", uid=uid, ownerReferences=[owner], labels=LABELS),
            )


def _pod_body(name: str, kind: str) -> dict[str, Any]:
    if kind in FRACTIONS:
        prefix = f"{name}-abcdefg-shared-gpu"
        reference = {"configMapKeyRef": {"name": f"{prefix}-0", "key": "NVIDIA_VISIBLE_DEVICES"}}
        env = [{"name": "NVIDIA_VISIBLE_DEVICES", "valueFrom": reference}]
        annotations = {**_FRACTION_MARKS[kind], "runai/shared-gpu-configmap": prefix}
        body = pod(name, group=name, annotations=annotations)
        body["spec"]["containers"][0]["env"] = env
        return body
    if kind in WHOLE:
        return pod(name, group=name, requests={"nvidia.com/gpu": str(WHOLE[kind])})
    if kind == "mig":
        return pod(name, group=name, requests={MIG_RESOURCE: "1"})
    if kind == "extended":
        return pod(name, group=name, requests={EXTENDED_RESOURCE: "1"})
    claim = SHARED_CLAIM if kind == "shared-claim" else f"of-{name}"
    return pod(name, group=name, resourceClaims=[{"name": "gpu", "resourceClaimName": claim}])


def _claim(name: str, **extra: Any) -> dict[str, Any]:
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    spec = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
    uid = {"uid": f"claim-{extra.pop('uid', name)}"}
    return {"metadata": {**meta(name, "ns"), **uid, **extra}, "spec": spec, "status": {}}


def is_finished(body: dict[str, Any]) -> bool:
    return body.get("status", {}).get("phase") in ("Succeeded", "Failed")


def node_of(body: dict[str, Any]) -> str:
    name: str = body["spec"].get("nodeName", "")
    return name


def kind_of(body: dict[str, Any]) -> str:
    kind: str = body["metadata"]["annotations"][KIND_MARK]
    return kind
