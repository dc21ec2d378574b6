"""Topologies: the levels of the network, and where free GPUs and workloads are in them."""

from __future__ import annotations

from typing import ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from kaiweb.api.base import Shows, View
from kaiweb.api.errors import Problem
from kaiweb.api.schema import details as schema
from kaiweb.items.topologies import topology_item
from kube.errors import NotFoundError
from kube.objects.topology import Topology
from kube.resources import TOPOLOGIES
from queues.cluster import gateway
from queues.tree.shape import shown


class Topologies(View):
    """The collection."""

    shows = Shows.ITSELF

    @extend_schema(operation_id="listTopologies", responses=schema.TopologyList)
    def get(self, request: Request) -> Response:
        """List the topologies of the cluster, as it has them now."""
        try:
            topologies = gateway().list(TOPOLOGIES, as_type=Topology).items
        except NotFoundError:  # a cluster without the custom resource
            topologies = []
        items = [
            {
                "name": topology.metadata.name,
                "levels": [level.node_label for level in topology.spec.levels],
            }
            for topology in sorted(topologies, key=lambda each: each.metadata.name)
        ]
        return Response({"items": items})


class TopologyDetail(View):
    """One topology."""

    accepts: ClassVar = {"get": ()}

    @extend_schema(operation_id="getTopology", responses=schema.Topology)
    def get(self, request: Request, name: str) -> Response:
        """Return the domains of each level with their GPUs, and the workloads placed across them."""
        try:
            # Read from the list, because a name from an address must not become part of a request to the cluster.
            topologies = gateway().list(TOPOLOGIES, as_type=Topology).items
        except NotFoundError:
            topologies = []
        for topology in topologies:
            if topology.metadata.name == name:
                return Response(topology_item(topology))
        raise Problem("not-found", f"topology '{shown(name)}' does not exist")
