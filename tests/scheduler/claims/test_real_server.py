"""Claims on a real kube-apiserver: objects of a driver are read, and what we allocate is accepted and kept.

Once with v1 and all gates of dynamic resource allocation, and once each on servers that have a beta only.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from binder.steps.claim_status import ConflictRetry, allocate_claim
from binder.steps.extended_claim import ExtendedClaims
from kube.client import HttpGateway, connect
from kube.objects.bindrequest import ExtendedClaimAllocation
from kube.objects.devices import DeviceClass, ResourceClaim, ResourceSlice
from kube.objects.pod import Pod
from kube.resources import DEVICE_CLASSES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from scheduler.core.cluster.inputs import NodeInput
from scheduler.core.cluster.journal import Journal
from scheduler.core.plugins.device_claims.allocator.allocator import Allocator, Refusal
from scheduler.core.plugins.device_claims.ledger import ClaimLedger
from scheduler.load.claims import allocation_body, device_inputs
from tests.real_cluster.fixture import running_or_skip

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
DRIVER = "gpu.nvidia.com"
GATES = "DRAPartitionableDevices=true,DRADeviceTaints=true,DRAConsumableCapacity=true"
#: Its quota controller needs v1, without which the server is never ready.
ONLY_V1 = ",DRAExtendedResource=true"
VERSIONS = {
    "v1": "resource.k8s.io/v1=true",
    "v1beta2": "resource.k8s.io/v1=false,resource.k8s.io/v1beta2=true",
    "v1beta1": "resource.k8s.io/v1=false,resource.k8s.io/v1beta1=true",
}
Json = dict[str, Any]


@pytest.fixture(scope="module", params=list(VERSIONS))
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def gateway(version: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpGateway]:
    folder: Path = tmp_path_factory.mktemp("claims")
    gates = GATES + (ONLY_V1 if version == "v1" else "")
    flags = [f"--feature-gates={gates}", f"--runtime-config={VERSIONS[version]}"]
    with running_or_skip(folder, extra_flags=flags) as cluster:
        gateway = connect(cluster.kubeconfig)
        for body in _driver_objects():
            resource = DEVICE_CLASSES if body["kind"] == "DeviceClass" else RESOURCE_SLICES
            gateway.create(resource, _in_version(version, body))
        yield gateway
        gateway.close()


def _driver_objects() -> list[Json]:
    """Return a class and the slices of two cards, one of which can be used in partitions."""

    def drawing(name: str, kind: str, amount: str) -> Json:
        return {
            "name": name,
            "attributes": {"type": {"string": kind}, "driverVersion": {"version": "580.65.6"}},
            "capacity": {"memory": {"value": amount}},
            "consumesCounters": [
                {"counterSet": "gpu-0", "counters": {"memory": {"value": amount}}}
            ],
        }

    gpu_1 = {
        "name": "gpu-1",
        "attributes": {"type": {"string": "gpu"}},
        "capacity": {"memory": {"value": "80Gi"}},
        "taints": [{"key": "xid", "value": "79", "effect": "NoSchedule"}],
    }
    nic = {"name": "nic-0", "capacity": {"bandwidth": {"value": "10"}}}
    nic["allowMultipleAllocations"] = True
    counters = [{"name": "gpu-0", "counters": {"memory": {"value": "80Gi"}}}]
    parts = [drawing(f"gpu-0-part-{number}", "mig", "40Gi") for number in range(2)]
    settings = {"driver": DRIVER, "parameters": {"kind": "GpuConfig"}}
    return [
        {
            "kind": "DeviceClass",
            "metadata": {"name": DRIVER},
            "spec": {
                "selectors": [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}],
                "config": [{"opaque": settings}],
            },
        },
        _slice("gpus", DRIVER, {"devices": [drawing("gpu-0", "gpu", "80Gi"), *parts, gpu_1]}),
        _slice("counters", DRIVER, {"sharedCounters": counters}),
        _slice("nics", "nic.test", {"devices": [nic]}, count=1),
        {"kind": "DeviceClass", "metadata": {"name": "nic"}, "spec": {"selectors": [
            {"cel": {"expression": "device.driver == 'nic.test'"}}]}},
    ]  # fmt: skip


def _slice(name: str, driver: str, spec: Json, count: int = 2) -> Json:
    pool = {"name": "n0", "generation": 1, "resourceSliceCount": count}
    body = {"driver": driver, "pool": pool, "nodeName": "n0", **spec}
    return {"kind": "ResourceSlice", "metadata": {"name": name}, "spec": body}


def _in_version(version: str, body: Json) -> Json:
    """Return an object as a driver for this version writes it."""
    body = {**body, "apiVersion": f"resource.k8s.io/{version}"}
    spec = body["spec"]
    if version == "v1beta1" and "devices" in spec:
        devices = [
            {"name": item["name"], "basic": {k: v for k, v in item.items() if k != "name"}}
            for item in spec["devices"]
        ]
        body["spec"] = {**spec, "devices": devices}
    return body


def _claim(gateway: HttpGateway, name: str, **devices: Any) -> ResourceClaim:
    body = {
        "apiVersion": RESOURCE_CLAIMS.api_version,
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": devices},
    }
    gateway.create(RESOURCE_CLAIMS, body, namespace="default")
    return gateway.get(RESOURCE_CLAIMS, name, as_type=ResourceClaim, namespace="default")


def _pod(gateway: HttpGateway, name: str) -> Pod:
    resources = {"limits": {"example.com/nic": "1"}, "requests": {"example.com/nic": "1"}}
    containers = [{"name": "main", "image": "image", "resources": resources}]
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": containers},
    }
    gateway.create(PODS, body, namespace="default")
    return gateway.get(PODS, name, as_type=Pod, namespace="default")


def _allocate(gateway: HttpGateway, claim: ResourceClaim) -> Json:
    """Allocate a claim, write it, and return the allocation that the server keeps."""
    inputs = device_inputs(
        gateway.list(DEVICE_CLASSES, as_type=DeviceClass).items,
        gateway.list(RESOURCE_SLICES, as_type=ResourceSlice).items,
        gateway.list(RESOURCE_CLAIMS, as_type=ResourceClaim).items,
    )
    name = claim.metadata.name
    claims = [item for item in inputs.claims if item.name == name]
    allocator = Allocator(inputs, [NodeInput(name="n0")])
    allocations = allocator.allocate(claims, 0, ClaimLedger(inputs.claims, Journal()))
    assert not isinstance(allocations, Refusal), allocations
    status = allocation_body(allocations[0])
    pod = _pod(gateway, f"for-{name}")
    allocate_claim(gateway, ConflictRetry(timeout_s=5), pod, name, status)
    stored = gateway.get(RESOURCE_CLAIMS, name, as_type=ResourceClaim, namespace="default")
    assert "resource.kubernetes.io/delete-protection" in stored.metadata.finalizers
    assert [item.uid for item in stored.status.reserved_for] == [pod.metadata.uid]
    assert stored.status.allocation == status
    return stored.status.allocation


def _devices(allocation: Json) -> list[str]:
    return [item["device"] for item in allocation["devices"]["results"]]


def _request(name: str = "r", **exactly: Any) -> Json:
    return {"name": name, "exactly": {"deviceClassName": DRIVER, **exactly}}


def test_devices_are_given_out_until_the_counters_are_used_up(gateway: HttpGateway) -> None:
    assert gateway.list(RESOURCE_SLICES, as_type=ResourceSlice).items
    half = {"cel": {"expression": "device.attributes['gpu.nvidia.com'].type == 'mig'"}}
    settings = {"opaque": {"driver": DRIVER, "parameters": {"sharing": "TimeSlicing"}}}
    request = _request(selectors=[half])
    allocation = _allocate(gateway, _claim(gateway, "half", requests=[request], config=[settings]))
    assert _devices(allocation) == ["gpu-0-part-0"]
    assert [item["source"] for item in allocation["devices"]["config"]] == [
        "FromClass",
        "FromClaim",
    ]
    alternatives = [
        {"name": "whole", "deviceClassName": DRIVER, "count": 2},
        {"name": "rest", "deviceClassName": DRIVER},
    ]
    rest = _allocate(
        gateway,
        _claim(gateway, "rest", requests=[{"name": "r", "firstAvailable": alternatives}]),
    )
    assert [(item["request"], item["device"]) for item in rest["devices"]["results"]] == [
        ("r/rest", "gpu-0-part-1")
    ]


def test_a_tainted_device_is_given_to_a_request_that_tolerates_it(gateway: HttpGateway) -> None:
    toleration = {"key": "xid", "operator": "Exists"}
    request = _request(tolerations=[toleration])
    allocation = _allocate(gateway, _claim(gateway, "tolerant", requests=[request]))
    assert _devices(allocation) == ["gpu-1"]
    assert allocation["devices"]["results"][0]["tolerations"] == [toleration]


def test_a_shareable_device_is_given_to_two_claims(gateway: HttpGateway) -> None:
    shares = []
    for name in ("left", "right"):
        exactly = {"deviceClassName": "nic", "capacity": {"requests": {"bandwidth": "5"}}}
        request: Json = {"name": "r", "exactly": exactly}
        [result] = _allocate(gateway, _claim(gateway, name, requests=[request]))["devices"][
            "results"
        ]
        assert (result["device"], result["consumedCapacity"]) == ("nic-0", {"bandwidth": "5"})
        shares.append(result["shareID"])
    assert len(set(shares)) == 2


def test_the_claim_for_extended_resources_is_created_and_found_again(gateway: HttpGateway) -> None:
    pod = _pod(gateway, "extended")
    result = {
        "request": "container-0-request-0",
        "driver": "nic.test",
        "pool": "n0",
        "device": "nic-9",
    }
    chosen = ExtendedClaimAllocation(
        allocation={"devices": {"results": [result]}},
        device_requests=(
            {
                "name": "container-0-request-0",
                "exactly": {
                    "deviceClassName": "nic",
                    "allocationMode": "ExactCount",
                    "count": 1,
                },
            },
        ),
        container_mappings=(
            {
                "containerName": "main",
                "resourceName": "example.com/nic",
                "requestName": "container-0-request-0",
            },
        ),
    )
    steps = ExtendedClaims(gateway, ConflictRetry(timeout_s=5))
    for _ in range(2):
        # Read anew, because a status may be written only from the pod's present version.
        steps.prepare(gateway.get(PODS, "extended", as_type=Pod, namespace="default"), chosen)
    owned = [
        item
        for item in gateway.list(RESOURCE_CLAIMS, as_type=ResourceClaim, namespace="default").items
        if any(owner.uid == pod.metadata.uid for owner in item.metadata.owner_references)
    ]
    assert len(owned) == 1
    assert owned[0].status.allocation is not None
