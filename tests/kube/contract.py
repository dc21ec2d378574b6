"""What every gateway promises; run against the fake, the sandbox and a real API server.

Each check takes a gateway and a namespace of its own, so that servers with a life of their own
(service accounts, controllers) do not disturb it.
"""

from __future__ import annotations

from typing import Any

import pytest

from kube.errors import (
    AlreadyExistsError,
    ConflictError,
    DisruptionBudgetError,
    InvalidError,
    KubeError,
    NotFoundError,
)
from kube.gateway import EventType, Gateway, PatchType, Selectors
from kube.objects.cluster import ConfigMap
from kube.objects.pod import Pod
from kube.resources import CONFIGMAPS, POD_DISRUPTION_BUDGETS, PODS


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {"of": name}},
        "data": data,
    }


def pod(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"schedulerName": "nobody", "containers": [{"name": "main", "image": "none"}]},
    }


def check_create_read_list(gateway: Gateway, namespace: str) -> None:
    created = gateway.create(CONFIGMAPS, config_map("one", a="1"), namespace=namespace)
    gateway.create(CONFIGMAPS, config_map("two", a="2"), namespace=namespace)
    read = gateway.get(CONFIGMAPS, "one", as_type=ConfigMap, namespace=namespace)
    assert read.metadata.uid == created["metadata"]["uid"] != ""
    assert read.data == {"a": "1"}
    listing = gateway.list(
        CONFIGMAPS, as_type=ConfigMap, namespace=namespace, selectors=Selectors(labels="of=two")
    )
    assert [item.metadata.name for item in listing.items] == ["two"]
    assert int(listing.resource_version) >= int(read.metadata.resource_version)


def check_refusals_have_types(gateway: Gateway, namespace: str) -> None:
    gateway.create(CONFIGMAPS, config_map("twice"), namespace=namespace)
    with pytest.raises(AlreadyExistsError) as exists:
        gateway.create(CONFIGMAPS, config_map("twice"), namespace=namespace)
    assert exists.value.permanent
    with pytest.raises(NotFoundError):
        gateway.get(CONFIGMAPS, "nowhere", as_type=ConfigMap, namespace=namespace)
    with pytest.raises(NotFoundError):
        gateway.delete(CONFIGMAPS, "nowhere", namespace=namespace)
    with pytest.raises(NotFoundError):
        gateway.patch(CONFIGMAPS, "nowhere", {"data": {}}, namespace=namespace)


def check_stale_write_conflicts(gateway: Gateway, namespace: str) -> None:
    first = gateway.create(CONFIGMAPS, config_map("shared", a="1"), namespace=namespace)
    gateway.patch(CONFIGMAPS, "shared", {"data": {"a": "2"}}, namespace=namespace)
    stale = {**config_map("shared", a="3"), "metadata": first["metadata"]}
    with pytest.raises(ConflictError) as conflict:
        gateway.replace(CONFIGMAPS, "shared", stale, namespace=namespace)
    assert not conflict.value.permanent
    now = gateway.get(CONFIGMAPS, "shared", as_type=ConfigMap, namespace=namespace)
    assert now.data == {"a": "2"}


def check_patch_types(gateway: Gateway, namespace: str) -> None:
    gateway.create(CONFIGMAPS, config_map("p", a="1", b="2"), namespace=namespace)
    gateway.patch(CONFIGMAPS, "p", {"data": {"b": None, "c": "3"}}, namespace=namespace)
    gateway.patch(
        CONFIGMAPS,
        "p",
        [{"op": "replace", "path": "/data/a", "value": "9"}],
        namespace=namespace,
        patch_type=PatchType.JSON,
    )
    read = gateway.get(CONFIGMAPS, "p", as_type=ConfigMap, namespace=namespace)
    assert read.data == {"a": "9", "c": "3"}
    with pytest.raises(InvalidError):
        gateway.patch(
            CONFIGMAPS,
            "p",
            [{"op": "remove", "path": "/data/none"}],
            namespace=namespace,
            patch_type=PatchType.JSON,
        )


def check_conditions_merge_by_type(gateway: Gateway, namespace: str) -> None:
    gateway.create(PODS, pod("conditions"), namespace=namespace)
    for kind, status in (("One", "True"), ("Two", "True"), ("One", "False")):
        condition = {"type": kind, "status": status, "reason": "Tested", "message": "m"}
        gateway.patch(
            PODS,
            "conditions",
            {"status": {"conditions": [condition]}},
            namespace=namespace,
            sub="status",
            patch_type=PatchType.STRATEGIC,
        )
    read = gateway.get(PODS, "conditions", as_type=Pod, namespace=namespace)
    ours = {item.type: item.status for item in read.status.conditions if item.reason == "Tested"}
    assert ours == {"One": "False", "Two": "True"}


def check_binding(gateway: Gateway, namespace: str) -> None:
    created = gateway.create(PODS, pod("bound"), namespace=namespace)
    uid = created["metadata"]["uid"]
    with pytest.raises(KubeError):
        gateway.bind(namespace, "bound", pod_uid="another-uid", node="n1")
    stale = created["metadata"]["resourceVersion"]
    mark = {"metadata": {"annotations": {"changed": "since"}}}
    gateway.patch(PODS, "bound", mark, namespace=namespace)
    with pytest.raises(ConflictError):
        gateway.bind(namespace, "bound", pod_uid=uid, node="n1", resource_version=stale)
    gateway.bind(namespace, "bound", pod_uid=uid, node="n1", annotations={"received": "Regular"})
    read = gateway.get(PODS, "bound", as_type=Pod, namespace=namespace)
    assert read.spec.node_name == "n1"
    assert read.metadata.annotations["received"] == "Regular"
    scheduled = read.condition("PodScheduled")
    assert scheduled is not None
    assert scheduled.status == "True"
    with pytest.raises(ConflictError):
        gateway.bind(namespace, "bound", pod_uid=uid, node="n2")


def check_a_budget_of_one_blocks_the_second_eviction(gateway: Gateway, namespace: str) -> None:
    uids = {name: _ready_pod(gateway, namespace, name) for name in ("first", "second")}
    selector = {"matchLabels": {"app": "budgeted"}}
    budget = {"metadata": {"name": "one"}, "spec": {"minAvailable": 1, "selector": selector}}
    gateway.create(POD_DISRUPTION_BUDGETS, budget, namespace=namespace)
    status = {
        "disruptionsAllowed": 1,
        "currentHealthy": 2,
        "desiredHealthy": 1,
        "expectedPods": 2,
        "observedGeneration": 1,
    }
    gateway.patch(
        POD_DISRUPTION_BUDGETS, "one", {"status": status}, namespace=namespace, sub="status"
    )
    with pytest.raises(NotFoundError):
        gateway.evict(namespace, "nowhere", pod_uid="any")
    gateway.create(PODS, pod("free"), namespace=namespace)
    with pytest.raises(ConflictError):
        gateway.evict(namespace, "free", pod_uid="another-uid")
    gateway.evict(namespace, "first", pod_uid=uids["first"])
    evicted = gateway.get(PODS, "first", as_type=Pod, namespace=namespace)
    assert evicted.metadata.deletion_timestamp is not None
    target = evicted.condition("DisruptionTarget")
    assert target is not None
    assert (target.status, target.reason) == ("True", "EvictionByEvictionAPI")
    with pytest.raises(DisruptionBudgetError) as refusal:
        gateway.evict(namespace, "second", pod_uid=uids["second"])
    assert refusal.value.budget_text.startswith("The disruption budget one ")
    second = gateway.get(PODS, "second", as_type=Pod, namespace=namespace)
    assert second.metadata.deletion_timestamp is None


def _ready_pod(gateway: Gateway, namespace: str, name: str) -> str:
    """Create a pod that seems to run on a node, and return its uid."""
    body = pod(name)
    body["metadata"]["labels"] = {"app": "budgeted"}
    uid = str(gateway.create(PODS, body, namespace=namespace)["metadata"]["uid"])
    gateway.bind(namespace, name, pod_uid=uid, node="n1")
    ready = {"type": "Ready", "status": "True"}
    gateway.patch(
        PODS,
        name,
        {"status": {"phase": "Running", "conditions": [ready]}},
        namespace=namespace,
        sub="status",
        patch_type=PatchType.STRATEGIC,
    )
    return uid


def check_watch_resumes(gateway: Gateway, namespace: str) -> None:
    start = gateway.list(CONFIGMAPS, as_type=ConfigMap, namespace=namespace).resource_version
    gateway.create(CONFIGMAPS, config_map("w", a="1"), namespace=namespace)
    gateway.patch(CONFIGMAPS, "w", {"data": {"a": "2"}}, namespace=namespace)
    gateway.delete(CONFIGMAPS, "w", namespace=namespace)
    stream = gateway.watch(
        CONFIGMAPS, as_type=ConfigMap, resource_version=start, namespace=namespace, timeout_s=10
    )
    events = []
    for event in stream:
        if event.type is EventType.BOOKMARK or event.object.metadata.name != "w":
            continue
        events.append((event.type, event.object.data.get("a"), event.resource_version))
        if event.type is EventType.DELETED:
            break
    assert [entry[:2] for entry in events] == [
        (EventType.ADDED, "1"),
        (EventType.MODIFIED, "2"),
        (EventType.DELETED, "2"),
    ]
    resumed = gateway.watch(
        CONFIGMAPS,
        as_type=ConfigMap,
        resource_version=events[0][2],
        namespace=namespace,
        timeout_s=10,
    )
    assert next(resumed).type is EventType.MODIFIED


CHECKS = [value for name, value in sorted(globals().items()) if name.startswith("check_")]
