"""Objects as the cluster has them, and the events about a workload."""

from __future__ import annotations

from typing import Any, ClassVar

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from kaiweb.api.base import Shows, View, flag
from kaiweb.api.errors import Problem
from kaiweb.api.http import parameters
from kaiweb.api.http.renderers import OrjsonRenderer, YamlRenderer
from kaiweb.api.schema import details as schema
from kaiweb.api.views.workloads import find
from kube.errors import NotFoundError
from kube.gateway import Selectors
from kube.resources import EVENTS, NODES, PODGROUPS, PODS, QUEUES, Resource
from queues.cluster import gateway
from queues.mirror.lone_pods import pod_of
from queues.models import Node, Pod, PodGroup, Queue
from queues.tree.shape import shown

#: Events of so many pods of a workload are read, because each needs a request to the cluster.
PODS_WITH_EVENTS = 10
LISTED_EVENTS = 200

ANSWERS = {
    (200, "application/json"): OpenApiTypes.OBJECT,
    (200, "application/yaml"): OpenApiTypes.STR,
}


class _Manifest(View):
    """The object itself, in JSON or YAML."""

    renderer_classes = (OrjsonRenderer, YamlRenderer)
    accepts: ClassVar = {"get": ("managedFields",)}

    def answer(
        self, request: Request, resource: Resource, name: str, namespace: str = ""
    ) -> Response:
        try:
            body: dict[str, Any] = gateway().get(resource, name, as_type=dict, namespace=namespace)
        except NotFoundError as error:
            raise Problem("not-found", str(error)) from error
        if not flag(request, "managedFields"):
            body.get("metadata", {}).pop("managedFields", None)
        return Response({"apiVersion": resource.api_version, "kind": resource.kind, **body})

    def answer_mirrored(
        self, request: Request, model: type[Node | Queue], resource: Resource, name: str
    ) -> Response:
        """Answer with an object that the mirror has: a name from an address must not reach the cluster."""
        if not model.objects.filter(name=name).exists():
            kind = resource.kind.lower()
            raise Problem("not-found", f"{kind} '{shown(name)}' does not exist")
        return self.answer(request, resource, name)


class QueueManifest(_Manifest):
    """A queue."""

    shows = Shows.QUEUE

    @extend_schema(
        operation_id="getQueueYaml", parameters=[parameters.MANAGED_FIELDS], responses=ANSWERS
    )
    def get(self, request: Request, name: str) -> Response:
        """Return the Queue object as the cluster has it now."""
        return self.answer_mirrored(request, Queue, QUEUES, name)


class NodeManifest(_Manifest):
    """A node."""

    shows = Shows.ITSELF

    @extend_schema(
        operation_id="getNodeYaml", parameters=[parameters.MANAGED_FIELDS], responses=ANSWERS
    )
    def get(self, request: Request, name: str) -> Response:
        """Return the Node object as the cluster has it now."""
        return self.answer_mirrored(request, Node, NODES, name)


class WorkloadManifest(_Manifest):
    """A workload."""

    shows = Shows.WORKLOAD

    @extend_schema(
        operation_id="getWorkloadYaml", parameters=[parameters.MANAGED_FIELDS], responses=ANSWERS
    )
    def get(self, request: Request, namespace: str, name: str) -> Response:
        """Return the PodGroup object as the cluster has it now, or the pod if it has no pod group."""
        row = find(namespace, name)
        resource, object_name = _object_of(row)
        return self.answer(request, resource, object_name, row.namespace)


class WorkloadEvents(View):
    """What happened to a workload."""

    shows = Shows.WORKLOAD
    accepts: ClassVar = {"get": ()}

    @extend_schema(operation_id="listWorkloadEvents", responses=schema.EventList)
    def get(self, request: Request, namespace: str, name: str) -> Response:
        """List the cluster's events about the pod group and its first pods, newest first."""
        return Response({"items": events_about(find(namespace, name))})


def events_about(row: PodGroup) -> list[dict[str, Any]]:
    """Return the newest events of the cluster about a pod group and its first pods, newest first."""
    events = [event for kind, name in _subjects(row) for event in _events(row, kind, name)]
    events.sort(key=lambda event: event["lastSeen"] or "", reverse=True)
    return events[:LISTED_EVENTS]


def _object_of(row: PodGroup) -> tuple[Resource, str]:
    if row.is_lone_pod:
        return PODS, pod_of(row).partition("/")[2]
    return PODGROUPS, row.name


def _subjects(row: PodGroup) -> list[tuple[str, str]]:
    resource, name = _object_of(row)
    pods = Pod.objects.filter(group=row.key).order_by("created_at", "key")[:PODS_WITH_EVENTS]
    return [(resource.kind, name), *(("Pod", pod.name) for pod in pods)]


def _events(row: PodGroup, kind: str, name: str) -> list[dict[str, Any]]:
    selectors = Selectors(fields=f"involvedObject.kind={kind},involvedObject.name={name}")
    bodies = gateway().list(EVENTS, as_type=dict, namespace=row.namespace, selectors=selectors)
    return [
        {
            "about": f"{kind} {name}",
            "type": str(body.get("type", "")),
            "reason": str(body.get("reason", "")),
            "text": str(body.get("message", "")),
            "count": int(body.get("count") or 1),
            "firstSeen": body.get("firstTimestamp") or body.get("eventTime"),
            "lastSeen": body.get("lastTimestamp")
            or body.get("eventTime")
            or body.get("metadata", {}).get("creationTimestamp"),
        }
        for body in bodies.items
    ]
