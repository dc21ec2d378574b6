"""Sample 26: a claim from a template gets a device when its pod is placed, and gives it back at the end."""

from __future__ import annotations

from fractions import Fraction

import pytest

from kube.resources import BINDREQUESTS, RESOURCE_CLAIMS
from tests.samples.sample import Json, Sample
from tests.samples.shared_gpus import amounts, request_of

pytestmark = pytest.mark.timeout(240)
POD = "claimant"


@pytest.fixture(scope="module")
def bound(sample: Sample) -> Sample:
    sample.apply("26-claim.yaml")
    sample.wait_bound(POD, count=1)
    return sample


def claim_of(sample: Sample, pod: str) -> Json:
    (status,) = sample.pod(pod)["status"]["resourceClaimStatuses"]
    assert status["name"] == "accelerator"
    return sample.get(RESOURCE_CLAIMS, status["resourceClaimName"])


def cards(claim: Json) -> set[str]:
    results = (
        (claim.get("status") or {}).get("allocation", {}).get("devices", {}).get("results", ())
    )
    return {result["device"] for result in results}


def test_the_bind_request_carries_what_the_claim_gets(bound: Sample) -> None:
    spec = request_of(bound, POD)
    (allocation,) = spec["resourceClaimAllocations"]
    assert allocation["name"] == "accelerator"
    (result,) = allocation["allocation"]["devices"]["results"]
    assert (result["request"], result["driver"], result["pool"]) == (
        "card",
        "gpu.s26.test",
        "hay-1",
    )
    assert spec["selectedNode"] == bound.pod(POD)["spec"]["nodeName"] == "hay-1"
    claim = claim_of(bound, POD)
    assert claim["status"]["allocation"] == allocation["allocation"]
    consumer = {"resource": "pods", "name": POD, "uid": bound.pod(POD)["metadata"]["uid"]}
    assert claim["status"]["reservedFor"] == [consumer]


def test_the_binding_came_after_the_claim(bound: Sample) -> None:
    bound.wait(
        lambda: bound.get(BINDREQUESTS, POD).get("status", {}).get("phase") == "Succeeded",
        "the phase Succeeded",
    )
    bound.wait(lambda: bound.pod(POD)["status"].get("phase") == "Running", "the running pod")


def test_the_pod_group_counts_it_under_the_class(bound: Sample) -> None:
    uid = bound.pod(POD)["metadata"]["uid"]
    assert bound.pod_group_of(POD)["metadata"]["name"] == f"pg-{POD}-{uid}"
    for part in ("requested", "allocated"):
        bound.wait(
            lambda part=part: amounts(bound, POD, part) == {"gpu.s26.test": Fraction(1)},
            f"one card {part}: {amounts(bound, POD, part)}",
        )


def test_a_device_is_given_once_and_again_when_its_pod_has_ended(bound: Sample) -> None:
    bound.apply("26-more-claims.yaml")
    others = ("second-claimant", "third-claimant")
    (lucky,) = bound.wait_bound(*others, count=1)
    lucky_name = lucky["metadata"]["name"]
    (waiting,) = set(others) - {lucky_name}
    bound.stays(lambda: not bound.bound(waiting), f"{waiting} has no machine")
    cards_of_both = cards(claim_of(bound, POD)), cards(claim_of(bound, lucky_name))
    assert cards_of_both[0] | cards_of_both[1] == {"card-0", "card-1"}
    name = claim_of(bound, POD)["metadata"]["name"]
    bound.kubectl(
        "patch", "pod", POD, "--subresource=status", "--type=merge",
        "-p", '{"status": {"phase": "Succeeded"}}',
    )  # fmt: skip
    bound.wait_bound(waiting, count=1)
    assert cards(claim_of(bound, waiting)) == cards_of_both[0]
    bound.wait(lambda: not bound.exists(RESOURCE_CLAIMS, name), "the end of the first claim")
