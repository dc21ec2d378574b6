"""What controllers rely on: leases, reviews, list options, owners, writes of objects that are not there yet."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.api import Api
from tests.contract.bodies import configmap

LEASES = "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases"
MAPS = "/api/v1/namespaces/{ns}/configmaps"
ACCESS = "/apis/authorization.k8s.io/v1"
PARTIAL = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v="


def lease(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name},
        "spec": spec,
    }


def owner(kind: str, name: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "name": name, "uid": f"uid-{name}", **fields}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {"leaseDurationSeconds": 0},
            "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
        ),
        (
            {"leaseTransitions": -1},
            "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0",
        ),
    ],
)
def test_a_lease_with_impossible_numbers_is_refused(
    api: Api, spec: dict[str, Any], message: str
) -> None:
    api.post(LEASES, lease("bad", **spec)).refused(422, "Invalid", message)


def test_a_lease_with_a_time_that_is_none_is_refused(api: Api) -> None:
    answer = api.post(LEASES, lease("bad", renewTime="yesterday"))
    answer.refused(400, "BadRequest", 'parsing time "yesterday"')


def test_put_creates_a_lease_but_not_a_configmap(api: Api) -> None:
    body = api.put(f"{LEASES}/fresh", lease("fresh", holderIdentity="a")).ok(201)
    assert body["spec"] == {"holderIdentity": "a"}
    api.put(f"{LEASES}/another", lease("fresh")).refused(400, "BadRequest", "does not match")
    api.put(f"{MAPS}/fresh", configmap("fresh")).refused(404, "NotFound")


def test_an_access_review_says_what_it_is_about(api: Api) -> None:
    attributes = {"resourceAttributes": {"verb": "get", "resource": "pods"}}
    api.post(f"{ACCESS}/selfsubjectaccessreviews", {"spec": {}}).refused(
        422, "Invalid", "exactly one of nonResourceAttributes or resourceAttributes"
    )
    api.post(f"{ACCESS}/subjectaccessreviews", {"spec": attributes}).refused(
        422, "Invalid", "spec.user: Invalid value"
    )
    api.post(f"{ACCESS}/subjectaccessreviews", {"spec": {**attributes, "user": "a"}}).ok(201)


def test_the_review_of_an_unknown_token_has_an_error_and_no_user(api: Api) -> None:
    path = "/apis/authentication.k8s.io/v1/tokenreviews"
    status = api.post(path, {"spec": {"token": "unknown"}}).ok(201)["status"]
    assert status == {"user": {}, "error": "invalid bearer token"}


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"resourceVersionMatch": "Exact"}, "is forbidden unless resourceVersion is provided"),
        ({"resourceVersionMatch": "Exact", "resourceVersion": "0"}, 'for resourceVersion "0"'),
        ({"resourceVersionMatch": "Near", "resourceVersion": "1"}, 'Unsupported value: "Near"'),
        ({"sendInitialEvents": "true"}, "sendInitialEvents is forbidden for list"),
        (
            {"watch": "1", "resourceVersionMatch": "NotOlderThan", "resourceVersion": "1"},
            "is forbidden for watch unless sendInitialEvents is provided",
        ),
    ],
)
def test_list_options_that_contradict_each_other_are_refused(
    api: Api, query: dict[str, str], message: str
) -> None:
    api.get(MAPS, **query).refused(422, "Invalid", message)


def test_an_object_of_a_future_version_is_not_there_yet(api: Api) -> None:
    api.post(MAPS, configmap("a")).ok(201)
    api.get(f"{MAPS}/a", resourceVersion="99999999").refused(
        504, "Timeout", "Too large resource version"
    )


def test_an_object_has_one_controller_and_no_event_owns_it(api: Api) -> None:
    body = configmap("owned")
    body["metadata"]["ownerReferences"] = [
        owner("Pod", "a", controller=True),
        owner("Pod", "b", controller=True),
    ]
    api.post(MAPS, body).refused(
        422, "Invalid", "Only one reference can have Controller set to true"
    )
    body["metadata"]["ownerReferences"] = [owner("Event", "a")]
    api.post(MAPS, body).refused(422, "Invalid", "Kind=Event is disallowed from being an owner")


def test_the_name_of_an_object_that_is_being_deleted_is_not_free(api: Api) -> None:
    body = configmap("held")
    body["metadata"]["finalizers"] = ["contract.example.test/hold"]
    api.post(MAPS, body).ok(201)
    api.delete(f"{MAPS}/held").ok(200)
    api.post(MAPS, configmap("held")).refused(409, "AlreadyExists", "object is being deleted: ")
    api.patch(f"{MAPS}/held", {"metadata": {"finalizers": None}}).ok(200)


def test_options_of_one_kind_of_write_are_refused_for_another(api: Api) -> None:
    api.post(MAPS, configmap("a")).ok(201)
    api.patch(f"{MAPS}/a", {}, force="true").refused(
        422, "Invalid", "force: Forbidden: may not be specified for non-apply patch"
    )
    both = {"propagationPolicy": "Orphan", "orphanDependents": True}
    api.delete(f"{MAPS}/a", both).refused(
        422, "Invalid", "orphanDependents and deletionPropagation cannot be both set"
    )


def test_metadata_is_served_in_its_one_version(api: Api) -> None:
    api.post(MAPS, configmap("a")).ok(201)
    body = api.get(f"{MAPS}/a", accept=f"{PARTIAL}v1").ok()
    assert (body["kind"], body["metadata"]["name"]) == ("PartialObjectMetadata", "a")
    api.get(f"{MAPS}/a", accept=f"{PARTIAL}v9").refused(406, "NotAcceptable")
