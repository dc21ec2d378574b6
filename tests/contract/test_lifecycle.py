"""Finalizers, owner references, events and leases."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.contract.api import Api
from tests.contract.bodies import configmap, pod

MAPS = "/api/v1/namespaces/{ns}/configmaps"
PODS = "/api/v1/namespaces/{ns}/pods"


def wait_gone(api: Api, path: str) -> None:
    deadline = time.monotonic() + 10
    while api.get(path).status != 404:
        assert time.monotonic() < deadline, f"{path} is still there after 10 s"
        time.sleep(0.05)


def owned(name: str, owner: dict[str, Any], kind: str = "ConfigMap") -> dict[str, Any]:
    body = configmap(name)
    metadata = owner["metadata"]
    reference = {"apiVersion": "v1", "kind": kind, "name": metadata["name"], "uid": metadata["uid"]}
    body["metadata"]["ownerReferences"] = [reference]
    return body


def test_finalizer_holds_the_object_until_removed(api: Api) -> None:
    body = configmap("a")
    body["metadata"]["finalizers"] = ["example.test/hold"]
    api.post(MAPS, body).ok(201)
    api.delete(f"{MAPS}/a").ok(200)
    terminating = api.get(f"{MAPS}/a").ok()
    assert terminating["metadata"]["deletionTimestamp"]
    api.patch(f"{MAPS}/a", {"metadata": {"finalizers": None}}).ok()
    assert api.get(f"{MAPS}/a").status == 404


def test_no_finalizer_can_be_added_to_a_dying_object(api: Api) -> None:
    body = configmap("a")
    body["metadata"]["finalizers"] = ["example.test/hold"]
    api.post(MAPS, body).ok(201)
    api.delete(f"{MAPS}/a").ok(200)
    patch = {"metadata": {"finalizers": ["example.test/hold", "example.test/more"]}}
    api.patch(f"{MAPS}/a", patch).refused(422, "Invalid", "no new finalizers can be added")


def test_dependents_go_with_their_owner(api: Api) -> None:
    if not api.server.has_controllers:
        pytest.skip("no controller manager on the real cluster: nothing collects owner references")
    owner = api.post(MAPS, configmap("owner")).ok(201)
    api.post(MAPS, owned("child", owner)).ok(201)
    api.delete(f"{MAPS}/owner").ok(200)
    wait_gone(api, f"{MAPS}/child")


def test_orphaned_dependents_stay(api: Api) -> None:
    if not api.server.has_controllers:
        pytest.skip("no controller manager on the real cluster: nothing collects owner references")
    owner = api.post(MAPS, configmap("owner")).ok(201)
    api.post(MAPS, owned("child", owner)).ok(201)
    options = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Orphan"}
    assert api.delete(f"{MAPS}/owner", options).status == 200
    wait_gone(api, f"{MAPS}/owner")
    assert "ownerReferences" not in api.get(f"{MAPS}/child").ok()["metadata"]


def test_deleting_a_namespace_removes_its_objects(api: Api) -> None:
    if not api.server.has_controllers:
        pytest.skip("no controller manager on the real cluster: namespaces stay Terminating")
    api.post(MAPS, configmap("a")).ok(201)
    api.delete(f"/api/v1/namespaces/{api.namespace}").ok(200)
    wait_gone(api, f"/api/v1/namespaces/{api.namespace}")
    assert api.get(f"{MAPS}/a").status == 404


def test_new_namespace_is_active_and_named_by_a_label(api: Api) -> None:
    body = api.get(f"/api/v1/namespaces/{api.namespace}").ok()
    assert body["status"]["phase"] == "Active"
    assert body["metadata"]["labels"]["kubernetes.io/metadata.name"] == api.namespace


def test_nothing_can_be_created_in_a_dying_namespace(api: Api) -> None:
    body = configmap("a")
    body["metadata"]["finalizers"] = ["example.test/hold"]
    api.post(MAPS, body).ok(201)
    api.delete(f"/api/v1/namespaces/{api.namespace}").ok(200)
    api.post(MAPS, configmap("b")).refused(403, "Forbidden", "being terminated")
    api.patch(f"{MAPS}/a", {"metadata": {"finalizers": None}}).ok()


def test_events_are_stored_and_selected_by_object(api: Api) -> None:
    uid = api.post(PODS, pod("a")).ok(201)["metadata"]["uid"]
    event = {
        "metadata": {"name": "a.1"},
        "involvedObject": {"kind": "Pod", "name": "a", "namespace": api.namespace, "uid": uid},
        "reason": "Scheduled",
        "message": "Successfully assigned",
        "type": "Normal",
        "source": {"component": "kai-scheduler"},
        "count": 1,
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
    }
    path = "/api/v1/namespaces/{ns}/events"
    api.post(path, event).ok(201)
    selector = f"involvedObject.name=a,involvedObject.uid={uid},reason=Scheduled"
    (stored,) = api.get(path, fieldSelector=selector).ok()["items"]
    assert stored["message"] == "Successfully assigned"
    assert api.get(path, fieldSelector="involvedObject.name=b").ok()["items"] == []


def test_lease_is_taken_by_one_of_two(api: Api) -> None:
    path = "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases"
    spec = {"holderIdentity": "one", "leaseDurationSeconds": 15}
    lease = api.post(path, {"metadata": {"name": "leader"}, "spec": spec}).ok(201)
    second_lease = {**lease, "spec": {**spec, "holderIdentity": "two"}}
    api.put(f"{path}/leader", second_lease).ok()
    api.put(f"{path}/leader", {**lease, "spec": {**spec, "holderIdentity": "three"}}).refused(
        409, "Conflict"
    )
    assert api.get(f"{path}/leader").ok()["spec"]["holderIdentity"] == "two"
