"""What KAI leaves in a cluster, as far as a change to kaiweb meets it."""

from __future__ import annotations

from typing import Any

from kube.resources import (
    BINDREQUESTS,
    CONFIGS,
    DEPLOYMENTS,
    LEASES,
    NAMESPACES,
    PODGROUPS,
    PODS,
    QUEUES,
    SECRETS,
    SHARDS,
    Resource,
)
from tests.deploy.chart import Manifest

SYSTEM, RESERVATION, TEAM = "kai-scheduler", "kai-resource-reservation", "vision"
#: The gang and the pod with half a GPU run; `late` was placed by KAI and not bound yet.
RUNNING = ("gang-0", "gang-1", "notebook")
LATE = "late"
FULL_NODE, OTHER_NODE = "node-0000", "node-0001"


def kai_objects() -> list[Manifest]:
    """Return the objects, in an order in which they can be created."""
    return [*_components(), *_queues(), *_workloads()]


def _components() -> list[Manifest]:
    operated = {"app.kubernetes.io/managed-by": "kai-operator"}
    release = {"owner": "helm", "name": "kai-scheduler", "status": "deployed", "version": "1"}
    lease = {
        "holderIdentity": "kai-operator-1_x",
        "leaseDurationSeconds": 15,
        "renewTime": "2026-01-01T00:00:00.000000Z",
    }
    role: Manifest = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {
            "name": "kai-scheduler",
            "labels": {"app.kubernetes.io/managed-by": "Helm"},
            "annotations": {
                "meta.helm.sh/release-name": "kai-scheduler",
                "meta.helm.sh/release-namespace": SYSTEM,
            },
        },
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
    }
    service: Manifest = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "admission", "namespace": SYSTEM},
        "spec": {"ports": [{"port": 443}], "selector": {"app": "admission"}},
    }
    return [
        _object(SECRETS, "sh.helm.release.v1.kai-scheduler.v1", SYSTEM, labels=release),
        _object(CONFIGS, "kai-config", spec={"namespace": SYSTEM}),
        _object(SHARDS, "default", spec={"placementStrategy": {"gpu": "spread", "cpu": "spread"}}),
        role,
        service,
        _deployment("kai-operator", {}),
        _deployment("kai-scheduler-default", operated),
        _deployment("binder", operated),
        _object(LEASES, "41fce092.run.ai", SYSTEM, spec=lease),
    ]


def _queues() -> list[Manifest]:
    amount = {"quota": 4, "limit": -1, "overQuotaWeight": 1}
    resources = dict.fromkeys(("gpu", "cpu", "memory"), amount)
    return [
        _object(QUEUES, "research", spec={"resources": resources}),
        _object(QUEUES, "vision", spec={"parentQueue": "research", "resources": resources}),
    ]


def _workloads() -> list[Manifest]:
    shared = {"runai-gpu-group": "shared-1"}
    half = {"gpu-fraction": "0.5", "received-resource-type": "Fraction"}
    reserved = {"run.ai/reserve_for_gpu_index": "GPU-node-0000-7"}
    request = {
        "podName": LATE,
        "selectedNode": OTHER_NODE,
        "receivedResourceType": "Regular",
        "receivedGPU": {"count": 1, "portion": "1.00"},
    }
    labels = {"pod-name": LATE, "selected-node": OTHER_NODE}
    return [
        _object(NAMESPACES, TEAM),
        _group("gang", 2),
        _pod("gang-0", "gang", FULL_NODE),
        _pod("gang-1", "gang", FULL_NODE),
        _group("notebook", 1),
        _pod("notebook", "notebook", FULL_NODE, gpus=0, labels=shared, annotations=half),
        _object(
            PODS,
            "gpu-reservation-node-0000-1",
            RESERVATION,
            labels={"app": "kai-resource-reservation", **shared},
            annotations=reserved,
            spec=_pod_spec(FULL_NODE, gpus=1),
        ),
        _group(LATE, 1),
        _pod(LATE, LATE, ""),
        _object(BINDREQUESTS, "late-abcde", TEAM, labels=labels, spec=request),
    ]


def _group(name: str, members: int) -> Manifest:
    return _object(PODGROUPS, name, TEAM, spec={"minMember": members, "queue": "vision"})


def _pod(
    name: str,
    group: str,
    node: str,
    *,
    gpus: int = 1,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
) -> Manifest:
    spec = {"schedulerName": "kai-scheduler", **_pod_spec(node, gpus=gpus)}
    return _object(
        PODS,
        name,
        TEAM,
        labels={"kai.scheduler/queue": "vision", **(labels or {})},
        annotations={"pod-group-name": group, **(annotations or {})},
        spec=spec,
    )


def _pod_spec(node: str, *, gpus: int) -> dict[str, Any]:
    limits = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    container = {"name": "main", "image": "example.test/x:1", "resources": {"limits": limits}}
    return {**({"nodeName": node} if node else {}), "containers": [container]}


def _deployment(name: str, labels: dict[str, str]) -> Manifest:
    arguments = ["--scheduler-name", "kai-scheduler"]
    container = {"name": "main", "image": "example.test/kai:1", "args": arguments}
    selector = {"app": f"kai-{name}"}
    spec = {
        "selector": {"matchLabels": selector},
        "template": {"metadata": {"labels": selector}, "spec": {"containers": [container]}},
    }
    return _object(DEPLOYMENTS, name, SYSTEM, labels=labels, spec=spec)


def _object(
    kind: Resource,
    name: str,
    namespace: str = "",
    *,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    **more: Any,
) -> Manifest:
    metadata: dict[str, Any] = {"name": name}
    for key, value in (("namespace", namespace), ("labels", labels), ("annotations", annotations)):
        if value:
            metadata[key] = value
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **more}
