"""Create, read, replace and delete: metadata the server fills in, and what it refuses."""

from __future__ import annotations

import re

from tests.contract.api import Api
from tests.contract.bodies import configmap, pod

MAPS = "/api/v1/namespaces/{ns}/configmaps"
PODS = "/api/v1/namespaces/{ns}/pods"
UUID = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"


def test_create_fills_in_metadata(api: Api) -> None:
    answer = api.post(MAPS, configmap("a", k="v"))
    metadata = answer.ok(201)["metadata"]
    assert re.fullmatch(UUID, metadata["uid"])
    assert metadata["resourceVersion"].isdigit()
    assert metadata["namespace"] == api.namespace
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", metadata["creationTimestamp"])


def test_create_ignores_identity_given_by_the_client(api: Api) -> None:
    body = configmap("a")
    body["metadata"] |= {"uid": "mine", "creationTimestamp": "2001-01-01T00:00:00Z"}
    metadata = api.post(MAPS, body).ok(201)["metadata"]
    assert re.fullmatch(UUID, metadata["uid"])
    assert not metadata["creationTimestamp"].startswith("2001")


def test_generate_name_appends_five_characters(api: Api) -> None:
    body = configmap("")
    body["metadata"] = {"generateName": "run-"}
    assert re.fullmatch(r"run-[a-z0-9]{5}", api.post(MAPS, body).ok(201)["metadata"]["name"])


def test_second_create_is_already_exists(api: Api) -> None:
    api.post(MAPS, configmap("a")).ok(201)
    body = api.post(MAPS, configmap("a")).refused(409, "AlreadyExists", '"a" already exists')
    assert body["details"]["name"] == "a"
    assert body["details"]["kind"] == "configmaps"


def test_missing_object_is_not_found(api: Api) -> None:
    body = api.get(f"{MAPS}/none").refused(404, "NotFound")
    assert body["message"] == 'configmaps "none" not found'


def test_create_in_missing_namespace_is_not_found(api: Api) -> None:
    api.post("/api/v1/namespaces/no-such/configmaps", configmap("a")).refused(
        404, "NotFound", 'namespaces "no-such" not found'
    )


def test_create_with_other_namespace_in_body_is_bad_request(api: Api) -> None:
    body = configmap("a")
    body["metadata"]["namespace"] = "other"
    api.post(MAPS, body).refused(400, "BadRequest", "namespace")


def test_create_without_name_is_invalid(api: Api) -> None:
    api.post(MAPS, configmap("")).refused(422, "Invalid", "name or generateName is required")


def test_create_with_bad_name_is_invalid(api: Api) -> None:
    api.post(MAPS, configmap("Not_A_Name")).refused(422, "Invalid", "metadata.name")


def test_pod_without_containers_is_invalid(api: Api) -> None:
    body = pod("a")
    body["spec"]["containers"] = []
    api.post(PODS, body).refused(422, "Invalid", "spec.containers: Required value")


def test_wrong_type_in_body_is_refused(api: Api) -> None:
    body = pod("a")
    body["spec"]["containers"] = "none"
    assert api.post(PODS, body).status in (400, 422)


def test_body_that_is_no_json_is_bad_request(api: Api) -> None:
    assert api.post(MAPS, "just a text").status == 400


def test_new_pod_has_defaults_and_pending_status(api: Api) -> None:
    body = api.post(PODS, pod("a")).ok(201)
    assert body["status"]["phase"] == "Pending"
    assert body["spec"]["restartPolicy"] == "Always"
    assert body["spec"]["terminationGracePeriodSeconds"] == 30
    assert body["spec"]["containers"][0]["resources"]["requests"] == {"nvidia.com/gpu": "1"}


def test_priority_class_is_resolved_on_pods(api: Api, unique: str) -> None:
    priority_class = {"metadata": {"name": unique}, "value": 77}
    api.post("/apis/scheduling.k8s.io/v1/priorityclasses", priority_class).ok(201)
    body = pod("a")
    body["spec"]["priorityClassName"] = unique
    assert api.post(PODS, body).ok(201)["spec"]["priority"] == 77


def test_unknown_priority_class_is_forbidden(api: Api) -> None:
    body = pod("a")
    body["spec"]["priorityClassName"] = "no-such-class"
    api.post(PODS, body).refused(403, "Forbidden", "no PriorityClass with name no-such-class")


def test_replace_with_current_version_changes_the_version(api: Api) -> None:
    body = api.post(MAPS, configmap("a", k="1")).ok(201)
    body["data"] = {"k": "2"}
    changed = api.put(f"{MAPS}/a", body).ok(200)
    assert changed["data"] == {"k": "2"}
    assert int(changed["metadata"]["resourceVersion"]) > int(body["metadata"]["resourceVersion"])
    assert changed["metadata"]["uid"] == body["metadata"]["uid"]


def test_replace_with_stale_version_is_conflict(api: Api) -> None:
    body = api.post(MAPS, configmap("a", k="1")).ok(201)
    api.put(f"{MAPS}/a", {**body, "data": {"k": "2"}}).ok(200)
    api.put(f"{MAPS}/a", {**body, "data": {"k": "3"}}).refused(
        409, "Conflict", "the object has been modified"
    )
    assert api.get(f"{MAPS}/a").ok()["data"] == {"k": "2"}


def test_replace_without_change_keeps_the_version(api: Api) -> None:
    body = api.post(MAPS, configmap("a", k="1")).ok(201)
    same = api.put(f"{MAPS}/a", body).ok(200)
    assert same["metadata"]["resourceVersion"] == body["metadata"]["resourceVersion"]


def test_replace_under_another_name_is_bad_request(api: Api) -> None:
    body = api.post(MAPS, configmap("a")).ok(201)
    api.post(MAPS, configmap("b")).ok(201)
    api.put(f"{MAPS}/b", body).refused(400, "BadRequest", "name")


def test_delete_answers_with_a_status(api: Api) -> None:
    api.post(MAPS, configmap("a")).ok(201)
    body = api.delete(f"{MAPS}/a").ok(200)
    assert (body["kind"], body["status"], body["details"]["name"]) == ("Status", "Success", "a")
    assert api.get(f"{MAPS}/a").status == 404


def test_delete_with_wrong_uid_is_conflict(api: Api) -> None:
    api.post(MAPS, configmap("a")).ok(201)
    options = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": "other"}}
    api.delete(f"{MAPS}/a", options).refused(409, "Conflict", "UID in the precondition")
    api.get(f"{MAPS}/a").ok()


def test_delete_collection_takes_only_the_selected(api: Api) -> None:
    api.post(MAPS, configmap("a", {"keep": "no"})).ok(201)
    api.post(MAPS, configmap("b", {"keep": "yes"})).ok(201)
    api.delete(MAPS, labelSelector="keep=no").ok(200)
    assert api.get(f"{MAPS}/a").status == 404
    api.get(f"{MAPS}/b").ok()


def test_dry_run_answers_but_stores_nothing(api: Api) -> None:
    assert api.post(MAPS, configmap("a"), dryRun="All").ok(201)["metadata"]["uid"]
    assert api.get(f"{MAPS}/a").status == 404
    body = api.post(MAPS, configmap("b", k="1")).ok(201)
    assert api.patch(f"{MAPS}/b", {"data": {"k": "2"}}, dryRun="All").ok()["data"]["k"] == "2"
    api.delete(f"{MAPS}/b", dryRun="All").ok(200)
    assert api.get(f"{MAPS}/b").ok() == body


def test_unknown_field_is_dropped_with_a_warning_or_refused_when_strict(api: Api) -> None:
    body = {**configmap("a"), "colour": "red"}
    answer = api.post(MAPS, body, fieldValidation="Warn")
    assert "colour" not in answer.ok(201)
    assert 'unknown field \\"colour\\"' in answer.headers.get("Warning", "")
    body["metadata"]["name"] = "b"
    api.post(MAPS, body, fieldValidation="Strict").refused(
        400, "BadRequest", 'unknown field "colour"'
    )
