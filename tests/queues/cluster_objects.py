"""Typed objects as the watches hand them over, in a few words."""

from __future__ import annotations

from typing import Any

from kube.gateway import EventType, Listing, WatchEvent
from kube.objects.meta import convert
from kube.objects.node import Node
from kube.objects.pod import Pod
from kube.objects.podgroup import PodGroup
from kube.resources import Resource
from queues.mirror.feed import EventMessage, ListMessage
from queues.mirror.views import PriorityClassView, QueueView

CREATED = "2026-11-29T12:00:00Z"


def meta(
    name: str, version: int, *, namespace: str = "", uid: str = "", **more: Any
) -> dict[str, Any]:
    body = {
        "name": name,
        "uid": uid or f"uid-{name}",
        "resourceVersion": str(version),
        "creationTimestamp": CREATED,
        **more,
    }
    return {**body, "namespace": namespace} if namespace else body


def a_queue(
    name: str,
    version: int = 1,
    *,
    parent: str = "",
    gpu: dict[str, float] | None = None,
    **more: Any,
) -> QueueView:
    spec: dict[str, Any] = {"resources": {"gpu": gpu or {}}}
    if parent:
        spec["parentQueue"] = parent
    return convert(
        {
            "metadata": meta(name, version, **more),
            "spec": spec,
            "status": {"allocated": {"nvidia.com/gpu": "1500m", "cpu": "2", "memory": "1Gi"}},
        },
        QueueView,
    )


def a_pod(
    name: str,
    version: int = 1,
    *,
    group: str = "",
    node: str = "",
    gpus: int = 0,
    phase: str = "Pending",
    message: str = "",
    reason: str = "Unschedulable",
    namespace: str = "default",
    uid: str = "",
    gated: bool = False,
    scheduler: str = "",
    annotations: dict[str, str] | None = None,
    labels: dict[str, str] | None = None,
    spec: dict[str, Any] | None = None,
) -> Pod:
    notes = dict(annotations or {})
    if group:
        notes["pod-group-name"] = group
    requests = {"cpu": "500m", "memory": "1Gi"}
    if gpus:
        requests["nvidia.com/gpu"] = str(gpus)
    conditions = []
    if message:
        conditions.append(
            {
                "type": "PodScheduled", "status": "False", "reason": reason, "message": message,
                "lastTransitionTime": "2026-11-29T12:01:00Z",
            }
        )  # fmt: skip
    if phase == "Running":
        conditions.append(
            {"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-29T12:05:00Z"}
        )
    spec = {
        "containers": [{"name": "main", "resources": {"requests": requests}}],
        **(spec or {}),
    }
    if node:
        spec["nodeName"] = node
    if scheduler:
        spec["schedulerName"] = scheduler
    if gated:
        spec["schedulingGates"] = [{"name": "hold"}]
    return convert(
        {
            "metadata": meta(
                name, version, namespace=namespace, uid=uid, annotations=notes, labels=labels or {}
            ),
            "spec": spec,
            "status": {"phase": phase, "conditions": conditions},
        },
        Pod,
    )


def a_group(
    name: str,
    version: int = 1,
    *,
    queue: str = "team",
    min_member: int | None = None,
    namespace: str = "default",
    priority_class: str = "",
    conditions: list[dict[str, Any]] | None = None,
    annotations: dict[str, str] | None = None,
    backoff: int | None = None,
    uid: str = "",
) -> PodGroup:
    spec: dict[str, Any] = {"queue": queue, "priorityClassName": priority_class}
    if backoff is not None:
        spec["schedulingBackoff"] = backoff
    if min_member is not None:
        spec["minMember"] = min_member
    return convert(
        {
            "metadata": meta(
                name, version, namespace=namespace, uid=uid, annotations=annotations or {},
                ownerReferences=[{"kind": "Job", "name": "train", "uid": "u"}],
            ),
            "spec": spec,
            "status": {"schedulingConditions": conditions or []},
        },
        PodGroup,
    )  # fmt: skip


def a_node(
    name: str,
    version: int = 1,
    *,
    gpus: int = 8,
    ready: bool = True,
    uid: str = "",
    labels: dict[str, str] | None = None,
) -> Node:
    amounts = {"cpu": "64", "memory": "256Gi", "nvidia.com/gpu": str(gpus)}
    return convert(
        {
            "metadata": meta(
                name, version, uid=uid,
                labels={
                    "nvidia.com/gpu.product": "H100",
                    "nvidia.com/gpu.memory": "81559",
                    **(labels or {}),
                },
            ),
            "spec": {"taints": [{"key": "dedicated", "value": "ml", "effect": "NoSchedule"}]},
            "status": {
                "capacity": amounts,
                "allocatable": amounts,
                "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
            },
        },
        Node,
    )  # fmt: skip


def a_priority_class(name: str, value: int, version: int = 1) -> PriorityClassView:
    return convert({"metadata": meta(name, version), "value": value}, PriorityClassView)


def listed(resource: Resource, *items: Any, version: int = 100) -> ListMessage:
    return ListMessage(resource, Listing(items=items, resource_version=str(version)))


def added(resource: Resource, item: Any) -> EventMessage:
    return _event(resource, EventType.ADDED, item)


def modified(resource: Resource, item: Any) -> EventMessage:
    return _event(resource, EventType.MODIFIED, item)


def deleted(resource: Resource, item: Any) -> EventMessage:
    return _event(resource, EventType.DELETED, item)


def bookmark(resource: Resource, item: Any) -> EventMessage:
    return _event(resource, EventType.BOOKMARK, item)


def _event(resource: Resource, kind: EventType, item: Any) -> EventMessage:
    version = item.metadata.resource_version
    return EventMessage(resource, WatchEvent(type=kind, object=item, resource_version=version))
