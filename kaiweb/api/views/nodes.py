"""Nodes and the GPUs on them, and another attempt for the binds that failed on a node."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, ClassVar

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from kaiweb.api.base import Shows, View, caller, caller_visibility, filtered, flag, words
from kaiweb.api.errors import Problem, bad_parameter
from kaiweb.api.http import pagination, parameters
from kaiweb.api.schema import details
from kaiweb.api.schema import nodes as schema
from kaiweb.api.writes import write_request
from kaiweb.items import nodes as items
from kaiweb.items.masks import masked_node
from kaiweb.items.workloads import failed_binds
from kaiweb.utilisation.current import device_rows
from kube.keys import BINDS_RESET_AT
from kube.values.times import format_time
from queues import selectors
from queues.cluster import gateway
from queues.editing.workload_writes import annotate
from queues.models import AuditAction, Node, Pod, PodGroup
from queues.tree import hierarchy

SORTING = pagination.Sorting(
    key="name", columns={"name": "name", "createdAt": "created_at"}, default="name"
)
STATES = ("free", "whole", "shared", "reserved", "unhealthy")


class Nodes(View):
    """The collection."""

    shows = Shows.ITSELF
    accepts: ClassVar = {"get": (*pagination.PARAMETERS, "pool", "model", "q")}
    repeatable: ClassVar = frozenset({"pool", "model"})

    @extend_schema(
        operation_id="listNodes", parameters=parameters.NODE_FILTERS, responses=schema.NodeList
    )
    def get(self, request: Request) -> Response:
        """List nodes with their GPU cells."""
        rows = Node.objects.all()
        rows = filtered(request, rows, ("pool", "model"))
        if request.query_params.get("q"):
            rows = rows.filter(name__icontains=request.query_params["q"])
        return pagination.answer(request, rows, SORTING, lambda page: _items(request, page))


class NodeDetail(View):
    """One node."""

    shows = Shows.ITSELF

    @extend_schema(operation_id="getNode", responses=schema.NodeDetail)
    def get(self, request: Request, name: str) -> Response:
        """Return the node with its GPU cells and its labels."""
        row = Node.objects.filter(name=name).first()
        if row is None:
            raise Problem("not-found", f"node '{name}' does not exist")
        item = {**_items(request, [row])[0], "labels": row.labels}
        return Response(item)


class NodePods(View):
    """The pods of one node."""

    shows = Shows.ITSELF
    accepts: ClassVar = {"get": ()}

    @extend_schema(operation_id="listNodePods", responses=details.NodePodList)
    def get(self, request: Request, name: str) -> Response:
        """List the pods on the node that have not finished, those with most GPUs first."""
        if not Node.objects.filter(name=name).exists():
            raise Problem("not-found", f"node '{name}' does not exist")
        visibility = caller_visibility(request)
        pods = [pod for pod in items.pods_of(name) if visibility.shows(pod["queue"])]
        return Response({"items": pods})


def _items(request: Request, rows: Sequence[Node]) -> list[dict[str, Any]]:
    visibility = caller_visibility(request)
    return [masked_node(item, visibility) for item in items.items_of(rows)]


class RetryBinds(View):
    """Another attempt for the pods that failed on a node.

    A node rests because of the failed binds of pods. They are forgotten with the pod groups of these pods, by the
    annotation that also resets one workload; the node itself is not written.
    """

    accepts: ClassVar = {"post": ("dryRun",)}

    @extend_schema(
        operation_id="retryNodeBinds",
        request=None,
        parameters=[parameters.ONLY_DRY_RUN],
        responses=schema.NodeRetried,
    )
    def post(self, request: Request, name: str) -> Response:
        """Forget the failed binds of pods that failed on this node only: they are tried again, also here.

        The caller must be allowed to act on each of these workloads.
        """
        if not caller(request).may_write_workloads:
            raise Problem("forbidden", "you may not act on workloads")
        if not Node.objects.filter(name=name).exists():
            raise Problem("not-found", f"node '{name}' does not exist")
        groups = _groups_blaming(name)
        _require_rights(request, groups)
        annotations = {BINDS_RESET_AT: format_time(timezone.now())}
        for group in groups:
            annotate(gateway(), group, AuditAction.RETRY_BIND, annotations, write_request(request))
        return Response({"name": name, "workloads": [group.key for group in groups]})


def _groups_blaming(node: str) -> list[PodGroup]:
    """Return the pod groups with waiting pods that failed on this node and on no other."""
    pods_by_group: dict[str, list[Pod]] = defaultdict(list)
    for pod in Pod.objects.filter(node="").exclude(bind_failures={}).exclude(group=""):
        if pod.bind_failures["nodes"] == [node]:
            pods_by_group[pod.group].append(pod)
    groups = PodGroup.objects.filter(key__in=pods_by_group, is_lone_pod=False).order_by("key")
    return [
        group
        for group in groups
        if any(failed_binds(pod, group.binds_reset_at) for pod in pods_by_group[group.key])
    ]


def _require_rights(request: Request, groups: list[PodGroup]) -> None:
    tree = selectors.tree()
    for group in groups:
        if not caller(request).may_act_on_work_in(hierarchy.ancestors(tree, group.queue)):
            raise Problem("forbidden", "you may not act on all workloads whose pods failed on it")


class Gpus(View):
    """All devices, flat."""

    shows = Shows.ITSELF
    accepts: ClassVar = {"get": (*pagination.PARAMETERS, "node", "model", "state", "idle")}
    repeatable: ClassVar = frozenset({"node", "model", "state"})

    @extend_schema(
        operation_id="listGpus", parameters=parameters.GPU_FILTERS, responses=schema.GpuList
    )
    def get(self, request: Request) -> Response:
        """List devices; a page ends with a whole node, `limit` counts nodes."""
        rows = Node.objects.filter(gpus__gt=0)
        names, models, states = (words(request, name) for name in ("node", "model", "state"))
        unknown = sorted(set(states) - set(STATES))
        if unknown:
            raise bad_parameter("state", f"expected {', '.join(STATES)}", unknown[0], [*STATES])
        if names:
            rows = rows.filter(name__in=names)
        if models:
            rows = rows.filter(model__in=models)

        is_idle = flag(request, "idle")
        if is_idle:
            idle = device_rows(timezone.now()).filter(idle_since__isnull=False)
            rows = rows.filter(name__in=idle.values("node"))

        def cells(page: Any) -> list[dict[str, Any]]:
            return [
                {"node": node["name"], "model": node["model"], **cell}
                for node in _items(request, page)
                for cell in node["devices"]
                if not states or cell["state"] in states
                if not is_idle or cell["idleSince"] is not None
            ]

        return pagination.answer(request, rows, SORTING, cells)


class GpuDetail(View):
    """One device."""

    shows = Shows.ITSELF

    @extend_schema(operation_id="getGpu", responses=schema.Gpu)
    def get(self, request: Request, node: str, index: int) -> Response:
        """Return the device of a node by its number, from 0."""
        row = Node.objects.filter(name=node).first()
        devices = _items(request, [row])[0]["devices"] if row is not None else []
        if row is None or index >= len(devices):
            raise Problem("not-found", f"node '{node}' has no GPU {index}")
        cell = {"node": node, "model": row.model, **devices[index]}
        return Response(cell)
