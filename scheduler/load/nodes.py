"""Convert nodes: allocatable amounts, taints, conditions, GPUs and NUMA zones."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from kube.keys import MIG_PREFIX, NODE_GPU_COUNT, NODE_GPU_MEMORY, NODE_MIG_STRATEGY
from kube.objects.node import Node
from kube.objects.topology import NodeResourceTopology, Zone
from kube.process.set_aside import SetAside
from kube.values.numbers import MAX_INT32, int_or_none
from scheduler.core.cluster.inputs import (
    GPU,
    UNKNOWN_GPU_MEMORY_MIB,
    NodeInput,
    NumaTopology,
    NumaZone,
)
from scheduler.load import terms
from scheduler.load.changes import same_or_new
from scheduler.load.requests import amounts_of
from scheduler.settings.params import ShardParams

PRESSURES = ("MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")
_MIB = 1_048_576
# Eighteen digits are more zones than any node has, and cheap to compare.
_LAST_DIGITS = re.compile(r"[0-9]{1,18}$")
_POLICIES = ("none", "best-effort", "restricted", "single-numa-node")


@dataclass(slots=True)
class NodeBuilder:
    """Converts nodes and caches those that did not change."""

    params: ShardParams
    aside: SetAside = field(default_factory=lambda: SetAside("snapshot"))
    #: Node name -> the node, its DRA GPUs and topology of the last call, and their result.
    _cache: dict[str, tuple[Node, float, NodeResourceTopology | None, NodeInput]] = field(
        default_factory=dict
    )
    #: Node name -> the node, and its form that takes no new pods.
    _closed: dict[str, tuple[NodeInput, NodeInput]] = field(default_factory=dict)
    _result: tuple[NodeInput, ...] = ()

    def nodes(
        self,
        nodes: Mapping[str, Node],
        dra_gpus: Mapping[str, float],
        zones: Mapping[str, NodeResourceTopology],
    ) -> tuple[NodeInput, ...]:
        """Return the nodes of the shard, sorted by name; those that did not change are the same objects.

        Parameters
        ----------
        dra_gpus : GPUs published through resource slices, by node
        zones : node resource topologies, by node
        """
        previous, self._cache = self._cache, {}
        inputs = []
        for name in sorted(nodes):
            node = nodes[name]
            if not self._is_ours(node):
                continue
            published, topology = dra_gpus.get(name, 0.0), zones.get(name)
            entry = previous.get(name)
            if (
                entry is None
                or entry[0] is not node
                or entry[1] != published
                or entry[2] is not topology
            ):
                node_input = self.aside.read(
                    "Node", node, partial(self._make, dra_gpus=published, topology=topology)
                )
                if node_input is None:
                    continue
                # Most changes of a node are signs of life, which change nothing here.
                if entry is not None and entry[3] == node_input:
                    node_input = entry[3]
                entry = (node, published, topology, node_input)
            self._cache[name] = entry
            inputs.append(entry[3])
        return tuple(inputs)

    def closed(self, nodes: tuple[NodeInput, ...], names: set[str]) -> tuple[NodeInput, ...]:
        """Return the nodes, the named ones unschedulable for new pods; the same tuple as before if none changed."""
        if names and not names.isdisjoint(node.name for node in nodes):
            nodes = tuple([self._close(node) if node.name in names else node for node in nodes])
        self._result = same_or_new(self._result, nodes)
        return self._result

    def _close(self, node: NodeInput) -> NodeInput:
        entry = self._closed.get(node.name)
        if entry is None or entry[0] is not node:
            entry = self._closed[node.name] = (node, replace(node, unschedulable=True))
        return entry[1]

    def _is_ours(self, node: Node) -> bool:
        labels = node.metadata.labels
        if not self.params.owns(labels):
            return False
        if not self.params.restrict_node_scheduling:
            return True
        keys = (self.params.cpu_worker_label_key, self.params.gpu_worker_label_key)
        return any(key in labels for key in keys)

    def _make(
        self, node: Node, dra_gpus: float, topology: NodeResourceTopology | None
    ) -> NodeInput:
        labels = node.metadata.labels
        allocatable = amounts_of(node.status.allocatable)
        if dra_gpus:
            allocatable[GPU] = allocatable.get(GPU, 0.0) + dra_gpus
        memory_mib = gpu_memory_mib(labels.get(NODE_GPU_MEMORY, ""))
        count = labels.get(NODE_GPU_COUNT, "")
        strategy = labels.get(NODE_MIG_STRATEGY, "")
        return NodeInput(
            name=node.metadata.name,
            labels=labels,
            allocatable=allocatable,
            taints=terms.taints(node.spec.taints),
            unschedulable=node.spec.unschedulable,
            ready=not any(
                item.type == "Ready" and item.status != "True" for item in node.status.conditions
            ),
            pressures=tuple(
                item.type
                for item in node.status.conditions
                if item.type in PRESSURES and item.status != "False"
            ),
            gpu_memory_mib=UNKNOWN_GPU_MEMORY_MIB if memory_mib is None else memory_mib,
            gpu_memory_known=memory_mib is not None,
            gpu_count_label=int_or_none(count, smallest=0, largest=MAX_INT32),
            dra_gpus=dra_gpus,
            mig_enabled=self._has_mig(labels, allocatable),
            mig_strategy=strategy if strategy in ("single", "mixed") else "none",
            is_gpu_worker=self.params.gpu_worker_label_key in labels,
            is_cpu_worker=self.params.cpu_worker_label_key in labels,
            numa=self.aside.read("NodeResourceTopology", topology, numa_topology)
            if topology is not None
            else None,
        )

    def _has_mig(self, labels: Mapping[str, str], allocatable: Mapping[str, float]) -> bool:
        stated = labels.get(self.params.mig_label_key)
        if stated is not None:
            return stated.lower() in ("true", "1", "t")
        return any(name.startswith(MIG_PREFIX) for name in allocatable)


def gpu_memory_mib(label: str) -> int | None:
    """Return the memory of one GPU, floored to a multiple of 100 MiB; None if the label is unusable.

    Large numbers are bytes: some label writers use them.
    """
    value = int_or_none(label, smallest=1)
    if value is None:
        return None
    mib = value // _MIB if value >= _MIB else value
    return mib // 100 * 100


def numa_topology(topology: NodeResourceTopology) -> NumaTopology:
    """Return the zones of a node in order of their number, with its topology manager's policy."""
    attributes = {item.name: item.value for item in topology.attributes}
    policy = attributes.get("topologyManagerPolicy", "")
    scope = attributes.get("topologyManagerScope", "")
    if policy not in _POLICIES and topology.topology_policies:
        policy, scope = _old_policy(topology.topology_policies[0])
    return NumaTopology(
        policy=policy if policy in _POLICIES else "none",
        scope=scope if scope in ("container", "pod") else "container",
        zones=tuple(
            NumaZone(
                zone=zone.name,
                allocatable=amounts_of({item.name: item.allocatable for item in zone.resources}),
                available=amounts_of({item.name: item.available for item in zone.resources}),
            )
            for zone in sorted(topology.zones, key=_zone_order)
            if zone.type == "Node"
        ),
    )


def _old_policy(combined: str) -> tuple[str, str]:
    """Split the deprecated field, e.g. SingleNUMANodePodLevel."""
    scope = "pod" if combined.endswith("PodLevel") else "container"
    stem = combined.removesuffix("PodLevel").removesuffix("ContainerLevel")
    policies = {
        "SingleNUMANode": "single-numa-node",
        "Restricted": "restricted",
        "BestEffort": "best-effort",
    }
    return policies.get(stem, "none"), scope


def _zone_order(zone: Zone) -> tuple[int, int, str]:
    number = _LAST_DIGITS.search(zone.name)
    return (0, int(number[0]), zone.name) if number else (1, 0, zone.name)
