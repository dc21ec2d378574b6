"""Lists: selectors, pages, versions."""

from __future__ import annotations

import pytest

from tests.contract.api import Api
from tests.contract.bodies import configmap, node, pod

MAPS = "/api/v1/namespaces/{ns}/configmaps"
PODS = "/api/v1/namespaces/{ns}/pods"


def names(body: dict) -> list[str]:
    return [item["metadata"]["name"] for item in body["items"]]


def test_list_has_kind_version_and_items_in_order_of_names(api: Api) -> None:
    for name in ("c", "a", "b"):
        api.post(MAPS, configmap(name)).ok(201)
    body = api.get(MAPS).ok()
    assert (body["apiVersion"], body["kind"]) == ("v1", "ConfigMapList")
    assert body["metadata"]["resourceVersion"].isdigit()
    assert names(body) == ["a", "b", "c"]


def test_empty_list_has_an_array(api: Api) -> None:
    assert api.get(PODS).ok()["items"] == []


def test_list_over_all_namespaces(api: Api) -> None:
    api.post(MAPS, configmap("a", {"run": api.namespace})).ok(201)
    body = api.get("/api/v1/configmaps", labelSelector=f"run={api.namespace}").ok()
    assert [item["metadata"]["namespace"] for item in body["items"]] == [api.namespace]


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("tier=web", ["a"]),
        ("tier!=web", ["b", "c"]),
        ("tier in (web,db)", ["a", "b"]),
        ("tier notin (web)", ["b", "c"]),
        ("tier", ["a", "b"]),
        ("!tier", ["c"]),
        ("tier=db,zone=z1", ["b"]),
        ("zone==z1", ["b", "c"]),
    ],
)
def test_label_selectors(api: Api, selector: str, expected: list[str]) -> None:
    api.post(MAPS, configmap("a", {"tier": "web"})).ok(201)
    api.post(MAPS, configmap("b", {"tier": "db", "zone": "z1"})).ok(201)
    api.post(MAPS, configmap("c", {"zone": "z1"})).ok(201)
    assert names(api.get(MAPS, labelSelector=selector).ok()) == expected


def test_bad_label_selector_is_bad_request(api: Api) -> None:
    api.get(MAPS, labelSelector="a in (").refused(400, "BadRequest", "unable to parse")


def test_field_selectors_of_pods(api: Api, unique: str) -> None:
    api.post("/api/v1/nodes", node(unique)).ok(201)
    api.post(PODS, pod("a")).ok(201)
    bound = pod("b")
    bound["spec"]["nodeName"] = unique
    api.post(PODS, bound).ok(201)
    assert names(api.get(PODS, fieldSelector=f"spec.nodeName={unique}").ok()) == ["b"]
    assert names(api.get(PODS, fieldSelector="spec.nodeName!=").ok()) == ["b"]
    assert names(api.get(PODS, fieldSelector="spec.nodeName=").ok()) == ["a"]
    assert names(api.get(PODS, fieldSelector="metadata.name=a,status.phase=Pending").ok()) == ["a"]
    assert names(api.get(PODS, fieldSelector="spec.schedulerName=kai-scheduler").ok()) == ["a", "b"]


def test_unsupported_field_selector_is_bad_request(api: Api) -> None:
    api.get(MAPS, fieldSelector="data.k=v").refused(400, "BadRequest", "not a known field selector")


def test_pages_hold_one_version_and_end(api: Api) -> None:
    for number in range(5):
        api.post(MAPS, configmap(f"m{number}")).ok(201)
    first = api.get(MAPS, limit=2).ok()
    assert names(first) == ["m0", "m1"]
    assert first["metadata"]["remainingItemCount"] == 3
    second = api.get(MAPS, limit=2, **{"continue": first["metadata"]["continue"]}).ok()
    assert names(second) == ["m2", "m3"]
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    third = api.get(MAPS, limit=2, **{"continue": second["metadata"]["continue"]}).ok()
    assert names(third) == ["m4"]
    assert "continue" not in third["metadata"]


def test_bad_continue_token_is_bad_request(api: Api) -> None:
    api.get(MAPS, limit=2, **{"continue": "nonsense"}).refused(400, "BadRequest", "continue")


def test_list_at_version_zero_answers(api: Api) -> None:
    api.post(MAPS, configmap("a")).ok(201)
    assert api.get(MAPS, resourceVersion="0").ok()["kind"] == "ConfigMapList"
