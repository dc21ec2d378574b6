"""The patch types, and server-side apply with its owners and conflicts."""

from __future__ import annotations

from typing import Any

from tests.contract.api import APPLY, JSON_PATCH, MERGE, STRATEGIC, Api
from tests.contract.bodies import configmap, deployment, podgroup

MAPS = "/api/v1/namespaces/{ns}/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/{ns}/deployments"
GROUPS = "/apis/scheduling.run.ai/v2alpha2/namespaces/{ns}/podgroups"


def containers(body: dict[str, Any]) -> dict[str, Any]:
    return {item["name"]: item for item in body["spec"]["template"]["spec"]["containers"]}


def test_merge_patch_sets_and_removes_keys(api: Api) -> None:
    api.post(MAPS, configmap("a", k="1", gone="x")).ok(201)
    body = api.patch(f"{MAPS}/a", {"data": {"k": "2", "gone": None, "new": "3"}}, MERGE).ok()
    assert body["data"] == {"k": "2", "new": "3"}


def test_merge_patch_replaces_lists(api: Api) -> None:
    group = podgroup("a", subGroups=[{"name": "x", "minMember": 1}, {"name": "y", "minMember": 1}])
    api.post(GROUPS, group).ok(201)
    patch = {"spec": {"subGroups": [{"name": "z", "minMember": 2}]}}
    body = api.patch(f"{GROUPS}/a", patch, MERGE).ok()
    assert body["spec"]["subGroups"] == [{"name": "z", "minMember": 2}]


def test_patch_with_stale_version_is_conflict(api: Api) -> None:
    body = api.post(MAPS, configmap("a")).ok(201)
    at = body["metadata"]["resourceVersion"]
    api.patch(f"{MAPS}/a", {"data": {"k": "1"}}).ok()
    patch = {"metadata": {"resourceVersion": at}, "data": {"k": "2"}}
    api.patch(f"{MAPS}/a", patch).refused(409, "Conflict")


def test_patch_with_foreign_uid_is_invalid(api: Api) -> None:
    api.post(MAPS, configmap("a")).ok(201)
    api.patch(f"{MAPS}/a", {"metadata": {"uid": "other"}}).refused(422, "Invalid", "immutable")


def test_json_patch_applies_operations_in_order(api: Api) -> None:
    api.post(MAPS, configmap("a", k="1")).ok(201)
    operations = [
        {"op": "test", "path": "/data/k", "value": "1"},
        {"op": "replace", "path": "/data/k", "value": "2"},
        {"op": "add", "path": "/metadata/annotations", "value": {}},
        {"op": "add", "path": "/metadata/annotations/a~1b", "value": "slash"},
    ]
    body = api.patch(f"{MAPS}/a", operations, JSON_PATCH).ok()
    assert (body["data"], body["metadata"]["annotations"]) == ({"k": "2"}, {"a/b": "slash"})


def test_failed_test_operation_changes_nothing(api: Api) -> None:
    api.post(MAPS, configmap("a", k="1")).ok(201)
    operations = [
        {"op": "replace", "path": "/data/k", "value": "2"},
        {"op": "test", "path": "/data/k", "value": "9"},
    ]
    assert api.patch(f"{MAPS}/a", operations, JSON_PATCH).status == 422
    assert api.get(f"{MAPS}/a").ok()["data"] == {"k": "1"}


def test_strategic_patch_merges_containers_by_name(api: Api) -> None:
    api.post(DEPLOYMENTS, deployment("a")).ok(201)
    side = {"name": "side", "image": "example.test/side:1"}
    patch = {"spec": {"template": {"spec": {"containers": [side]}}}}
    patched = containers(api.patch(f"{DEPLOYMENTS}/a", patch, STRATEGIC).ok())
    assert set(patched) == {"main", "side"}
    change = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "new:2"}]}}}}
    patched = containers(api.patch(f"{DEPLOYMENTS}/a", change, STRATEGIC).ok())
    assert (patched["main"]["image"], patched["side"]["image"]) == ("new:2", "example.test/side:1")


def test_strategic_patch_deletes_by_directive(api: Api) -> None:
    body = deployment("a")
    body["spec"]["template"]["spec"]["containers"].append({"name": "side", "image": "s:1"})
    api.post(DEPLOYMENTS, body).ok(201)
    drop = {"name": "side", "$patch": "delete"}
    patch = {"spec": {"template": {"spec": {"containers": [drop]}}}}
    assert set(containers(api.patch(f"{DEPLOYMENTS}/a", patch, STRATEGIC).ok())) == {"main"}


def test_strategic_patch_of_a_custom_kind_is_unsupported(api: Api) -> None:
    api.post(GROUPS, podgroup("a")).ok(201)
    assert api.patch(f"{GROUPS}/a", {"spec": {"minMember": 3}}, STRATEGIC).status == 415


def test_unknown_patch_type_is_unsupported(api: Api) -> None:
    api.post(MAPS, configmap("a")).ok(201)
    assert api.patch(f"{MAPS}/a", {}, "application/json").status == 415


def test_patch_of_a_missing_object_is_not_found(api: Api) -> None:
    api.patch(f"{MAPS}/none", {"data": {}}).refused(404, "NotFound")


def test_apply_creates_and_records_the_owner(api: Api) -> None:
    answer = api.patch(f"{MAPS}/a", configmap("a", k="1"), APPLY, fieldManager="alice")
    entry = answer.ok(201)["metadata"]["managedFields"][0]
    assert (entry["manager"], entry["operation"]) == ("alice", "Apply")
    assert entry["fieldsV1"]["f:data"] == {"f:k": {}} or "f:k" in entry["fieldsV1"]["f:data"]


def test_apply_without_manager_is_invalid(api: Api) -> None:
    api.patch(f"{MAPS}/a", configmap("a"), APPLY).refused(422, "Invalid", "fieldManager")


def test_apply_of_anothers_field_is_a_conflict_until_forced(api: Api) -> None:
    api.patch(f"{MAPS}/a", configmap("a", k="1"), APPLY, fieldManager="alice").ok(201)
    mine = configmap("a", k="2")
    body = api.patch(f"{MAPS}/a", mine, APPLY, fieldManager="bob").refused(409, "Conflict", "alice")
    cause = body["details"]["causes"][0]
    assert (cause["reason"], cause["field"]) == ("FieldManagerConflict", ".data.k")
    forced = api.patch(f"{MAPS}/a", mine, APPLY, fieldManager="bob", force="true").ok()
    assert forced["data"] == {"k": "2"}


def test_two_managers_that_apply_the_same_value_share_the_field(api: Api) -> None:
    for manager in ("alice", "bob"):
        api.patch(f"{MAPS}/a", configmap("a", k="1"), APPLY, fieldManager=manager).ok()
    managers = {item["manager"] for item in api.get(f"{MAPS}/a").ok()["metadata"]["managedFields"]}
    assert {"alice", "bob"} <= managers


def test_apply_removes_what_its_owner_leaves_out(api: Api) -> None:
    api.patch(f"{MAPS}/a", configmap("a", k="1", old="x"), APPLY, fieldManager="alice").ok(201)
    api.patch(f"{MAPS}/a", {"data": {"other": "y"}}, MERGE).ok()
    body = api.patch(f"{MAPS}/a", configmap("a", k="1"), APPLY, fieldManager="alice").ok()
    assert body["data"] == {"k": "1", "other": "y"}


def test_apply_merges_lists_by_key(api: Api) -> None:
    api.patch(f"{DEPLOYMENTS}/a", deployment("a"), APPLY, fieldManager="alice").ok(201)
    body = deployment("a")
    del body["spec"]["replicas"]
    body["spec"]["template"]["spec"]["containers"] = [{"name": "side", "image": "s:1"}]
    result = api.patch(f"{DEPLOYMENTS}/a", body, APPLY, fieldManager="bob").ok()
    assert set(containers(result)) == {"main", "side"}


def test_apply_works_for_custom_kinds(api: Api) -> None:
    api.patch(f"{GROUPS}/a", podgroup("a"), APPLY, fieldManager="alice").ok(201)
    body = podgroup("a", minMember=5)
    api.patch(f"{GROUPS}/a", body, APPLY, fieldManager="bob").refused(409, "Conflict", "alice")
    assert (
        api.patch(f"{GROUPS}/a", body, APPLY, fieldManager="alice").ok()["spec"]["minMember"] == 5
    )
