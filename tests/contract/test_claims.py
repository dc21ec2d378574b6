"""Resource claims: what may change of them, and the status a pod gets for its extended resources."""

from __future__ import annotations

from typing import Any

from tests.contract.api import Api
from tests.contract.bodies import pod

CLAIMS = "/apis/resource.k8s.io/v1/namespaces/{ns}/resourceclaims"
REQUEST = {"name": "r", "exactly": {"deviceClassName": "lens"}}


def claim(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": {"devices": {"requests": [REQUEST]}},
    }


def allocation(device: str) -> dict[str, Any]:
    result = {"request": "r", "driver": "d.example.test", "pool": "p", "device": device}
    return {"status": {"allocation": {"devices": {"results": [result]}}}}


def test_requests_of_a_claim_are_filled_in_and_fixed(api: Api) -> None:
    created = api.post(CLAIMS, claim("c")).ok(201)
    (request,) = created["spec"]["devices"]["requests"]
    assert request["exactly"] == {
        "deviceClassName": "lens",
        "allocationMode": "ExactCount",
        "count": 1,
    }
    changed = {"spec": {"devices": {"requests": [{**REQUEST, "name": "other"}]}}}
    api.patch(f"{CLAIMS}/c", changed).refused(422, "Invalid", "field is immutable")


def test_an_allocation_is_taken_away_but_never_exchanged(api: Api) -> None:
    api.post(CLAIMS, claim("c")).ok(201)
    allocated = api.patch(f"{CLAIMS}/c/status", allocation("one")).ok()
    assert allocated["status"] == allocation("one")["status"]
    api.patch(f"{CLAIMS}/c/status", allocation("two")).refused(
        422, "Invalid", "status.allocation: Invalid value"
    )
    api.patch(f"{CLAIMS}/c/status", allocation("one")).ok()
    assert api.patch(f"{CLAIMS}/c/status", {"status": {"allocation": None}}).ok()["status"] == {}
    api.patch(f"{CLAIMS}/c/status", allocation("two")).ok()


def test_a_pod_remembers_the_names_of_its_generated_claims(api: Api) -> None:
    body = pod("p")
    body["spec"]["resourceClaims"] = [{"name": "mine", "resourceClaimTemplateName": "t"}]
    api.post("/api/v1/namespaces/{ns}/pods", body).ok(201)
    statuses = [{"name": "mine", "resourceClaimName": "p-mine-abcde"}]
    answer = api.patch(
        "/api/v1/namespaces/{ns}/pods/p/status", {"status": {"resourceClaimStatuses": statuses}}
    ).ok()
    assert answer["status"]["resourceClaimStatuses"] == statuses
