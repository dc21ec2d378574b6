"""Clusters on which hardly two pods ask for the same: filled from empty, and full ones on which nothing can be served.

On a full cluster each asker asks for a little less than the one before, so that a failed search says nothing about the
next one. Every search must then be refused by a proof, and not by trying what there is.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from scheduler.core.options import DEFAULT_ACTIONS
from scheduler.tools.bench.cluster import GPUS_PER_NODE, Cluster, Document

#: Of nodes, in cores.
CPUS = 96
HOST = "example.com/host"
#: How many GPUs running pods ask for, equally often.
GPUS_OF_RUNNING = (1, 1, 1, 2, 2, 4)
RUNNING_QUEUES = 4
#: A pod group with this priority is not preemptible.
FIXED_PRIORITY = 100
APART: Document = {
    "anti_affinity_labels": {"example.com/job": "apart"},
    "anti_affinity_topology_key": HOST,
}


def fill_sizes(nodes: int = 500, sizes: int = 1000) -> Document:
    """Empty nodes filled to the last GPU by one-GPU jobs of so many sizes, which differ in CPU and memory."""
    cluster = Cluster("fill_sizes", ["allocate"], nodes=nodes, sizes=sizes)
    cluster.plain_nodes(nodes)
    cluster.two_departments(nodes * GPUS_PER_NODE)
    for number in range(nodes * GPUS_PER_NODE):
        size = number % sizes
        cluster.job(
            f"job-{number}",
            f"queue-{number % 4}",
            1,
            pending=1,
            cpus=1 + size / sizes,
            memory_bytes=1_000_000_000 + 1_000_000 * size,
        )
    return cluster.document()


def unsolvable_sizes(nodes: int = 500, askers: int = 5, why: str = "shape") -> Document:
    """Build full nodes with pods of many sizes, and askers that no eviction can help; runs the whole cycle.

    shape: they ask for all GPUs of a node, and each node has a pod that must stay; cpu: the pod that must stay leaves
    too few cores; apart: they keep away from the pods that must stay; shares: on each device of theirs
    there is too little left; moves: GPUs enough are free, one on each node, but the others cannot be moved
    closer together.
    """
    actions = [str(action) for action in DEFAULT_ACTIONS]
    cluster = Cluster("unsolvable_sizes", actions, nodes=nodes, askers=askers, why=why)
    for number in range(nodes):
        cluster.node(f"node-{number}", cpus=CPUS)
        cluster.nodes[-1]["labels"] = {HOST: f"host-{number}"}
    cluster.queue("default")
    for number in range(RUNNING_QUEUES):
        cluster.queue(f"over-{number}", "default", gpus=0, weight=0)
    cluster.queue("entitled", "default", gpus=nodes * GPUS_PER_NODE, weight=0)
    fill, ask = REASONS[why]
    fill(cluster, nodes)
    for number in range(askers):
        ask(cluster, f"ask-{number}", (askers - number) / askers)
    return cluster.document()


# ------------------------------------------------------------------------------- what runs


def _fill_beside_fixed(gpus: float, cpus: float) -> Callable[[Cluster, int], None]:
    """Return what adds to each node a pod that must stay, and pods of many sizes on all its other GPUs."""

    def fill(cluster: Cluster, nodes: int) -> None:
        draw = random.Random(0)
        for node in range(nodes):
            on_node = [f"node-{node}"]
            if gpus or cpus:
                cluster.job(f"fixed-{node}", "over-0", gpus, running_on=on_node, cpus=cpus)
                cluster.jobs[-1]["priority"] = FIXED_PRIORITY
                cluster.jobs[-1]["tasks"][0] |= APART
            left = GPUS_PER_NODE - int(gpus)
            while left:
                taken = min(left, draw.choice(GPUS_OF_RUNNING))
                _run(cluster, on_node, taken)
                left -= taken

    return fill


def _fill_shares(cluster: Cluster, nodes: int) -> None:
    """Add to each device of each node a pod that must stay and holds a part, and a pod that may go."""
    for node in range(nodes):
        for device in range(GPUS_PER_NODE):
            for gpus in (0.5, 0.25):
                _run(cluster, [f"node-{node}"], gpus)
                cluster.jobs[-1]["tasks"][0]["gpu_groups"] = [f"node-{node}-gpu-{device}"]
                if gpus == 0.5:
                    cluster.jobs[-1]["priority"] = FIXED_PRIORITY


def _fill_unmovable(cluster: Cluster, nodes: int) -> None:
    """Add to each node a pod that leaves one GPU free, which is too few for any other pod to move there."""
    for node in range(nodes):
        _run(cluster, [f"node-{node}"], 5)
        _run(cluster, [f"node-{node}"], 2)


def _run(cluster: Cluster, on_node: list[str], gpus: float) -> None:
    """Add a running pod of a size of its own."""
    number = len(cluster.jobs)
    cluster.job(
        f"run-{number}",
        f"over-{number % RUNNING_QUEUES}",
        gpus,
        running_on=on_node,
        cpus=1 + (number % 1000) / 1000,
        memory_bytes=1_000_000_000 + 100_000 * (number % 997),
    )


# ------------------------------------------------------------------------------ who asks


def _ask(
    queue: str, gpus: float, cpus: float = 1, task: Document | None = None
) -> Callable[[Cluster, str, float], None]:
    """Return what adds an asker, which asks for up to one core more than `cpus`."""

    def ask(cluster: Cluster, name: str, more_cpus: float) -> None:
        cluster.job(name, queue, gpus, pending=1, cpus=cpus + more_cpus, task=task)

    return ask


#: Why nobody can be served -> what adds the running pods, and what adds an asker.
REASONS: dict[str, tuple[Callable[[Cluster, int], None], Callable[[Cluster, str, float], None]]] = {
    "shape": (_fill_beside_fixed(gpus=1, cpus=1), _ask("entitled", 8)),
    "cpu": (_fill_beside_fixed(gpus=0, cpus=60), _ask("entitled", 2, cpus=40)),
    "apart": (_fill_beside_fixed(gpus=0, cpus=1), _ask("entitled", 2, task=APART)),
    "shares": (_fill_shares, _ask("entitled", 0.75)),
    "moves": (_fill_unmovable, _ask("over-0", 8)),
}
