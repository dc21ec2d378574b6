"""Topologies: the levels of a cluster's network, widest first, and NUMA zones of nodes."""

from __future__ import annotations

from kube.objects.meta import KubeObject, KubeStruct
from kube.objects.pod import Quantity


class TopologyLevel(KubeStruct, frozen=True, kw_only=True):
    node_label: str = ""
    alias: str = ""


class TopologySpec(KubeStruct, frozen=True, kw_only=True):
    levels: tuple[TopologyLevel, ...] = ()


class Topology(KubeObject, frozen=True, kw_only=True):
    spec: TopologySpec = TopologySpec()


class ZoneResource(KubeStruct, frozen=True, kw_only=True):
    name: str = ""
    capacity: Quantity = "0"
    allocatable: Quantity = "0"
    available: Quantity = "0"


class ZoneCost(KubeStruct, frozen=True, kw_only=True):
    name: str = ""
    value: int = 0


class Zone(KubeStruct, frozen=True, kw_only=True):
    name: str = ""
    type: str = ""
    parent: str = ""
    resources: tuple[ZoneResource, ...] = ()
    costs: tuple[ZoneCost, ...] = ()


class TopologyAttribute(KubeStruct, frozen=True, kw_only=True):
    name: str = ""
    value: str = ""


class NodeResourceTopology(KubeObject, frozen=True, kw_only=True):
    topology_policies: tuple[str, ...] = ()
    attributes: tuple[TopologyAttribute, ...] = ()
    zones: tuple[Zone, ...] = ()
