"""The kinds of devices and volumes that fewer pods have: partitions, taints, capacity of storage, MIG alone on a node.

Everything is in the namespace `rare`. The drivers' names do not contain "gpu", so their devices count in no queue.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

NAMESPACE = "rare"
#: The feature gates of the API server that these kinds need.
GATES = "DRAPartitionableDevices=true,DRADeviceTaints=true,DRAExtendedResource=true"
CABLE = "example.test/cable"
PROVISIONER = "simulated.kaiweb.dev"
Json = dict[str, Any]


def _object(api: str, kind: str, name: str, *, metadata: Json | None = None, **parts: Any) -> Json:
    return {
        "apiVersion": api,
        "kind": kind,
        "metadata": {"name": name, **(metadata or {})},
        **parts,
    }


def _namespaced(api: str, kind: str, name: str, *, metadata: Json | None = None, **rest: Any) -> Json:  # fmt: skip
    return _object(api, kind, name, metadata={"namespace": NAMESPACE, **(metadata or {})}, **rest)


def _slice(driver: str, name: str, slices: int = 1, **spec: Any) -> Json:
    pool = {"name": "t4-2", "generation": 1, "resourceSliceCount": slices}
    body = {"driver": driver, "nodeName": "t4-2", "pool": pool, **spec}
    return _object("resource.k8s.io/v1", "ResourceSlice", name, spec=body)


def _class(name: str, driver: str, **spec: Any) -> Json:
    selectors = [{"cel": {"expression": f'device.driver == "{driver}"'}}]
    body = {"selectors": selectors, **spec}
    return _object("resource.k8s.io/v1", "DeviceClass", name, spec=body)


def _claim(name: str, device_class: str, **exactly: Any) -> Json:
    request = {"name": "r", "exactly": {"deviceClassName": device_class, **exactly}}
    spec = {"devices": {"requests": [request]}}
    return _namespaced("resource.k8s.io/v1", "ResourceClaim", name, spec=spec)


def _part(name: str, size: str, amount: str) -> Json:
    counters = [{"counterSet": "board", "counters": {"memory": {"value": amount}}}]
    return {
        "name": name,
        "attributes": {"size": {"string": size}},
        "consumesCounters": counters,
    }


def _of_size(size: str) -> Sequence[Json]:
    return [{"cel": {"expression": f'device.attributes["parts.example.test"].size == "{size}"'}}]


def _storage_class(name: str, mode: str) -> Json:
    api = "storage.k8s.io/v1"
    return _object(api, "StorageClass", name, provisioner=PROVISIONER, volumeBindingMode=mode)


def _volume_claim(name: str, storage_class: str, size: str) -> Json:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage_class,
        "resources": {"requests": {"storage": size}},
    }
    return _namespaced("v1", "PersistentVolumeClaim", name, spec=spec)


def _capacity(name: str, node: str, capacity: str) -> Json:
    return _namespaced(
        "storage.k8s.io/v1",
        "CSIStorageCapacity",
        name,
        storageClassName="counted",
        capacity=capacity,
        nodeTopology={"matchLabels": {"kubernetes.io/hostname": node}},
    )


def pod(
    name: str,
    *,
    node: str = "",
    annotations: Mapping[str, str] | None = None,
    limits: Mapping[str, str] | None = None,
    claim: str = "",
    volume: str = "",
    init: Sequence[str] = (),
) -> Json:
    """Return a pod with one container, and perhaps init containers.

    Parameters
    ----------
    node : the only one it may be on
    claim, volume : the name of its ResourceClaim and of its PersistentVolumeClaim
    """
    container: Json = {"name": "main", "image": "example.test/x:1"}
    container["resources"] = {"limits": dict(limits or {})}
    spec: Json = {"schedulerName": "kai-scheduler", "containers": [container]}
    if init:
        spec["initContainers"] = [{"name": item, "image": "example.test/x:1"} for item in init]
    if node:
        spec["nodeSelector"] = {"kubernetes.io/hostname": node}
    if claim:
        spec["resourceClaims"] = [{"name": "r", "resourceClaimName": claim}]
        container["resources"] = {"claims": [{"name": "r"}]}
    if volume:
        spec["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": volume}}]
    labels = {"kai.scheduler/queue": "default-queue"}
    metadata: Json = {"labels": labels, "annotations": dict(annotations or {})}
    return _namespaced("v1", "Pod", name, metadata=metadata, spec=spec)


def _everything() -> list[Json]:
    taint = {"key": "worn", "value": "yes", "effect": "NoSchedule"}
    toleration = {"key": "worn", "operator": "Exists"}
    board = {"name": "board", "counters": {"memory": {"value": "80Gi"}}}
    parts = [_part("whole", "full", "80Gi"), _part("left", "half", "40Gi")]
    return [
        _class("cable", "cables.example.test", extendedResourceName=CABLE),
        _slice("cables.example.test", "cables", devices=[{"name": "cable-0"}]),
        _class("part", "parts.example.test"),
        _slice("parts.example.test", "boards", 2, sharedCounters=[board]),
        _slice("parts.example.test", "parts", 2, devices=[*parts, _part("right", "half", "40Gi")]),
        _class("worn", "worn.example.test"),
        _slice("worn.example.test", "worn", devices=[{"name": "old-0", "taints": [taint]}]),
        _claim("left", "part", selectors=_of_size("half")),
        _claim("right", "part", selectors=_of_size("half")),
        _claim("full", "part", selectors=_of_size("full")),
        _claim("tolerant", "worn", tolerations=[toleration]),
        _claim("strict", "worn"),
        _storage_class("at-once", "Immediate"),
        _storage_class("counted", "WaitForFirstConsumer"),
        _object("storage.k8s.io/v1", "CSIDriver", PROVISIONER, spec={"storageCapacity": True}),
        _capacity("small", "t4-1", "1Gi"),
        _capacity("large", "a100-2", "100Gi"),
        _volume_claim("present", "at-once", "1Gi"),
        _volume_claim("big", "counted", "50Gi"),
        pod("cabled", limits={CABLE: "1"}),
        pod("left", claim="left"),
        pod("right", claim="right"),
        pod("tolerant", claim="tolerant"),
        pod("present", volume="present"),
        pod("big", volume="big"),
        pod("single", node="mig-1", limits={"nvidia.com/gpu": "1"}),
        pod(
            "memory-pair",
            node="t4-1",
            annotations={"gpu-memory": "4000", "gpu-fraction-num-devices": "2"},
        ),
        pod(
            "in-init",
            node="t4-1",
            annotations={"gpu-fraction": "0.25", "gpu-fraction-container-name": "prepare"},
            init=["prepare"],
        ),
    ]


#: What is bound, and what that needs.
RARE_KINDS = json.dumps({"apiVersion": "v1", "kind": "List", "items": _everything()})
#: Pods for which no device is left: the counters are used up, the only device is tainted.
WITHOUT_A_DEVICE = json.dumps(
    {
        "apiVersion": "v1",
        "kind": "List",
        "items": [pod("full", claim="full"), pod("strict", claim="strict")],
    }
)
