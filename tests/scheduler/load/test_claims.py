"""Devices and volumes in core terms, and CEL selectors over published devices."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest

from kube.objects.devices import ResourceSlice
from kube.objects.meta import convert
from kube.objects.pod import Pod
from kube.resources import (
    BINDREQUESTS,
    DEVICE_CLASSES,
    NODES,
    PODGROUPS,
    PODS,
    PVCS,
    PVS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    STORAGE_CLASSES,
)
from scheduler.apply.bind_requests import bind_request_body
from scheduler.core.cluster.constraints import ClaimReference, Expression, NodeTerm, Operator
from scheduler.core.cluster.device_inputs import (
    EXTENDED_CLAIM,
    AllocatedDevice,
    ClaimAllocation,
    DeviceRequest,
)
from scheduler.core.cluster.inputs import ClusterInput
from scheduler.core.decisions import ActionName, Bind, TaskRef
from scheduler.load.build import SnapshotBuilder
from scheduler.load.claims import allocation_body, allocation_from
from scheduler.load.extended import extended_body
from scheduler.load.selectors import matching_devices
from scheduler.settings.params import ShardParams
from tests.scheduler.load.objects import NOW, Cluster, bind_request, group, meta, node, pod

ALLOCATION = {
    "devices": {"results": [{"request": "r", "driver": "gpu.x", "pool": "n0", "device": "d0"}]},
    "nodeSelector": {
        "nodeSelectorTerms": [
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n0"]}]}
        ]
    },
}
ON_N0 = ClaimAllocation(
    claim="c",
    namespace="ns",
    devices=(AllocatedDevice(driver="gpu.x", pool="n0", device="d0", request="r"),),
    node_terms=(NodeTerm(fields=(Expression("metadata.name", Operator.IN, ("n0",)),)),),
)


def build(cluster: Cluster) -> ClusterInput:
    return SnapshotBuilder(ShardParams(), origin=NOW).build(cluster.store.view(), NOW).cluster


def claim(name: str, *requests: dict[str, Any], **extra: Any) -> dict[str, Any]:
    status = extra.pop("status", {})
    spec = {"devices": {"requests": list(requests)}}
    return {"metadata": meta(name, "ns", **extra), "spec": spec, "status": status}


def exactly(device_class: str, **extra: Any) -> dict[str, Any]:
    return {"name": "r", "exactly": {"deviceClassName": device_class, **extra}}


def gpu_slice(devices: int = 2, **extra: Any) -> dict[str, Any]:
    listed = [
        {"name": f"d{index}", "attributes": {"index": {"int": index}, "model": {"string": "a100"}}}
        for index in range(devices)
    ]
    spec = {"driver": "gpu.x", "pool": {"name": "n0"}, "nodeName": "n0", "devices": listed, **extra}
    return {"metadata": meta("slice"), "spec": spec}


def test_claims_count_gpus_and_point_to_their_real_names() -> None:
    cluster = Cluster().put(NODES, node("n0")).put(PODGROUPS, group("pg"))
    cluster.put(RESOURCE_CLAIMS, claim("c", exactly("gpu.nvidia.com", count=2)))
    cluster.put(RESOURCE_CLAIMS, claim("made-abc", exactly("imex.nvidia.com")))
    references = [
        {"name": "mine", "resourceClaimName": "c"},
        {"name": "channel", "resourceClaimTemplateName": "t"},
        {"name": "late", "resourceClaimTemplateName": "t"},
    ]
    body = pod("p", group="pg", resourceClaims=references)
    statuses = [{"name": "channel", "resourceClaimName": "made-abc"}]
    body["status"]["resourceClaimStatuses"] = statuses
    cluster.put(PODS, body)
    (task,) = build(cluster).pod_groups[0].tasks
    assert task.request.device_classes == (("gpu.nvidia.com", 2.0),)
    assert task.constraints.device_claims == (
        ClaimReference("c", False),
        ClaimReference("made-abc", True),
        ClaimReference("late", True),
    )


def test_claim_that_appears_later_changes_the_request_of_an_unchanged_pod() -> None:
    cluster = Cluster().put(PODGROUPS, group("pg"))
    cluster.put(
        PODS, pod("p", group="pg", resourceClaims=[{"name": "m", "resourceClaimName": "c"}])
    )
    builder = SnapshotBuilder(ShardParams(), origin=NOW)
    before = builder.build(cluster.store.view(), NOW).cluster.pod_groups[0].tasks[0]
    cluster.put(RESOURCE_CLAIMS, claim("c", exactly("gpu")))
    after = builder.build(cluster.store.view(), NOW).cluster.pod_groups[0].tasks[0]
    assert before.request.device_classes == ()
    assert after.request.device_classes == (("gpu", 1.0),)


def test_published_devices_add_to_a_nodes_gpus() -> None:
    cluster = Cluster().put(NODES, node("n0", gpus=0)).put(RESOURCE_SLICES, gpu_slice(3))
    inputs = build(cluster)
    assert (inputs.nodes[0].dra_gpus, inputs.nodes[0].allocatable["gpu"]) == (3.0, 3.0)
    (only,) = inputs.devices.slices
    assert (only.driver, only.pool, only.node, len(only.devices)) == ("gpu.x", "n0", "n0", 3)
    assert only.devices[1].attributes == {"index": 1, "model": "a100"}


def test_allocation_survives_the_way_there_and_back() -> None:
    assert allocation_from("c", "ns", ALLOCATION) == ON_N0
    assert allocation_from("c", "ns", allocation_body(ON_N0)) == ON_N0


def test_conditions_to_wait_for_survive_the_way_there_and_back() -> None:
    result = {"driver": "d", "pool": "p", "device": "x", "request": "r"}
    result_body = result | {"bindingConditions": ["ready"], "bindingFailureConditions": ["broken"]}
    body = {"devices": {"results": [result_body]}}
    allocation = allocation_from("c", "ns", body)
    assert allocation.devices[0].binding_conditions == ("ready",)
    assert allocation_body(allocation) == body


def test_state_of_claims() -> None:
    cluster = Cluster()
    reserved = [{"resource": "pods", "name": "p", "uid": "uid-p"}, {"resource": "x", "uid": "u"}]
    status = {"allocation": ALLOCATION, "reservedFor": reserved}
    owner = [{"kind": "Pod", "name": "p", "uid": "uid-p"}]
    cluster.put(
        RESOURCE_CLAIMS,
        claim("c", exactly("gpu"), status=status, ownerReferences=owner, labels={"q": "x"}),
    )
    (only,) = build(cluster).devices.claims
    assert only.allocation == ON_N0
    assert (only.reserved_for, only.owner_uid, only.labels) == (("uid-p",), "uid-p", {"q": "x"})


def test_allocation_of_a_live_bind_request_is_known_by_the_claims_real_name() -> None:
    cluster = Cluster().put(NODES, node("n0")).put(PODGROUPS, group("pg"))
    cluster.put(
        PODS, pod("p", group="pg", resourceClaims=[{"name": "m", "resourceClaimName": "c"}])
    )
    allocations = [{"name": "m", "allocation": ALLOCATION}]
    cluster.put(BINDREQUESTS, bind_request("p", "n0", resourceClaimAllocations=allocations))
    assert build(cluster).pod_groups[0].tasks[0].claim_allocations == (ON_N0,)


@pytest.mark.parametrize(
    ("text", "devices"),
    [
        ('device.driver == "gpu.x"', ["d0", "d1"]),
        ('device.attributes["gpu.x"].index == 1', ["d1"]),
        ('device.attributes["gpu.x"].model.startsWith("a")', ["d0", "d1"]),
        ('device.attributes["gpu.x"].missing == 1', []),
        ("this is no CEL", []),
    ],
)
def test_selectors(text: str, devices: list[str]) -> None:
    matches = matching_devices([text], [convert(gpu_slice(), ResourceSlice)])
    assert sorted(match[3] for match in matches) == devices


def test_only_clusters_with_selectors_pay_for_them() -> None:
    cluster = Cluster().put(RESOURCE_SLICES, gpu_slice())
    cluster.put(DEVICE_CLASSES, {"metadata": meta("plain"), "spec": {}})
    assert build(cluster).devices.matching is None
    selectors = [{"cel": {"expression": 'device.driver == "gpu.x"'}}]
    cluster.put(DEVICE_CLASSES, {"metadata": meta("gpu"), "spec": {"selectors": selectors}})
    matching = build(cluster).devices.matching
    assert matching is not None
    assert len(matching) == 2


def volume_claim(name: str, **spec: Any) -> dict[str, Any]:
    phase = spec.pop("phase", "Pending")
    resources = {"requests": {"storage": "10Gi"}}
    metadata = meta(name, "ns", **spec.pop("metadata", {}))
    return {
        "metadata": metadata,
        "spec": {"resources": resources, **spec},
        "status": {"phase": phase},
    }


def test_volume_claims_and_their_problems() -> None:
    cluster = Cluster()
    late = {"provisioner": "csi.x", "volumeBindingMode": "WaitForFirstConsumer"}
    cluster.put(STORAGE_CLASSES, {"metadata": meta("late"), **late})
    affinity = {"required": ALLOCATION["nodeSelector"]}
    cluster.put(PVS, {"metadata": meta("pv"), "spec": {"nodeAffinity": affinity}})
    cluster.put(
        PVCS,
        volume_claim("waits", storageClassName="late"),
        volume_claim("bound", volumeName="pv", phase="Bound"),
        volume_claim("immediate"),
        volume_claim("broken", volumeName="gone", phase="Bound"),
        volume_claim("lost", volumeName="gone", phase="Lost"),
    )
    claims = {item.name: item for item in build(cluster).volumes.claims}
    assert (claims["waits"].waits_for_consumer, claims["waits"].problem) == (True, "")
    assert claims["waits"].size_bytes == 10 * 2**30
    assert claims["bound"].volume_terms == ON_N0.node_terms
    assert claims["immediate"].problem == "pod has unbound immediate PersistentVolumeClaims"
    assert (claims["broken"].problem, claims["broken"].is_volume_missing) == ("", True)
    assert not claims["bound"].is_volume_missing
    assert claims["lost"].problem == (
        'persistentvolumeclaim "lost" bound to non-existent persistentvolume "gone"'
    )


def test_claim_owned_by_a_pod_knows_whether_its_owner_lives() -> None:
    cluster = Cluster().put(PODS, pod("alive"), pod("dying", deleted="2026-01-01T00:00:00Z"))
    for owner in ("alive", "dying", "gone"):
        references = [{"kind": "Pod", "name": owner, "uid": f"uid-{owner}"}]
        cluster.put(PVCS, volume_claim(owner, metadata={"ownerReferences": references}))
    claims = {item.name: item.is_owner_deleted for item in build(cluster).volumes.claims}
    assert claims == {"alive": False, "dying": True, "gone": True}


EXTENDED_ALLOCATION: dict[str, Any] = {
    "allocation": {
        "devices": {
            "results": [
                {"request": "container-0-request-1", "driver": "nic", "pool": "n0", "device": "d0"}
            ]
        }
    },
    "deviceRequests": [
        {
            "name": "container-0-request-1",
            "exactly": {"deviceClassName": "nics", "allocationMode": "ExactCount", "count": 1},
        }
    ],
    "containerMappings": [
        {
            "containerName": "main",
            "resourceName": "example.com/nic",
            "requestName": "container-0-request-1",
        }
    ],
}
GIVEN_NIC = ClaimAllocation(
    claim=EXTENDED_CLAIM,
    namespace="ns",
    devices=(
        AllocatedDevice(driver="nic", pool="n0", device="d0", request="container-0-request-1"),
    ),
    requests=(DeviceRequest(name="container-0-request-1", device_class="nics"),),
)


def test_extended_resources_of_a_live_bind_request_come_back_as_they_went() -> None:
    cluster = Cluster().put(NODES, node("n0")).put(PODGROUPS, group("pg"))
    body = pod("p", group="pg", requests={"example.com/nic": "1", "cpu": "1"})
    cluster.put(PODS, body)
    cluster.put(
        BINDREQUESTS,
        bind_request("p", "n0", extendedResourceClaimAllocation=EXTENDED_ALLOCATION),
    )
    (task,) = build(cluster).pod_groups[0].tasks
    assert task.claim_allocations == (GIVEN_NIC,)
    assert extended_body(GIVEN_NIC, convert(body, Pod)) == EXTENDED_ALLOCATION


def test_the_claim_the_binder_made_is_known_as_its_pods_own() -> None:
    extended_claim = claim(
        "p-extended-resources-x",
        *EXTENDED_ALLOCATION["deviceRequests"],
        status={"allocation": EXTENDED_ALLOCATION["allocation"]},
        annotations={"resource.kubernetes.io/extended-resource-claim": "true"},
        ownerReferences=[{"kind": "Pod", "name": "p", "uid": "uid-p"}],
    )
    (only,) = build(Cluster().put(RESOURCE_CLAIMS, extended_claim)).devices.claims
    assert (only.allocation, only.owner_uid, only.is_extended_resource) == (
        GIVEN_NIC,
        "uid-p",
        True,
    )


def test_the_bind_request_says_what_to_claim() -> None:
    decision = Bind(
        TaskRef("ns", "p", "uid-p"),
        "pg",
        "ns",
        "n0",
        ActionName.ALLOCATE,
        claim_allocations=(ON_N0, GIVEN_NIC),
    )
    body = pod(
        "p",
        group="pg",
        requests={"example.com/nic": "1", "cpu": "1"},
        resourceClaims=[{"name": "m", "resourceClaimName": "c"}],
    )
    spec = bind_request_body(decision, convert(body, Pod), ShardParams(), fence=0)["spec"]
    assert [item["name"] for item in spec["resourceClaimAllocations"]] == ["m"]
    assert spec["extendedResourceClaimAllocation"] == EXTENDED_ALLOCATION


def test_containers_name_their_claim_requests() -> None:
    nic = "example.com/nic"

    def container(name: str, count: int, **extra: Any) -> dict[str, Any]:
        return {"name": name, "resources": {"limits": {nic: str(count)}}, **extra}

    body = pod(
        "p",
        initContainers=[
            container("first", 1),
            container("aside", 1, restartPolicy="Always"),
            container("second", 2),
        ],
        containers=[container("main", 1), {"name": "idle"}],
    )
    names = ("container-1-request-0", "container-3-request-0", "container-2-request-0")
    allocation = replace(
        GIVEN_NIC,
        requests=tuple(DeviceRequest(name=name, device_class="nics") for name in names),
    )
    mappings = extended_body(allocation, convert(body, Pod))["containerMappings"]
    assert [(item["containerName"], item["requestName"]) for item in mappings] == [
        ("first", "container-1-request-0"),
        ("aside", "container-1-request-0"),
        ("second", "container-3-request-0"),
        ("second", "container-2-request-0"),
        ("main", "container-3-request-0"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "[1,2,3,4,5,6,7,8,9].all(a, [1,2,3,4,5,6,7,8,9].all(b, [1,2,3,4,5,6,7,8,9].all(c, "
        "[1,2,3,4,5,6,7,8,9].all(d, true))))",
        "(" * 2000 + "true" + ")" * 2000,
        "true && " * 5000 + "true",
        "9" * 5000 + " == 1",
        "-" * 3000 + "1 == 1",
    ],
    ids=["loops", "depth", "length", "digits", "signs"],
)
def test_a_selector_that_costs_too_much_matches_nothing(text: str) -> None:
    began = time.process_time()
    assert matching_devices([text], [convert(gpu_slice(), ResourceSlice)]) == frozenset()
    assert time.process_time() - began < 1.0
