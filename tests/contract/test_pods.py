"""The subresources that scheduling lives by: binding, status, eviction, scale."""

from __future__ import annotations

from typing import Any

from tests.contract.api import STRATEGIC, Api
from tests.contract.bodies import deployment, pod, queue

PODS = "/api/v1/namespaces/{ns}/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/{ns}/deployments"


def binding(name: str, node: str, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, **metadata},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }


def conditions(body: dict[str, Any]) -> dict[str, str]:
    return {item["type"]: item["status"] for item in body["status"].get("conditions", ())}


def test_binding_sets_node_condition_and_annotations(api: Api) -> None:
    uid = api.post(PODS, pod("a", annotations={"old": "1"})).ok(201)["metadata"]["uid"]
    body = binding("a", "node-1", uid=uid, annotations={"received-resource-type": "Regular"})
    assert api.post(f"{PODS}/a/binding", body).ok(201)["status"] == "Success"
    bound = api.get(f"{PODS}/a").ok()
    assert bound["spec"]["nodeName"] == "node-1"
    assert conditions(bound)["PodScheduled"] == "True"
    expected = {"old": "1", "received-resource-type": "Regular"}
    assert bound["metadata"]["annotations"] == expected


def test_second_binding_is_a_conflict(api: Api) -> None:
    api.post(PODS, pod("a")).ok(201)
    api.post(f"{PODS}/a/binding", binding("a", "node-1")).ok(201)
    api.post(f"{PODS}/a/binding", binding("a", "node-2")).refused(
        409, "Conflict", 'already assigned to node "node-1"'
    )
    assert api.get(f"{PODS}/a").ok()["spec"]["nodeName"] == "node-1"


def test_binding_for_a_namesake_is_a_conflict(api: Api) -> None:
    api.post(PODS, pod("a")).ok(201)
    api.post(f"{PODS}/a/binding", binding("a", "node-1", uid="another")).refused(409, "Conflict")
    assert "nodeName" not in api.get(f"{PODS}/a").ok()["spec"]


def test_binding_a_missing_pod_is_not_found(api: Api) -> None:
    api.post(f"{PODS}/none/binding", binding("none", "node-1")).refused(404, "NotFound")


def test_binding_without_a_target_is_refused(api: Api) -> None:
    api.post(PODS, pod("a")).ok(201)
    # The real server answers 500 here, of all things; the text is what matters.
    answer = api.post(f"{PODS}/a/binding", binding("a", ""))
    assert answer.status >= 400
    assert answer.body["message"].startswith("target.name: Required value")


def test_gated_pod_cannot_be_bound(api: Api) -> None:
    body = pod("a")
    body["spec"]["schedulingGates"] = [{"name": "example.test/wait"}]
    api.post(PODS, body).ok(201)
    api.post(f"{PODS}/a/binding", binding("a", "node-1")).refused(409, "Conflict")


def test_pod_spec_is_immutable_but_for_a_few_fields(api: Api) -> None:
    api.post(PODS, pod("a")).ok(201)
    patch = {"spec": {"schedulerName": "another"}}
    api.patch(f"{PODS}/a", patch).refused(422, "Invalid", "pod updates may not change fields")
    image = {"spec": {"containers": [{"name": "main", "image": "new:2"}]}}
    api.patch(f"{PODS}/a", image, STRATEGIC).ok()


def test_status_patch_merges_conditions_by_type(api: Api) -> None:
    api.post(PODS, pod("a")).ok(201)
    for kind in ("PodScheduled", "PodBound"):
        patch = {"status": {"conditions": [{"type": kind, "status": "False"}]}}
        api.patch(f"{PODS}/a/status", patch, STRATEGIC).ok()
    assert conditions(api.get(f"{PODS}/a").ok()) == {"PodScheduled": "False", "PodBound": "False"}


def test_main_resource_ignores_status_and_status_ignores_spec(api: Api, unique: str) -> None:
    path = "/apis/scheduling.run.ai/v2/queues"
    body = {**queue(unique), "status": {"childQueues": ["x"]}}
    assert "status" not in api.post(path, body).ok(201)
    patch = {"spec": {"displayName": "no"}, "status": {"childQueues": ["y"]}}
    changed = api.patch(f"{path}/{unique}/status", patch).ok()
    assert changed["status"] == {"childQueues": ["y"]}
    assert "displayName" not in changed["spec"]
    changed = api.patch(f"{path}/{unique}", {"status": {"childQueues": ["z"]}}).ok()
    assert changed["status"] == {"childQueues": ["y"]}


def test_generation_grows_with_spec_only(api: Api, unique: str) -> None:
    path = f"/apis/scheduling.run.ai/v2/queues/{unique}"
    api.post("/apis/scheduling.run.ai/v2/queues", queue(unique)).ok(201)
    assert api.patch(path, {"spec": {"priority": 7}}).ok()["metadata"]["generation"] == 2
    assert api.patch(path, {"metadata": {"labels": {"a": "b"}}}).ok()["metadata"]["generation"] == 2
    status = {"status": {"childQueues": ["y"]}}
    assert api.patch(f"{path}/status", status).ok()["metadata"]["generation"] == 2


def test_unbound_pod_is_deleted_at_once(api: Api) -> None:
    api.post(PODS, pod("a")).ok(201)
    api.delete(f"{PODS}/a").ok(200)
    assert api.get(f"{PODS}/a").status == 404


def test_bound_pod_terminates_until_its_kubelet_removes_it(api: Api) -> None:
    api.post(PODS, pod("a")).ok(201)
    api.post(f"{PODS}/a/binding", binding("a", "node-1")).ok(201)
    api.delete(f"{PODS}/a").ok(200)
    metadata = api.get(f"{PODS}/a").ok()["metadata"]
    assert metadata["deletionGracePeriodSeconds"] == 30
    assert metadata["deletionTimestamp"]
    api.delete(f"{PODS}/a", {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0})
    assert api.get(f"{PODS}/a").status == 404


def test_eviction_deletes_the_pod(api: Api) -> None:
    api.post(PODS, pod("a")).ok(201)
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}}
    assert api.post(f"{PODS}/a/eviction", eviction).ok(201)["status"] == "Success"
    assert api.get(f"{PODS}/a").status == 404


def test_scale_reads_and_writes_replicas(api: Api) -> None:
    api.post(DEPLOYMENTS, deployment("a", replicas=2)).ok(201)
    scale = api.get(f"{DEPLOYMENTS}/a/scale").ok()
    assert (scale["kind"], scale["spec"]) == ("Scale", {"replicas": 2})
    assert api.patch(f"{DEPLOYMENTS}/a/scale", {"spec": {"replicas": 5}}).ok()["spec"] == {
        "replicas": 5
    }
    assert api.get(f"{DEPLOYMENTS}/a").ok()["spec"]["replicas"] == 5


def test_exec_is_refused_without_a_kubelet(api: Api) -> None:
    api.post(PODS, pod("a")).ok(201)
    answer = api.post(f"{PODS}/a/exec", None, command="ls", stdout="1")
    assert answer.status >= 400


def test_a_runtime_class_adds_overhead_selector_and_tolerations(api: Api, unique: str) -> None:
    toleration = {"key": "sandboxed", "operator": "Exists"}
    runtime_class = {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": unique},
        "handler": "kata",
        "overhead": {"podFixed": {"cpu": "250m", "memory": "120Mi"}},
        "scheduling": {"nodeSelector": {"kata": "true"}, "tolerations": [toleration]},
    }
    path = "/apis/node.k8s.io/v1/runtimeclasses"
    api.post(path, runtime_class).ok(201)
    body = pod("a")
    body["spec"]["runtimeClassName"] = unique
    body["spec"]["nodeSelector"] = {"disk": "fast"}
    spec = api.post(PODS, body).ok(201)["spec"]
    assert spec["overhead"] == {"cpu": "250m", "memory": "120Mi"}
    assert spec["nodeSelector"] == {"disk": "fast", "kata": "true"}
    assert toleration in spec["tolerations"]
    refused = {
        "conflict: runtimeClass.scheduling.nodeSelector[kata] = true": {
            "runtimeClassName": unique,
            "nodeSelector": {"kata": "false"},
        },
        "doesn't match RuntimeClass's defined Overhead": {
            "runtimeClassName": unique,
            "overhead": {"cpu": "1", "memory": "1Gi"},
        },
        "set without corresponding RuntimeClass": {"overhead": {"cpu": "1"}},
        'RuntimeClass "nowhere" not found': {"runtimeClassName": "nowhere"},
    }
    for text, fields in refused.items():
        body = pod("b")
        body["spec"] |= fields
        answer = api.post(PODS, body)
        assert (answer.status, text in answer.body["message"]) == (403, True), answer.body
    api.delete(f"{path}/{unique}").ok(200)
