"""Sample 27: an extended resource that a device class serves, through a claim that the binder makes and takes back."""

from __future__ import annotations

import uuid
from fractions import Fraction

import pytest
import yaml

from kube.resources import BINDREQUESTS, RESOURCE_CLAIMS
from tests.samples.sample import Json, Sample
from tests.samples.shared_gpus import amounts, request_of

pytestmark = pytest.mark.timeout(240)
POD = "asker"
REQUEST = "container-0-request-1"
MAPPING = {"containerName": "main", "resourceName": "s27.test/gpu", "requestName": REQUEST}
ASKED = {
    "name": REQUEST,
    "exactly": {"deviceClassName": "gpu.s27.test", "allocationMode": "ExactCount", "count": 1},
}


@pytest.fixture(scope="module")
def bound(sample: Sample) -> Sample:
    sample.apply("27-extended-resource.yaml")
    sample.wait_bound(POD, count=1)
    return sample


def claims_of(sample: Sample, pod: str) -> list[Json]:
    return [
        claim
        for name, claim in sample.all(RESOURCE_CLAIMS).items()
        if name.startswith(f"{pod}-extended-resources-")
    ]


def cards(claim: Json) -> set[str]:
    return {result["device"] for result in claim["status"]["allocation"]["devices"]["results"]}


def test_the_bind_request_says_what_to_claim_for_whom(bound: Sample) -> None:
    allocation = request_of(bound, POD)["extendedResourceClaimAllocation"]
    assert allocation["deviceRequests"] == [ASKED]
    assert allocation["containerMappings"] == [MAPPING]
    (result,) = allocation["allocation"]["devices"]["results"]
    assert (result["driver"], result["pool"], result["request"]) == (
        "gpu.s27.test",
        "hay-2",
        REQUEST,
    )


def test_the_binder_made_the_claim_and_told_the_pod(bound: Sample) -> None:
    pod = bound.pod(POD)
    (claim,) = claims_of(bound, POD)
    metadata = claim["metadata"]
    assert metadata["annotations"] == {"resource.kubernetes.io/extended-resource-claim": "true"}
    owners = [
        (o["kind"], o["uid"], o["controller"], o["blockOwnerDeletion"])
        for o in metadata["ownerReferences"]
    ]
    assert owners == [("Pod", pod["metadata"]["uid"], True, True)]
    assert claim["spec"]["devices"]["requests"] == [ASKED]
    assert (
        claim["status"]["allocation"]
        == (request_of(bound, POD)["extendedResourceClaimAllocation"]["allocation"])
    )
    assert [consumer["uid"] for consumer in claim["status"]["reservedFor"]] == [
        pod["metadata"]["uid"]
    ]
    assert pod["status"]["extendedResourceClaimStatus"] == {
        "resourceClaimName": metadata["name"],
        "requestMappings": [MAPPING],
    }
    bound.wait(lambda: bound.pod(POD)["status"].get("phase") == "Running", "the running pod")


def test_the_pod_group_counts_the_resource_by_its_name(bound: Sample) -> None:
    expected = {"cpu": Fraction(1, 10), "s27.test/gpu": Fraction(1)}
    for part in ("requested", "allocated"):
        bound.wait(
            lambda part=part: amounts(bound, POD, part) == expected,
            f"{expected} {part}: {amounts(bound, POD, part)}",
        )


def test_a_device_is_given_once_and_again_when_its_pod_is_gone(bound: Sample) -> None:
    bound.apply("27-more-askers.yaml")
    others = ("second-asker", "third-asker")
    (lucky,) = bound.wait_bound(*others, count=1)
    lucky_name = lucky["metadata"]["name"]
    (waiting,) = set(others) - {lucky_name}
    bound.stays(lambda: not bound.bound(waiting), f"{waiting} has no machine")
    (first,), (second,) = claims_of(bound, POD), claims_of(bound, lucky_name)
    assert cards(first) | cards(second) == {"card-0", "card-1"}
    assert claims_of(bound, waiting) == []
    bound.kubectl("delete", "pod", POD, "--wait=false")
    bound.wait_bound(waiting, count=1)
    (third,) = claims_of(bound, waiting)
    assert cards(third) == cards(first)
    bound.wait(lambda: not claims_of(bound, POD), "the end of the claim of a pod that is gone")


def test_a_bind_that_fails_takes_the_claim_back(bound: Sample) -> None:
    """By a request made by hand: a shared GPU, which this pod did not ask for, fails after the claim is made."""
    bound.apply_text(yaml.safe_dump(_pod("refused")))
    uid = bound.pod("refused")["metadata"]["uid"]
    bound.apply_text(yaml.safe_dump(_request("refused", uid)))

    def condition() -> tuple[str, str, str]:
        for condition in bound.pod("refused")["status"].get("conditions") or ():
            if condition["type"] == "PodBound":
                return condition["status"], condition["reason"], condition["message"]
        return "", "", ""

    bound.wait(lambda: condition()[:2] == ("False", "BindingError"), "the condition PodBound=False")
    assert "plugin gpusharing failed in PreBind: no desired configmap name found" in condition()[2]
    # The binder writes the condition before it takes the claim back: the condition stops a binding under way.
    bound.wait(lambda: not claims_of(bound, "refused"), "the end of the claim of the refused pod")
    bound.wait(
        lambda: "extendedResourceClaimStatus" not in bound.pod("refused")["status"],
        "a pod status without the claim",
    )


def test_a_binder_killed_in_the_middle_makes_no_claim_twice(bound: Sample) -> None:
    bound.apply("27-crowd.yaml")
    bound.wait(lambda: len(crowd_claims(bound)) >= 3, "the first claims of the crowd")
    bound.stack.kill("binding")
    pods = bound.wait_bound("crowd", count=24)
    claims = crowd_claims(bound)
    owners = [claim["metadata"]["ownerReferences"][0]["uid"] for claim in claims]
    assert sorted(owners) == sorted(pod["metadata"]["uid"] for pod in pods)
    assert len(set().union(*(cards(claim) for claim in claims))) == 24
    names = {pod["status"]["extendedResourceClaimStatus"]["resourceClaimName"] for pod in pods}
    assert names == {claim["metadata"]["name"] for claim in claims}
    checked = bound.stack.kaiweb("check_cluster")
    assert checked.returncode == 0, checked.stdout + checked.stderr


def crowd_claims(sample: Sample) -> list[Json]:
    return [
        claim for name, claim in sample.all(RESOURCE_CLAIMS).items() if name.startswith("crowd-")
    ]


def _pod(name: str) -> Json:
    container = {
        "name": "main",
        "image": "example.test/x:1",
        "resources": {"limits": {"s27.test/gpu": "1"}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"kai.scheduler/queue": "s27-nobody"}},
        "spec": {"schedulerName": "kai-scheduler", "containers": [container]},
    }


def _request(name: str, uid: str) -> Json:
    result = {"driver": "gpu.s27.test", "pool": "none", "device": "none", "request": REQUEST}
    return {
        "apiVersion": BINDREQUESTS.api_version,
        "kind": BINDREQUESTS.kind,
        "metadata": {
            "name": name,
            # Of no shard, so that no scheduler clears it away.
            "labels": {"kai.scheduler/node-pool": "s27-none"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid}],
        },
        "spec": {
            "podName": name,
            "selectedNode": "kite-3",
            "receivedResourceType": "Fraction",
            "receivedGPU": {"count": 1, "portion": "0.50"},
            "selectedGPUGroups": [str(uuid.uuid4())],
            "extendedResourceClaimAllocation": {
                "allocation": {"devices": {"results": [result]}},
                "deviceRequests": [ASKED],
                "containerMappings": [MAPPING],
            },
        },
    }
