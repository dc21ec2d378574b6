"""The claim the binder makes for extended resources: once, however often it is cut off, and not for nothing."""

from __future__ import annotations

from typing import Any

import pytest

from kube.errors import KubeError, ServerError
from kube.resources import PODS, RESOURCE_CLAIMS
from tests.binder.objects import Harness, pod, request

DEVICE_REQUESTS = [
    {
        "name": "container-0-request-0",
        "exactly": {"deviceClassName": "lens", "allocationMode": "ExactCount", "count": 1},
    }
]
MAPPINGS = [
    {
        "containerName": "main",
        "resourceName": "example.test/lens",
        "requestName": "container-0-request-0",
    }
]


def devices(device: str = "d0") -> dict[str, Any]:
    result = {"driver": "d", "pool": "n1", "device": device, "request": "container-0-request-0"}
    return {"devices": {"results": [result]}}


def wanting(device: str = "d0") -> dict[str, Any]:
    return request(
        extendedResourceClaimAllocation={
            "allocation": devices(device),
            "deviceRequests": DEVICE_REQUESTS,
            "containerMappings": MAPPINGS,
        }
    )


def claiming(device: str = "d0", **extra: Any) -> Harness:
    return Harness().seed(pods=[pod(**extra)], requests=[wanting(device)])


def left_over(name: str, *, device: str = "", owner: str = "uid-p", **spec: Any) -> dict[str, Any]:
    """Return a claim of an attempt that was cut off."""
    return {
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": f"uid-{name}",
            "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
            "finalizers": ["resource.kubernetes.io/delete-protection"],
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": owner}],
        },
        "spec": spec or {"devices": {"requests": DEVICE_REQUESTS}},
        "status": {"allocation": devices(device)} if device else {},
    }


def claims(harness: Harness) -> list[dict[str, Any]]:
    names = harness.gateway.names(RESOURCE_CLAIMS, "ns")
    return [harness.gateway.raw(RESOURCE_CLAIMS, name, "ns") for name in names]


def test_the_claim_is_owned_by_the_pod_and_named_in_its_status() -> None:
    harness = claiming().run()
    (claim,) = claims(harness)
    meta = claim["metadata"]
    assert meta["name"].startswith("p-extended-resources-")
    assert meta["annotations"] == {"resource.kubernetes.io/extended-resource-claim": "true"}
    assert meta["finalizers"] == ["resource.kubernetes.io/delete-protection"]
    assert meta["ownerReferences"] == [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": "p",
            "uid": "uid-p",
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    assert claim["spec"] == {"devices": {"requests": DEVICE_REQUESTS}}
    assert claim["status"] == {
        "allocation": devices(),
        "reservedFor": [{"resource": "pods", "name": "p", "uid": "uid-p"}],
    }
    assert harness.pod()["status"]["extendedResourceClaimStatus"] == {
        "resourceClaimName": meta["name"],
        "requestMappings": MAPPINGS,
    }
    assert harness.pod()["spec"]["nodeName"] == "n1"
    assert harness.status() == {"phase": "Succeeded"}


@pytest.mark.parametrize("device", ["", "d0"])
def test_a_matching_claim_of_an_interrupted_attempt_is_used(device: str) -> None:
    harness = claiming()
    harness.gateway.seed(RESOURCE_CLAIMS, left_over("old", device=device), left_over("twin"))
    harness.run()
    (claim,) = claims(harness)
    assert claim["metadata"]["name"] == "old"
    assert claim["status"]["allocation"] == devices()
    assert harness.pod()["status"]["extendedResourceClaimStatus"]["resourceClaimName"] == "old"


@pytest.mark.parametrize(
    "stale",
    [
        left_over("old", device="d7"),
        left_over(
            "old", devices={"requests": [{**DEVICE_REQUESTS[0], "name": "container-0-request-1"}]}
        ),
    ],
)
def test_a_claim_of_an_earlier_attempt_that_differs_is_replaced(stale: dict[str, Any]) -> None:
    harness = claiming()
    harness.gateway.seed(RESOURCE_CLAIMS, stale)
    harness.run()
    (claim,) = claims(harness)
    assert claim["metadata"]["name"] != "old"
    assert claim["status"]["allocation"] == devices()


def test_claims_of_other_owners_are_not_changed() -> None:
    ordinary = left_over("written-by-hand", device="d5")
    ordinary["metadata"]["annotations"] = {}
    harness = claiming()
    harness.gateway.seed(RESOURCE_CLAIMS, left_over("theirs", device="d6", owner="uid-q"), ordinary)
    harness.gateway.fail_next("bind", "pods", KubeError("no"))
    harness.run()
    assert harness.status()["phase"] == "Failed"
    assert [claim["metadata"]["name"] for claim in claims(harness)] == ["theirs", "written-by-hand"]


def test_a_failed_bind_deletes_the_claim() -> None:
    harness = claiming()
    harness.gateway.fail_next("bind", "pods", KubeError("the node said no"))
    harness.run()
    assert harness.status()["reason"] == "failed to bind pod <ns/p> to node <n1>: the node said no"
    assert claims(harness) == []
    assert "extendedResourceClaimStatus" not in harness.pod()["status"]


@pytest.mark.parametrize(("verb", "plural"), [("create", "resourceclaims"), ("patch", "pods")])
def test_a_failed_request_during_preparation_leaves_no_claim(verb: str, plural: str) -> None:
    harness = claiming()
    harness.gateway.fail_next(verb, plural, KubeError("no"))
    harness.run()
    assert harness.status()["reason"] == "plugin dynamicresources failed in PreBind: no"
    assert claims(harness) == []


def test_a_failure_of_an_earlier_step_deletes_the_claim_of_an_earlier_attempt() -> None:
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "gone"}}
    harness = claiming(spec={"volumes": [volume]})
    harness.gateway.seed(RESOURCE_CLAIMS, left_over("old", device="d0"))
    harness.run()
    assert harness.status()["reason"].startswith("plugin volumebinding failed in PreBind: ")
    assert claims(harness) == []


def test_a_binding_without_an_answer_is_neither_reported_nor_rolled_back() -> None:
    harness = claiming()
    harness.gateway.fail_next("bind", "pods", ServerError("connection reset"))
    harness.gateway.fail_next("get", "pods", ServerError("connection refused"))
    harness.watch()
    harness.work()
    assert harness.status() == {}
    assert len(claims(harness)) == 1
    harness.worker.sweep()
    harness.run()
    assert harness.status() == {"phase": "Succeeded"}
    assert len(claims(harness)) == 1


def test_a_request_with_an_empty_allocation_fails() -> None:
    body = request(extendedResourceClaimAllocation={"deviceRequests": DEVICE_REQUESTS})
    harness = Harness().seed(pods=[pod()], requests=[body]).run()
    assert harness.status()["reason"] == (
        "plugin dynamicresources failed in PreBind: empty allocation for extended resources in "
        "bind request for pod ns/p"
    )
    assert harness.gateway.names(PODS, "ns") == ["p"]
