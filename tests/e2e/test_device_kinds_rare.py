"""Kinds of devices and volumes that fewer pods have, on a real kube-apiserver: bound where they are, told otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.bound_pods import Pods, bound_pods, pods_of
from tests.e2e.rare_manifests import (
    CABLE,
    NAMESPACE,
    PROVISIONER,
    RARE_KINDS,
    WITHOUT_A_DEVICE,
)
from tests.integration.stack import Stack, wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.integration, pytest.mark.timeout(420)]


@pytest.fixture(scope="module")
def bound(stack: Stack) -> Iterator[Pods]:
    """The pods of all kinds, by name, once each has a node."""
    try:
        # The slices of this node have the name of whole GPUs.
        with bound_pods(
            stack, NAMESPACE, RARE_KINDS, node="mig-1", strategy="single", slices="nvidia.com/gpu"
        ) as pods:
            yield pods
    finally:
        stack.kubectl("delete", "csidriver", PROVISIONER)


def node_of(pod: dict[str, Any]) -> str:
    return str(pod["spec"]["nodeName"])


def devices_of(claim: dict[str, Any]) -> list[str]:
    results = claim["status"]["allocation"]["devices"]["results"]
    return [result["device"] for result in results]


def data_of(stack: Stack, name: str) -> dict[str, str]:
    (item,) = stack.objects("configmap", name, "-n", NAMESPACE)
    data: dict[str, str] = item.get("data", {})
    return data


def reserved_devices(stack: Stack, pod: dict[str, Any]) -> list[str]:
    """Return the devices that the reservation pods of a pod's groups hold."""
    groups = [
        value
        for key, value in pod["metadata"]["labels"].items()
        if key.startswith("runai-gpu-group")
    ]
    holders = [
        holder
        for group in groups
        for holder in stack.objects(
            "pods", "-n", "kai-resource-reservation", "-l", f"runai-gpu-group={group}"
        )
    ]
    return sorted(
        holder["metadata"]["annotations"]["run.ai/reserve_for_gpu_index"] for holder in holders
    )


def test_an_extended_resource_is_served_by_a_claim_of_the_pods_own(
    stack: Stack, bound: Pods
) -> None:
    pod = bound["cabled"]
    status = stack.objects("pod", "cabled", "-n", NAMESPACE)[0]["status"]
    name = status["extendedResourceClaimStatus"]["resourceClaimName"]
    (mapping,) = status["extendedResourceClaimStatus"]["requestMappings"]
    assert (mapping["containerName"], mapping["resourceName"]) == ("main", CABLE)
    (claim,) = stack.objects("resourceclaim", name, "-n", NAMESPACE)
    meta = claim["metadata"]
    assert meta["generateName"] == "cabled-extended-resources-"
    assert meta["annotations"]["resource.kubernetes.io/extended-resource-claim"] == "true"
    assert meta["finalizers"] == ["resource.kubernetes.io/delete-protection"]
    (owner,) = meta["ownerReferences"]
    assert (owner["uid"], owner["controller"]) == (pod["metadata"]["uid"], True)
    assert owner["blockOwnerDeletion"]
    (request,) = claim["spec"]["devices"]["requests"]
    assert request["name"] == mapping["requestName"] == "container-0-request-0"
    assert devices_of(claim) == ["cable-0"]
    assert [user["uid"] for user in claim["status"]["reservedFor"]] == [pod["metadata"]["uid"]]
    assert node_of(pod) == "t4-2"


def test_partitions_are_given_out_and_a_tainted_device_to_who_tolerates_it(
    stack: Stack, bound: Pods
) -> None:
    claims = {
        item["metadata"]["name"]: item for item in stack.objects("resourceclaims", "-n", NAMESPACE)
    }
    halves = [device for name in ("left", "right") for device in devices_of(claims[name])]
    assert sorted(halves) == ["left", "right"]
    assert devices_of(claims["tolerant"]) == ["old-0"]
    assert {node_of(bound[name]) for name in ("left", "right", "tolerant")} == {"t4-2"}


def test_a_partition_without_counters_and_a_tainted_device_are_refused_with_a_reason(
    stack: Stack, bound: Pods
) -> None:
    stack.kubectl("apply", "-f", "-", stdin=WITHOUT_A_DEVICE)

    def refused() -> dict[str, str]:
        texts = {}
        for name in ("full", "strict"):
            for condition in pods_of(stack, NAMESPACE)[name]["status"].get("conditions", []):
                if condition["type"] == "PodScheduled" and condition["status"] == "False":
                    texts[name] = condition["message"]
        return texts if len(texts) == 2 else {}

    texts = wait_until(refused, what="a reason for each of the two", timeout_s=90, stack=stack)
    assert all("cannot allocate all" in text for text in texts.values()), texts


def test_volumes_are_bound_at_once_and_where_the_driver_has_room(stack: Stack, bound: Pods) -> None:
    claims = {item["metadata"]["name"]: item for item in stack.objects("pvc", "-n", NAMESPACE)}
    assert {name: item["status"]["phase"] for name, item in claims.items()} == {
        "present": "Bound",
        "big": "Bound",
    }
    selected = "volume.kubernetes.io/selected-node"
    assert selected not in claims["present"]["metadata"]["annotations"]
    assert claims["big"]["metadata"]["annotations"][selected] == "a100-2"
    assert node_of(bound["big"]) == "a100-2"


def test_a_slice_of_a_node_with_one_kind_of_slices_is_a_whole_gpu(bound: Pods) -> None:
    pod = bound["single"]
    received = pod["metadata"]["annotations"]["received-resource-type"]
    assert (node_of(pod), received) == ("mig-1", "Regular")


def test_memory_of_two_devices_is_taken_from_both(stack: Stack, bound: Pods) -> None:
    pod = bound["memory-pair"]
    data = data_of(stack, f"{pod['metadata']['annotations']['runai/shared-gpu-configmap']}-0")
    devices = data.pop("NVIDIA_VISIBLE_DEVICES").split(",")
    assert sorted(devices) == reserved_devices(stack, pod)
    assert len(set(devices)) == 2
    # 4000 of 15300 MiB: 0.2614..., rounded up.
    assert data == {"GPU_PORTION": "0.27", "RUNAI_NUM_OF_GPUS": "0.27"}


def test_an_init_container_that_is_named_gets_the_device(stack: Stack, bound: Pods) -> None:
    pod = bound["in-init"]
    prefix = pod["metadata"]["annotations"]["runai/shared-gpu-configmap"]
    (container,) = pod["spec"]["initContainers"]
    names = {
        entry["valueFrom"]["configMapKeyRef"]["name"]
        for entry in container["env"]
        if entry["name"] == "NVIDIA_VISIBLE_DEVICES"
    }
    assert names == {f"{prefix}-i0"}
    data = data_of(stack, f"{prefix}-i0")
    assert [data["NVIDIA_VISIBLE_DEVICES"]] == reserved_devices(stack, pod)
    assert data["GPU_PORTION"] == "0.25"
    assert data_of(stack, f"{prefix}-i0-evar") == {}
