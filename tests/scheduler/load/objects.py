"""Bodies of cluster objects for tests, and a store filled with them."""

from __future__ import annotations

from typing import Any

from kube.gateway import EventType, WatchEvent
from kube.objects.meta import convert
from kube.resources import BINDREQUESTS, NODES, PODGROUPS, PODS, QUEUES, Resource
from kube.store import Store
from scheduler.settings.watched import WATCHED

NOW = 1_767_225_600.0  # 2026-01-01T00:00:00Z
TYPES = {item.resource: item.as_type for item in WATCHED}


def meta(name: str, namespace: str = "", **extra: Any) -> dict[str, Any]:
    pod_body: dict[str, Any] = {
        "name": name,
        "uid": f"uid-{name}",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        **extra,
    }
    return {**pod_body, "namespace": namespace} if namespace else pod_body


def pod(
    name: str,
    *,
    group: str = "",
    node: str = "",
    phase: str = "Pending",
    requests: dict[str, Any] | None = None,
    annotations: dict[str, str] | None = None,
    labels: dict[str, str] | None = None,
    deleted: str = "",
    **spec: Any,
) -> dict[str, Any]:
    marks = {**({"pod-group-name": group} if group else {}), **(annotations or {})}
    metadata = meta(name, "ns", annotations=marks, labels=labels or {})
    if deleted:
        metadata["deletionTimestamp"] = deleted
    containers = [{"name": "main", "resources": {"requests": requests or {}}}]
    body_spec = {"schedulerName": "kai-scheduler", "containers": containers, **spec}
    if node:
        body_spec["nodeName"] = node
    return {"metadata": metadata, "spec": body_spec, "status": {"phase": phase}}


def node(name: str, *, gpus: int = 8, labels: dict[str, str] | None = None, **extra: Any) -> Any:
    allocatable = {"cpu": "32", "memory": "128Gi", "pods": "110", "nvidia.com/gpu": str(gpus)}
    status = {
        "allocatable": extra.pop("allocatable", allocatable),
        "conditions": extra.pop("conditions", [{"type": "Ready", "status": "True"}]),
    }
    return {"metadata": meta(name, labels=labels or {}), "spec": extra, "status": status}


def group(
    name: str, *, queue: str = "q", annotations: dict[str, str] | None = None, **extra: Any
) -> Any:
    labels = extra.pop("labels", {})
    status = extra.pop("status", {})
    metadata = meta(name, "ns", annotations=annotations or {}, labels=labels)
    return {"metadata": metadata, "spec": {"queue": queue, **extra}, "status": status}


def queue(name: str, **spec: Any) -> dict[str, Any]:
    labels = spec.pop("labels", {})
    return {"metadata": meta(name, labels=labels), "spec": spec}


def bind_request(pod_name: str, node_name: str, **extra: Any) -> dict[str, Any]:
    labels = extra.pop("labels", {})
    status = extra.pop("status", {})
    owner = extra.pop("owner_uid", f"uid-{pod_name}")
    owners = [{"apiVersion": "v1", "kind": "Pod", "name": pod_name, "uid": owner}]
    metadata = meta(pod_name, "ns", labels=labels, ownerReferences=owners)
    return {
        "metadata": metadata,
        "spec": {"podName": pod_name, "selectedNode": node_name, **extra},
        "status": status,
    }


class Cluster:
    """A store that takes bodies and numbers their versions."""

    def __init__(self) -> None:
        self.store = Store([PODS, NODES, PODGROUPS, QUEUES, BINDREQUESTS])
        self._version = 0

    def put(self, resource: Resource, *bodies: dict[str, Any]) -> Cluster:
        for body in bodies:
            self._apply(resource, body, EventType.MODIFIED)
        return self

    def drop(self, resource: Resource, *bodies: dict[str, Any]) -> Cluster:
        for body in bodies:
            self._apply(resource, body, EventType.DELETED)
        return self

    def _apply(self, resource: Resource, body: dict[str, Any], kind: EventType) -> None:
        self._version += 1
        version = str(self._version)
        stamped = {**body, "metadata": {**body["metadata"], "resourceVersion": version}}
        value = convert(stamped, TYPES[resource])
        self.store.apply(resource, WatchEvent(type=kind, object=value, resource_version=version))
