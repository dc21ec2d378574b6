"""Nodes and the GPUs on them."""

from __future__ import annotations

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from kaiweb.api.base import View, filtered, words
from kaiweb.api.errors import Problem, bad_parameter
from kaiweb.api.http import pagination, parameters
from kaiweb.api.schema import nodes as schema
from kaiweb.items import nodes as items
from queues.models import Node

SORTING = pagination.Sorting(
    key="name", columns={"name": "name", "createdAt": "created_at"}, default="name"
)
STATES = ("free", "whole", "shared", "reserved", "unhealthy")


class Nodes(View):
    """The collection."""

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
        return pagination.answer(request, rows, SORTING, items.items_of)


class NodeDetail(View):
    """One node."""

    @extend_schema(operation_id="getNode", responses=schema.Node)
    def get(self, request: Request, name: str) -> Response:
        """Return the node with its GPU cells."""
        row = Node.objects.filter(name=name).first()
        if row is None:
            raise Problem("not-found", f"node '{name}' does not exist")
        return Response(items.items_of([row])[0], headers={"ETag": f'W/"{row.version}"'})


class Gpus(View):
    """All devices, flat."""

    accepts: ClassVar = {"get": (*pagination.PARAMETERS, "node", "model", "state")}
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

        def cells(page: Any) -> list[dict[str, Any]]:
            return [
                {"node": node["name"], "model": node["model"], **cell}
                for node in items.items_of(page)
                for cell in node["devices"]
                if not states or cell["state"] in states
            ]

        return pagination.answer(request, rows, SORTING, cells)
