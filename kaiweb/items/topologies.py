"""Topologies: the domains of each level with their free GPUs, and how far each workload is spread over them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from kaiweb.items.amounts import rounded
from kube.objects.pod import FINISHED_PHASES
from kube.objects.topology import Topology
from queues.models import Node, Pod, PodGroup

#: How many workloads are listed, those with most GPUs first.
LISTED_WORKLOADS = 200


@dataclass(slots=True)
class _Domain:
    """One domain of one level; its id has the values of all levels down to its own."""

    level: int
    path: tuple[str, ...]
    nodes: list[Node] = field(default_factory=list)

    def as_item(self, workloads: int) -> dict[str, Any]:
        usable = [node for node in self.nodes if node.is_ready and not node.is_cordoned]
        free_by_node = [max(0.0, node.gpus_healthy - node.used_gpu) for node in usable]
        return {
            "id": "/".join(self.path),
            "parent": "/".join(self.path[:-1]) or None,
            "level": self.level,
            "name": self.path[-1],
            "nodes": [node.name for node in self.nodes],
            "gpuTotal": sum(node.gpus for node in self.nodes),
            "gpuAllocated": rounded(sum(node.used_gpu for node in self.nodes)),
            "gpuFree": rounded(sum(free_by_node)),
            # A gang of whole GPUs can use the whole free devices of each node.
            "largestGang": sum(int(free) for free in free_by_node),
            "workloads": workloads,
        }


def topology_item(topology: Topology) -> dict[str, Any]:
    """Return the topology with all domains, widest level first, and the workloads placed in them."""
    labels = [level.node_label for level in topology.spec.levels]
    nodes = list(Node.objects.order_by("name"))
    inside = [node for node in nodes if all(label in node.labels for label in labels)]
    path_of = {node.name: tuple(str(node.labels[label]) for label in labels) for node in inside}
    domains: dict[tuple[str, ...], _Domain] = {}
    for node in inside:
        path = path_of[node.name]
        for level in range(len(labels)):
            key = path[: level + 1]
            domains.setdefault(key, _Domain(level, key)).nodes.append(node)
    nodes_of = _nodes_of_workloads(path_of)
    counts: dict[tuple[str, ...], int] = defaultdict(int)
    for names in nodes_of.values():
        for key in {path_of[name][: level + 1] for name in names for level in range(len(labels))}:
            counts[key] += 1
    return {
        "name": topology.metadata.name,
        "levels": [
            {"label": level.node_label, "name": level.alias or level.node_label.rpartition("/")[2]}
            for level in topology.spec.levels
        ],
        "domains": [
            domains[key].as_item(counts[key]) for key in sorted(domains, key=lambda k: (len(k), k))
        ],
        "outside": [node.name for node in nodes if node.name not in path_of],
        "workloads": [
            _placed_item(row, [path_of[name] for name in sorted(nodes_of[row.key])], len(labels))
            for row in _largest(nodes_of)
        ],
    }


def _nodes_of_workloads(path_of: Mapping[str, tuple[str, ...]]) -> dict[str, set[str]]:
    """Return the workloads with GPUs on nodes of the topology, with these nodes."""
    pods = Pod.objects.exclude(node="").exclude(phase__in=FINISHED_PHASES).filter(gpu__gt=0)
    nodes_of: dict[str, set[str]] = defaultdict(set)
    for group, node in pods.exclude(group="").values_list("group", "node"):
        if node in path_of:
            nodes_of[group].add(node)
    return nodes_of


def _largest(keys: Container[str]) -> Iterator[PodGroup]:
    """Return the largest of these workloads."""
    rows = PodGroup.objects.filter(gpu__gt=0).order_by("-gpu", "key")
    return islice((row for row in rows.iterator() if row.key in keys), LISTED_WORKLOADS)


def _placed_item(row: PodGroup, paths: Sequence[tuple[str, ...]], levels: int) -> dict[str, Any]:
    return {
        "workload": row.key,
        "owner": row.owner_name,
        "queue": row.queue,
        "gpu": rounded(row.gpu),
        "nodes": len(paths),
        "domains": [
            sorted({"/".join(path[: level + 1]) for path in paths}) for level in range(levels)
        ],
    }
