"""A store fed from an API server in memory, for controllers that are stepped by hand."""

from __future__ import annotations

from typing import Any

from kube.objects.cluster import PriorityClass
from kube.objects.devices import ResourceClaim
from kube.objects.meta import KubeObject
from kube.objects.node import Node
from kube.objects.pod import Pod
from kube.objects.podgroup import PodGroup
from kube.objects.queue import Queue
from kube.resources import (
    NODES,
    PODGROUPS,
    PODS,
    PRIORITY_CLASSES,
    QUEUES,
    RESOURCE_CLAIMS,
    Resource,
)
from kube.store import Store
from queues.controllers.podgroup_status import index_pods_by_group
from queues.controllers.queue_status import index_groups_by_queue
from tests.fakes.gateway import FakeGateway

KINDS: list[tuple[Resource, type[KubeObject]]] = [
    (PODS, Pod),
    (PODGROUPS, PodGroup),
    (QUEUES, Queue),
    (NODES, Node),
    (PRIORITY_CLASSES, PriorityClass),
    (RESOURCE_CLAIMS, ResourceClaim),
]


class Cluster:
    """A gateway and the store that shows what it holds after `sync`."""

    def __init__(self) -> None:
        self.gateway = FakeGateway()
        self.store = Store()
        index_pods_by_group(self.store)
        index_groups_by_queue(self.store)

    def sync(self) -> None:
        for resource, kind in KINDS:
            self.store.replace(resource, self.gateway.list(resource, as_type=kind))

    def status(self, resource: Resource, name: str, namespace: str = "") -> dict[str, Any]:
        current_status: dict[str, Any] = self.gateway.raw(resource, name, namespace).get(
            "status", {}
        )
        return current_status


def pod(name: str, group: str, phase: str = "Pending", **options: Any) -> dict[str, Any]:
    status: dict[str, Any] = {"phase": phase}
    if options.get("is_bound"):
        status["conditions"] = [{"type": "PodScheduled", "status": "True"}]
    resources = {"requests": options.get("requests", {"cpu": "1", "nvidia.com/gpu": "1"})}
    return {
        "metadata": {
            "name": name,
            "namespace": "lab",
            "annotations": {"pod-group-name": group, **options.get("annotations", {})},
        },
        "spec": {
            "schedulerName": "kai-scheduler",
            "nodeName": options.get("node", ""),
            "containers": [{"name": "c", "resources": resources}],
        },
        "status": status,
    }


def group(name: str, queue: str = "q", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "lab"}, "spec": {"queue": queue, **spec}}


def queue(name: str, parent: str = "", **quotas: float) -> dict[str, Any]:
    cells = {
        kind: {"quota": quotas.get(kind, -1), "limit": -1} for kind in ("gpu", "cpu", "memory")
    }
    return {"metadata": {"name": name}, "spec": {"parentQueue": parent, "resources": cells}}
