"""Random clusters as documents in the form of the conformance scenarios.

Everything that runs is placed by an exact ledger, so that no cluster begins with a node or device above its
capacity. Queues may begin above their limits, as they do when a limit is lowered.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

Document = dict[str, Any]

ACTIONS = ["allocate", "consolidation", "reclaim", "preempt", "stale_gang_eviction"]
SLICE = "nvidia.com/mig-1g.5gb"
LARGE_SLICE = "nvidia.com/mig-3g.20gb"
LEVELS = ["zone", "rack"]
GB = 1_000_000_000
QUOTAS = [0, 0, 0.1, 0.3, 0.5, 1, 1, 2, 3, 4, -1]
#: Chances of what a request asks for; plain GPUs are the most frequent.
REQUESTS: list[tuple[int, Document]] = [
    (8, {"gpu": 1}),
    (4, {"gpu": 2}),
    (1, {"gpu": 4}),
    (2, {"gpu_fraction": 0.5}),
    (2, {"gpu_fraction": 0.1}),
    (2, {"gpu_fraction": 0.3}),
    (1, {"gpu_fraction": 0.29}),
    (1, {"gpu_fraction": 0.5, "gpu_devices": 2}),
    (1, {"gpu_memory_mib": 3000}),
    (1, {"gpu_memory_mib": 7000}),
    (1, {"mig": {SLICE: 1}}),
    (1, {"mig": {LARGE_SLICE: 1}}),
    (2, {}),
]


def random_document(rng: random.Random, number: int) -> Document:
    """Return a cluster with a few nodes, a tree of queues, and running, leaving and pending work."""
    nodes = [_node(rng, index) for index in range(rng.randint(1, 5))]
    queues = list(_queues(rng))
    leaves = _leaf_names(queues)
    ledger = Ledger(nodes)
    foreign = _foreign_pods(rng, ledger)
    jobs = []
    for index in range(rng.randint(2, 16)):
        jobs.append(_job(rng, f"g{index:02}", leaves))
        if rng.random() < 0.65:
            _try_to_run(rng, jobs[-1], ledger)
    return document_of(f"fuzz/{number}", nodes, queues, jobs, foreign)


def add_arrival(rng: random.Random, document: Document, number: int) -> None:
    """Add a pending pod group to a living cluster."""
    job = _job(rng, f"g{number:02}", _leaf_names(document["cluster"]["queues"]))
    document["jobs"].append(job | {"created_offset_seconds": 0})


def document_of(
    name: str,
    nodes: list[Document],
    queues: list[Document],
    jobs: list[Document],
    other_pods: list[Document] | None = None,
) -> Document:
    """Put the parts of a scenario together."""
    cluster: Document = {"nodes": nodes, "queues": queues}
    cluster["topologies"] = [{"name": "t", "levels": LEVELS}]
    cluster["other_pods"] = other_pods or []
    return {
        "schema": "kai-conformance/1",
        "id": name,
        "mode": "single_pass",
        "config": {
            "actions": ACTIONS,
            "plugins": "default",
            "default_staleness_grace_seconds": 60,
        },
        "cluster": cluster,
        "jobs": jobs,
    }


@dataclass(slots=True)
class Ledger:
    """What is left of each node while running work is placed."""

    nodes: list[Document]
    free: dict[str, dict[str, int]] = field(default_factory=dict)
    #: node -> GPU group -> what is taken of the device
    shared: dict[str, dict[str, Fraction]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for node in self.nodes:
            instances = (node.get("mig") or {}).get("instances") or {}
            self.free[node["name"]] = {
                "gpu": node["gpu"],
                "cpu_millis": node["cpu_millis"],
                "pods": node["max_pods"],
                **instances,
            }
            self.shared[node["name"]] = {}

    def place(self, node: Document, request: Document) -> list[str] | None:
        """Take room for one task; return its GPU groups, or None if the node has no room."""
        free, name = self.free[node["name"]], node["name"]
        wants = {"cpu_millis": request.get("cpu_millis", 0), "pods": 1, **request.get("mig", {})}
        wants["gpu"] = request.get("gpu", 0)
        if bool(node.get("mig")) != bool(request.get("mig")) and wants["gpu"] + len(request) > 2:
            return None
        portion = part_of_device(request, node)
        groups = self._devices(name, portion, request.get("gpu_devices", 1)) if portion else []
        if groups is None:
            return None
        opened = sum(group not in self.shared[name] for group in groups)
        wants["gpu"] += opened
        wants["pods"] += opened  # its reservation pod
        if any(free.get(kind, 0) < amount for kind, amount in wants.items()):
            return None
        for kind, amount in wants.items():
            if amount:
                free[kind] -= amount
        for group in groups:
            self.shared[name][group] = self.shared[name].get(group, Fraction(0)) + portion
        return groups

    def _devices(self, name: str, portion: Fraction, count: int) -> list[str] | None:
        if portion > 1:
            return None
        shared = self.shared[name]
        open_devices = [group for group, used in shared.items() if used + portion <= 1][:count]
        new = [f"d{len(shared) + n}" for n in range(count - len(open_devices))]
        return open_devices + new


def part_of_device(request: Document, node: Document) -> Fraction:
    """Return which part of each of its devices a task takes on a node, 0 if it shares none."""
    if request.get("gpu_fraction"):
        return Fraction(str(request["gpu_fraction"]))
    return Fraction(request.get("gpu_memory_mib", 0), node["gpu_memory_mib"])


def _node(rng: random.Random, index: int) -> Document:
    kind = rng.choice(["gpu"] * 6 + ["cpu", "mig"])
    node: Document = {
        "name": f"n{index}",
        "gpu": rng.choice([1, 2, 2, 3, 4, 8]) if kind == "gpu" else 0,
        "cpu_millis": rng.choice([4_000, 64_000, 64_000]),
        "memory_bytes": 256 * GB,
        "max_pods": rng.choice([4, 110, 110]),
        "gpu_memory_mib": rng.choice([100, 10_000, 10_000, 40_000]),
        "labels": {"zone": f"z{index // 3}", "rack": f"r{index // 2}"},
    }
    if kind == "mig":
        node["mig"] = {"strategy": "mixed", "instances": {SLICE: 4, LARGE_SLICE: 1}}
    return node


def _queues(rng: random.Random, parent: str | None = None, depth: int = 1) -> Iterator[Document]:
    for index in range(rng.randint(2, 3) if parent is None else rng.randint(1, 3)):
        name = f"{parent}-{index}" if parent else f"q{index}"
        quota = rng.choice(QUOTAS)
        queue: Document = {
            "name": name,
            "parent": parent,
            "priority": rng.choice([100, 100, 100, 90, 110]),
            "created_offset_seconds": -1000 + len(name) * 10 + index,
            "gpu": {
                "quota": quota,
                "limit": rng.choice([-1, -1, -1, max(quota, 0) + rng.choice([0, 0.3, 1, 2])]),
                "over_quota_weight": rng.choice([0, 1, 1, 2, 3]),
            },
        }
        if rng.random() < 0.15:
            queue["cpu_millis"] = {"quota": 8_000, "limit": -1, "over_quota_weight": 1}
        for kind in ("preempt", "reclaim"):
            if rng.random() < 0.1:
                queue[f"{kind}_min_runtime_seconds"] = rng.choice([30, 600])
        below = list(_queues(rng, name, depth + 1)) if depth < 3 and rng.random() < 0.4 else []
        if below and rng.random() < 0.7:
            _cover_children(queue, below)
        yield queue
        yield from below


def _cover_children(queue: Document, below: list[Document]) -> None:
    """Give a parent the quotas of its children together, as administrators do."""
    quotas = [child["gpu"]["quota"] for child in below if child["parent"] == queue["name"]]
    queue["gpu"]["quota"] = -1 if -1 in quotas else round(sum(quotas), 3)
    queue["gpu"]["limit"] = -1


def _leaf_names(queues: list[Document]) -> list[str]:
    parents = {queue["parent"] for queue in queues}
    return [queue["name"] for queue in queues if queue["name"] not in parents]


def _job(rng: random.Random, name: str, leaves: list[str]) -> Document:
    index = int(name[1:])
    priority = rng.choice([50, 50, 50, 60, 75, 100, 125])
    count = rng.choice([1, 1, 1, 2, 2, 3, 4, 6])
    chances = [chance for chance, _ in REQUESTS]
    amounts = rng.choices([request for _, request in REQUESTS], chances)[0]
    job: Document = {
        "name": name,
        "queue": rng.choice(leaves),
        "priority": priority,
        "preemptible": rng.random() < 0.9 if priority < 100 else rng.random() < 0.1,
        "created_offset_seconds": -500 + index,
        "request": {"cpu_millis": rng.choice([100, 500, 2_000]), "memory_bytes": GB, **amounts},
        "pod_group": _tree(rng, count),
        "tasks": [{"id": f"{name}-{number}", "state": "pending"} for number in range(count)],
    }
    _spread_over_subgroups(job)
    if rng.random() < 0.08:
        _keep_near_or_apart(rng, job)
    return job


def _tree(rng: random.Random, count: int) -> Document:
    minimum = count if rng.random() < 0.6 else rng.randint(0, count)
    tree: Document = {"pod_sets": [{"name": "default", "min_available": minimum}]}
    if count > 1 and rng.random() < 0.3:
        leaf_count = count // 2
        tree = {
            "min_subgroups": rng.choice([None, None, 1]),
            "pod_sets": [
                {"name": "left", "min_available": rng.choice([leaf_count, leaf_count, 0])},
                {"name": "right", "min_available": rng.choice([count - leaf_count, 1])},
            ],
        }
    if rng.random() < 0.12:
        level = rng.choice(LEVELS)
        kind = rng.choice(["required_level", "required_level", "preferred_level"])
        tree["topology"] = {"topology": "t", kind: level}
    return tree


def _spread_over_subgroups(job: Document) -> None:
    pod_sets = job["pod_group"]["pod_sets"]
    if len(pod_sets) == 2:
        for number, task in enumerate(job["tasks"]):
            task["subgroup"] = "left" if number < len(job["tasks"]) // 2 else "right"


def _keep_near_or_apart(rng: random.Random, job: Document) -> None:
    key = rng.choice(["pod_affinity", "pod_anti_affinity"])
    term = {"topology_key": rng.choice(LEVELS), "match_labels": {"app": rng.choice("xy")}}
    for task in job["tasks"]:
        task["labels"] = {"app": rng.choice("xy")}
        task[key] = [term]


def _try_to_run(rng: random.Random, job: Document, ledger: Ledger) -> None:
    """Place the tasks of a job, in one domain if it requires one; what does not fit stays pending."""
    nodes = rng.sample(ledger.nodes, len(ledger.nodes))
    level = (job["pod_group"].get("topology") or {}).get("required_level")
    if level:
        nodes = [node for node in nodes if node["labels"][level] == nodes[0]["labels"][level]]
    places = []
    saved = {name: dict(amounts) for name, amounts in ledger.free.items()}
    saved_shared = {name: dict(shares) for name, shares in ledger.shared.items()}
    for _ in job["tasks"]:
        for node in nodes:
            groups = ledger.place(node, job["request"])
            if groups is not None:
                places.append((node["name"], groups))
                break
    if len(places) < len(job["tasks"]):
        ledger.free, ledger.shared = saved, saved_shared
        return
    is_leaving = rng.random() < 0.1
    job["last_start_offset_seconds"] = -rng.choice([10, 100, 1000])
    for task, (node_name, groups) in zip(job["tasks"], places, strict=True):
        task |= {"state": "releasing" if is_leaving else "running", "node": node_name}
        if groups:
            task["gpu_groups"] = groups


def _foreign_pods(rng: random.Random, ledger: Ledger) -> list[Document]:
    pods = []
    for number in range(rng.choice([0, 0, 0, 1, 2])):
        node, request = rng.choice(ledger.nodes), {"cpu_millis": 500, "gpu": rng.choice([0, 1])}
        if ledger.place(node, request) is not None:
            pods.append({"id": f"f{number}", "node": node["name"], "request": request})
    return pods
