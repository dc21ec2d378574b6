"""Kinds of which a server has an older version only: which is asked for, and how new objects are written."""

from __future__ import annotations

from typing import Any

import pytest

from kube.objects.devices import ResourceClaim, ResourceSlice
from kube.objects.meta import convert
from kube.resources import DEVICE_CLASSES, PODS, RESOURCE_CLAIMS
from kube.served import REMEMBERED_S, ServedVersions, body_for

CLAIM: dict[str, Any] = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {"name": "c"},
    "spec": {
        "devices": {
            "requests": [{"name": "r", "exactly": {"deviceClassName": "gpu", "count": 2}}],
            "config": [{"requests": ["r"]}],
        }
    },
}


@pytest.mark.parametrize(
    ("served", "version"),
    [
        (["v1", "v1beta2"], "v1"),
        (["v1beta2", "v1beta1"], "v1beta2"),
        (["v1beta1", "v1alpha3"], "v1beta1"),
        (["v1alpha3"], "v1"),
        ([], "v1"),
    ],
)
def test_the_newest_known_version_that_is_served_is_asked_for(
    served: list[str], version: str
) -> None:
    versions = ServedVersions(lambda group: served)
    assert versions.of(DEVICE_CLASSES).path() == f"/apis/resource.k8s.io/{version}/deviceclasses"


def test_discovery_is_asked_once_in_a_while_and_for_these_kinds_only() -> None:
    requests: list[str] = []
    now = [0.0]

    def versions_of(group: str) -> list[str]:
        requests.append(group)
        return ["v1"]

    versions = ServedVersions(versions_of, clock=lambda: now[0])
    assert versions.of(PODS) is PODS
    versions.of(RESOURCE_CLAIMS)
    versions.of(DEVICE_CLASSES)
    assert requests == ["resource.k8s.io"]
    now[0] = REMEMBERED_S
    assert versions.of(RESOURCE_CLAIMS) is RESOURCE_CLAIMS
    assert len(requests) == 2


def test_a_new_claim_is_written_in_the_version_of_the_server() -> None:
    assert body_for(RESOURCE_CLAIMS, CLAIM) is CLAIM
    newer = body_for(RESOURCE_CLAIMS.at_version("v1beta2"), CLAIM)
    assert newer == {**CLAIM, "apiVersion": "resource.k8s.io/v1beta2"}
    oldest = body_for(RESOURCE_CLAIMS.at_version("v1beta1"), CLAIM)
    assert oldest["apiVersion"] == "resource.k8s.io/v1beta1"
    assert oldest["spec"]["devices"] == {
        "requests": [{"name": "r", "deviceClassName": "gpu", "count": 2}],
        "config": [{"requests": ["r"]}],
    }


def test_both_shapes_of_a_request_and_of_a_device_read_alike() -> None:
    oldest = body_for(RESOURCE_CLAIMS.at_version("v1beta1"), CLAIM)
    for body in (CLAIM, oldest):
        [request] = convert(body, ResourceClaim).spec.devices.requests
        assert request.exact is not None
        assert (request.exact.device_class_name, request.exact.count) == ("gpu", 2)
    content = {"attributes": {"model": {"string": "a100"}}}
    for device in ({"name": "d", **content}, {"name": "d", "basic": content}):
        [view] = convert({"spec": {"devices": [device]}}, ResourceSlice).spec.devices
        assert (view.name, view.content.attributes) == ("d", content["attributes"])


def test_a_request_with_alternatives_requests_nothing_itself() -> None:
    body = {"spec": {"devices": {"requests": [{"name": "r", "firstAvailable": [{"name": "s"}]}]}}}
    [request] = convert(body, ResourceClaim).spec.devices.requests
    assert request.exact is None
    assert [item.name for item in request.first_available] == ["s"]
