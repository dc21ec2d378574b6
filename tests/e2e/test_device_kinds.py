"""Every kind of device on a real kube-apiserver: bound, and everything that the binder writes for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.bound_pods import Pods, bound_pods
from tests.e2e.manifests import DEVICE_KINDS
from tests.integration.stack import Stack, wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.integration, pytest.mark.timeout(300)]

NAMESPACE = "devices"
PODS = ("memory", "pair", "slice", "templated", "sharer-a", "sharer-b", "writer")


@pytest.fixture(scope="module")
def bound(stack: Stack) -> Iterator[Pods]:
    """The pods of all kinds, by name, once each has a node."""
    with bound_pods(
        stack,
        NAMESPACE,
        DEVICE_KINDS,
        node="mig-0",
        strategy="mixed",
        slices="nvidia.com/mig-1g.5gb",
    ) as pods:
        yield pods


def config_maps(stack: Stack, pod: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the two ConfigMaps of a pod that shares devices, after checking whose they are."""
    prefix = pod["metadata"]["annotations"]["runai/shared-gpu-configmap"]
    maps = [
        stack.objects("configmap", name, "-n", NAMESPACE)[0]
        for name in (f"{prefix}-0", f"{prefix}-0-evar")
    ]
    for item in maps:
        owners = item["metadata"]["ownerReferences"]
        assert [owner["uid"] for owner in owners] == [pod["metadata"]["uid"]]
    env = {entry["name"]: entry for entry in pod["spec"]["containers"][0]["env"]}
    for variable in ("NVIDIA_VISIBLE_DEVICES", "RUNAI_NUM_OF_GPUS"):
        reference = env[variable]["valueFrom"]["configMapKeyRef"]
        assert (reference["name"], reference["key"]) == (f"{prefix}-0", variable)
    return maps


def device_of(stack: Stack, group: str) -> str:
    """Return the device that the only reservation pod of a group holds."""
    namespace = "kai-resource-reservation"
    (holder,) = stack.objects("pods", "-n", namespace, "-l", f"runai-gpu-group={group}")
    return str(holder["metadata"]["annotations"]["run.ai/reserve_for_gpu_index"])


def received(pod: dict[str, Any]) -> str:
    return str(pod["metadata"]["annotations"]["received-resource-type"])


def test_a_part_by_memory_gets_its_share_of_one_device(stack: Stack, bound: Any) -> None:
    pod = bound["memory"]
    assert (received(pod), pod["spec"]["nodeName"]) == ("Fraction", "t4-1")
    group = pod["metadata"]["labels"]["runai-gpu-group"]
    shared, direct = config_maps(stack, pod)
    # 8000 of 15360 MiB, which count as 15300: 0.5228..., rounded up.
    assert shared["data"] == {
        "NVIDIA_VISIBLE_DEVICES": device_of(stack, group),
        "GPU_PORTION": "0.53",
        "RUNAI_NUM_OF_GPUS": "0.53",
    }
    assert direct.get("data", {}) == {}


def test_parts_of_two_devices_are_labelled_one_by_one(stack: Stack, bound: Any) -> None:
    labels = {
        key: value
        for key, value in bound["pair"]["metadata"]["labels"].items()
        if key.startswith("runai-gpu-group")
    }
    groups = sorted(labels.values())
    assert labels == {f"runai-gpu-group/{group}": group for group in groups}
    data = config_maps(stack, bound["pair"])[0]["data"]
    devices = data["NVIDIA_VISIBLE_DEVICES"].split(",")
    assert sorted(devices) == sorted(device_of(stack, group) for group in groups)
    assert (len(set(devices)), data["GPU_PORTION"], received(bound["pair"])) == (2, "0.50", "Fraction")  # fmt: skip


def test_a_mig_slice_is_bound_as_one(bound: Any) -> None:
    pod = bound["slice"]
    assert (received(pod), pod["spec"]["nodeName"]) == ("MigInstance", "mig-0")
    assert "runai-gpu-group" not in pod["metadata"].get("labels", {})


def test_claims_from_a_template_and_shared_ones_are_allocated_and_reserved(
    stack: Stack, bound: Any
) -> None:
    claims = {
        claim["metadata"]["name"]: claim
        for claim in stack.objects("resourceclaims", "-n", NAMESPACE)
    }
    own = bound["templated"]["status"]["resourceClaimStatuses"][0]["resourceClaimName"]
    users = {name: claim["status"]["reservedFor"] for name, claim in claims.items()}
    assert {name: sorted(user["name"] for user in users[name]) for name in users} == {
        own: ["templated"],
        "common": ["sharer-a", "sharer-b"],
    }
    devices = [
        result["device"]
        for claim in claims.values()
        for result in claim["status"]["allocation"]["devices"]["results"]
    ]
    assert len(set(devices)) == len(devices) == 2
    for claim in claims.values():
        protection = "resource.kubernetes.io/delete-protection"
        assert claim["metadata"]["finalizers"] == [protection]
    assert {bound[name]["spec"]["nodeName"] for name in ("templated", "sharer-a", "sharer-b")} == {"t4-2"}  # fmt: skip


def test_a_new_volume_is_made_on_the_chosen_node(stack: Stack, bound: Any) -> None:
    (claim,) = stack.objects("pvc", "scratch", "-n", NAMESPACE)
    node = bound["writer"]["spec"]["nodeName"]
    assert claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] == node
    assert claim["status"]["phase"] == "Bound"


def test_every_request_and_pod_says_that_it_was_bound(stack: Stack, bound: Any) -> None:
    requests = stack.objects("bindrequests", "-n", NAMESPACE)
    assert sorted(item["spec"]["podName"] for item in requests) == sorted(PODS)

    def phases() -> set[str]:
        items = stack.objects("bindrequests", "-n", NAMESPACE)
        return {(item.get("status") or {}).get("phase", "") for item in items}

    wait_until(lambda: phases() == {"Succeeded"}, what="the reports", stack=stack)
