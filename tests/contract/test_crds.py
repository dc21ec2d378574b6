"""Custom resources: our six kinds with their schemas and rules, and a new kind made on the fly."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.contract.api import JSON_PATCH, Api
from tests.contract.bodies import podgroup, queue, topology

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
QUEUES = "/apis/scheduling.run.ai/v2/queues"
GROUPS = "/apis/scheduling.run.ai/v2alpha2/namespaces/{ns}/podgroups"
BIND_REQUESTS = "/apis/scheduling.run.ai/v1alpha2/namespaces/{ns}/bindrequests"
SHARDS = "/apis/kai.scheduler/v1/schedulingshards"
CONFIGS = "/apis/kai.scheduler/v1/configs"
TOPOLOGIES = "/apis/kai.scheduler/v1alpha1/topologies"


def test_queue_keeps_its_numbers(api: Api, unique: str) -> None:
    body = api.post(QUEUES, queue(unique, priority=7, preemptMinRuntime="1h30m")).ok(201)
    assert body["spec"]["resources"]["gpu"] == {"quota": 4, "limit": -1, "overQuotaWeight": 1}
    assert (body["spec"]["priority"], body["spec"]["preemptMinRuntime"]) == (7, "1h30m")
    assert body["metadata"]["generation"] == 1


def test_queue_refuses_negative_amounts(api: Api, unique: str) -> None:
    body = queue(unique)
    body["spec"]["resources"]["gpu"] = {"quota": -3, "limit": -1}
    api.post(QUEUES, body).refused(
        422, "Invalid", "spec.resources.gpu.quota: Invalid value: -3: must be -1 (unlimited)"
    )
    body["spec"]["resources"]["gpu"] = {"quota": 0.5, "limit": -0.5}
    api.post(QUEUES, body).refused(422, "Invalid", "spec.resources.gpu.limit")
    body["spec"]["resources"]["gpu"] = {"overQuotaWeight": -1}
    api.post(QUEUES, body).refused(422, "Invalid", "greater than or equal to 0")


def test_queue_refuses_bad_duration(api: Api, unique: str) -> None:
    api.post(QUEUES, queue(unique, reclaimMinRuntime="10")).refused(
        422, "Invalid", "spec.reclaimMinRuntime"
    )


def test_wrong_type_is_invalid_with_its_path(api: Api, unique: str) -> None:
    body = api.post(QUEUES, queue(unique, priority="high")).refused(422, "Invalid", "spec.priority")
    assert body["details"]["causes"][0]["field"] == "spec.priority"
    assert "must be of type integer" in body["message"]


def test_unknown_field_is_pruned(api: Api, unique: str) -> None:
    body = queue(unique, colour="red")
    body["spec"]["resources"]["gpu"]["burst"] = 3
    answer = api.post(QUEUES, body)
    assert "colour" not in answer.ok(201)["spec"]
    assert answer.body["spec"]["resources"]["gpu"] == {
        "quota": 4,
        "limit": -1,
        "overQuotaWeight": 1,
    }


def test_unknown_field_is_refused_when_strict(api: Api, unique: str) -> None:
    api.post(QUEUES, queue(unique, colour="red"), fieldValidation="Strict").refused(
        400, "BadRequest", 'unknown field "spec.colour"'
    )


def test_status_amounts_take_numbers_and_quantities(api: Api, unique: str) -> None:
    api.post(QUEUES, queue(unique)).ok(201)
    allocated = {"cpu": "1500m", "memory": "2Gi", "nvidia.com/gpu": 3}
    path = f"{QUEUES}/{unique}/status"
    assert api.patch(path, {"status": {"allocated": allocated}}).ok()["status"] == {
        "allocated": allocated
    }
    api.patch(path, {"status": {"allocated": {"cpu": "many"}}}).refused(422, "Invalid")


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"minMember": -1}, "spec.minMember"),
        ({"preemptibility": "sometimes"}, "spec.preemptibility"),
        ({"subGroups": [{"minMember": 1}]}, "spec.subGroups[0].name"),
        ({"subGroups": [{"name": "Upper"}]}, "spec.subGroups[0].name"),
        ({"subGroups": [{"name": "a", "minMember": 2.5}]}, "spec.subGroups[0].minMember"),
        ({"preemptionDelay": "soon"}, "spec.preemptionDelay"),
    ],
)
def test_podgroup_rules(api: Api, spec: dict[str, Any], field: str) -> None:
    api.post(GROUPS, podgroup("a", **spec)).refused(422, "Invalid", field)


def test_podgroup_tree_is_kept(api: Api) -> None:
    tree = [
        {"name": "train", "minSubGroup": 1, "topologyConstraint": {"topology": "map"}},
        {"name": "rank-a", "parent": "train", "minMember": 2},
    ]
    group = podgroup("a", subGroups=tree, minSubGroup=1)
    del group["spec"]["minMember"]
    assert api.post(GROUPS, group).ok(201)["spec"]["subGroups"] == tree


def test_bind_request_with_claim_allocation(api: Api) -> None:
    device = {"request": "gpu", "driver": "gpu.example.test", "pool": "node-1", "device": "gpu-0"}
    spec = {
        "podName": "a",
        "selectedNode": "node-1",
        "receivedResourceType": "Fraction",
        "receivedGPU": {"count": 1, "portion": "0.50"},
        "selectedGPUGroups": ["11111111-2222-3333-4444-555555555555"],
        "resourceClaimAllocations": [
            {"name": "c", "allocation": {"devices": {"results": [device]}}}
        ],
        "predictedNUMAZones": [{"zone": "node-0", "amount": {"cpu": "4", "memory": "8Gi"}}],
    }
    body = api.post(
        BIND_REQUESTS,
        {
            "apiVersion": "scheduling.run.ai/v1alpha2",
            "kind": "BindRequest",
            "metadata": {"name": "a"},
            "spec": spec,
        },
    )
    assert body.ok(201)["spec"] == spec
    status = {"status": {"phase": "Failed", "reason": "because", "failedAttempts": 1}}
    assert api.patch(f"{BIND_REQUESTS}/a/status", status).ok()["status"] == status["status"]
    bad = {"status": {"phase": "Undecided"}}
    api.patch(f"{BIND_REQUESTS}/a/status", bad).refused(422, "Invalid", "status.phase")


def test_shard_memory_ratio_is_above_zero_up_to_one(api: Api, unique: str) -> None:
    shard = {"apiVersion": "kai.scheduler/v1", "kind": "SchedulingShard"}
    for ratio, is_valid in ((0, False), (1.1, False), (1, True)):
        body = {**shard, "metadata": {"name": unique}, "spec": {"goMemLimitRatio": ratio}}
        answer = api.post(SHARDS, body)
        if is_valid:
            answer.ok(201)
        else:
            answer.refused(422, "Invalid", "spec.goMemLimitRatio")


def test_shard_memory_limit_is_above_zero(api: Api, unique: str) -> None:
    shard = {"apiVersion": "kai.scheduler/v1", "kind": "SchedulingShard"}
    for limit in (0, "0", "-5Gi", "much"):
        body = {**shard, "metadata": {"name": unique}, "spec": {"goMemLimit": limit}}
        api.post(SHARDS, body).refused(422, "Invalid", "spec.goMemLimit")
    body = {**shard, "metadata": {"name": unique}, "spec": {"goMemLimit": "1.5Gi"}}
    assert api.post(SHARDS, body).ok(201)["spec"] == {"goMemLimit": "1.5Gi"}


def test_config_keeps_affinity_as_it_is(api: Api, unique: str) -> None:
    term = {"weight": 1, "preference": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}
    spec = {"global": {"affinity": affinity, "replicaCount": 2}, "binder": {"probePort": 8081}}
    body = {"apiVersion": "kai.scheduler/v1", "kind": "Config", "metadata": {"name": unique}}
    assert api.post(CONFIGS, {**body, "spec": spec}).ok(201)["spec"] == spec


def test_topology_rules_on_create(api: Api, unique: str) -> None:
    host = "kubernetes.io/hostname"
    api.post(TOPOLOGIES, topology(unique, host, "example.test/rack")).refused(
        422, "Invalid", "the kubernetes.io/hostname label can only be used at the lowest level"
    )
    api.post(TOPOLOGIES, topology(unique, "example.test/rack", "example.test/rack")).refused(
        422, "Invalid", "nodeLabel must be unique"
    )
    api.post(TOPOLOGIES, topology(unique)).refused(422, "Invalid", "should have at least 1 items")
    api.post(TOPOLOGIES, topology(unique, "not a label!")).refused(
        422, "Invalid", "spec.levels[0].nodeLabel"
    )
    api.post(TOPOLOGIES, topology(unique, "example.test/rack", host)).ok(201)


def test_topology_labels_are_immutable_and_aliases_are_not(api: Api, unique: str) -> None:
    api.post(TOPOLOGIES, topology(unique, "example.test/block", "example.test/rack")).ok(201)
    change = [{"op": "replace", "path": "/spec/levels/0/nodeLabel", "value": "example.test/hall"}]
    api.patch(f"{TOPOLOGIES}/{unique}", change, JSON_PATCH).refused(
        422, "Invalid", "nodeLabel structure is immutable; only aliases may be edited"
    )
    alias = [{"op": "add", "path": "/spec/levels/0/alias", "value": "block"}]
    levels = api.patch(f"{TOPOLOGIES}/{unique}", alias, JSON_PATCH).ok()["spec"]["levels"]
    assert levels[0] == {"nodeLabel": "example.test/block", "alias": "block"}


def test_new_kind_is_served_after_its_crd_and_gone_with_it(api: Api, unique: str) -> None:
    plural = unique.replace("-", "") + "s"
    group = "lane.example.test"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
    }
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": "Gadget" + plural},
            "versions": [version],
        },
    }
    api.post(CRDS, crd).ok(201)
    path = f"/apis/{group}/v1/namespaces/{{ns}}/{plural}"
    wait_for_status(api, path, 200)
    gadget = {"apiVersion": f"{group}/v1", "kind": "Gadget" + plural, "metadata": {"name": "g"}}
    assert api.post(path, {**gadget, "anything": [1, {"x": None}]}).ok(201)["anything"][0] == 1
    api.delete(f"{CRDS}/{plural}.{group}").ok(200)
    wait_for_status(api, path, 404)


def test_crd_without_structural_schema_is_invalid(api: Api, unique: str) -> None:
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.lane.example.test"},
        "spec": {
            "group": "lane.example.test",
            "scope": "Cluster",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": True, "storage": True}],
        },
    }
    api.post(CRDS, crd).refused(422, "Invalid", "schema")


def wait_for_status(api: Api, path: str, status: int) -> None:
    deadline = time.monotonic() + 15
    while api.get(path).status != status:
        assert time.monotonic() < deadline, f"{path} did not answer {status} within 15 s"
        time.sleep(0.1)
