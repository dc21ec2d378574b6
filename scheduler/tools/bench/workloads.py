"""Clusters made to measure one thing each, with an outcome that is known beforehand.

A workload is a plain document (nodes, queues, jobs with their tasks, actions), so that it can be written
to a file, read from one, and given to another scheduler. Jobs and queues are listed oldest first.
"""

from __future__ import annotations

from collections.abc import Callable

from scheduler.core.options import DEFAULT_ACTIONS
from scheduler.tools.bench.cluster import GPUS_PER_NODE, Cluster, Document
from scheduler.tools.bench.many_sizes import fill_sizes, unsolvable_sizes

RACK = "example.com/rack"
WHOLE_CYCLE = [str(action) for action in DEFAULT_ACTIONS]


# ------------------------------------------------------------------------------- the small ones


def small_allocate(nodes: int = 100, jobs: int = 500) -> Document:
    """Empty nodes, fewer one-GPU jobs than GPUs, dealt to four queues in turn."""
    cluster = Cluster("small_allocate", ["allocate"], nodes=nodes, jobs=jobs)
    cluster.plain_nodes(nodes)
    cluster.two_departments(nodes * GPUS_PER_NODE)
    for number in range(jobs):
        cluster.job(f"job-{number}", f"queue-{number % 4}", 1, pending=1)
    return cluster.document()


def small_running(nodes: int = 50, jobs: int = 200) -> Document:
    """Everything runs, nothing is pending: an idle pass of reclaim."""
    cluster = Cluster("small_running", ["reclaim"], nodes=nodes, jobs=jobs)
    cluster.plain_nodes(nodes)
    cluster.two_departments(nodes * GPUS_PER_NODE)
    for number in range(jobs):
        cluster.job(
            f"job-{number}", f"queue-{number % 4}", 1, running_on=[f"node-{number % nodes}"]
        )
    return cluster.document()


def small_mixed(nodes: int = 100, jobs: int = 500, actions: str = "cycle") -> Document:
    """Every other job runs, the rest are pending and fit; the whole cycle, or actions a+b."""
    names = WHOLE_CYCLE if actions == "cycle" else actions.split("+")
    cluster = Cluster("small_mixed", names, nodes=nodes, jobs=jobs)
    cluster.plain_nodes(nodes)
    cluster.two_departments(nodes * GPUS_PER_NODE)
    for number in range(jobs):
        queue = f"queue-{number % 4}"
        if number % 2:
            cluster.job(f"job-{number}", queue, 1, pending=1)
        else:
            cluster.job(f"job-{number}", queue, 1, running_on=[f"node-{number % nodes}"])
    return cluster.document()


def small_many_queues(nodes: int = 50, jobs: int = 200, queues: int = 20) -> Document:
    """As small_allocate with more queues, about four in a department."""
    cluster = Cluster("small_many_queues", ["allocate"], nodes=nodes, jobs=jobs, queues=queues)
    cluster.plain_nodes(nodes)
    gpus = nodes * GPUS_PER_NODE
    departments = max(1, (queues + 3) // 4)
    for number in range(departments):
        cluster.queue(f"dept-{number}", gpus=gpus / departments, weight=gpus / departments)
    for number in range(queues):
        cluster.queue(f"queue-{number}", f"dept-{number % departments}", gpus=gpus / queues)
    for number in range(jobs):
        cluster.job(f"job-{number}", f"queue-{number % queues}", 1, pending=1)
    return cluster.document()


def small_gangs(nodes: int = 50, jobs: int = 100, tasks: int = 4) -> Document:
    """Small gangs of one-GPU pods that fill the nodes exactly."""
    cluster = Cluster("small_gangs", ["allocate"], nodes=nodes, jobs=jobs, tasks=tasks)
    cluster.plain_nodes(nodes)
    cluster.two_departments(nodes * GPUS_PER_NODE)
    for number in range(jobs):
        cluster.job(f"job-{number}", f"queue-{number % 4}", 1, pending=tasks)
    return cluster.document()


# -------------------------------------------------------------------------------------- allocate


def fill(nodes: int = 500) -> Document:
    """Empty nodes filled to the last GPU by one-pod one-GPU jobs of four queues."""
    cluster = Cluster("fill", ["allocate"], nodes=nodes)
    cluster.plain_nodes(nodes)
    cluster.two_departments(nodes * GPUS_PER_NODE)
    for number in range(nodes * GPUS_PER_NODE):
        cluster.job(f"job-{number}", f"queue-{number % 4}", 1, pending=1)
    return cluster.document()


def fill_fractions(nodes: int = 100, fraction: float = 0.5) -> Document:
    """Empty nodes filled by pods that ask for a part of one GPU."""
    cluster = Cluster("fill_fractions", ["allocate"], nodes=nodes, fraction=fraction)
    cluster.plain_nodes(nodes)
    cluster.two_departments(nodes * GPUS_PER_NODE)
    for number in range(nodes * int(GPUS_PER_NODE / fraction)):
        queue = f"queue-{number % 4}"
        cluster.job(f"job-{number}", queue, fraction, pending=1, memory_bytes=250_000_000)
    return cluster.document()


def full_cluster_pending(nodes: int = 500, pending: int = 400) -> Document:
    """Build a full cluster with a backlog that cannot run, so that allocate only searches."""
    cluster = Cluster("full_cluster_pending", ["allocate"], nodes=nodes, pending=pending)
    cluster.plain_nodes(nodes)
    gpus = nodes * GPUS_PER_NODE
    cluster.queue("default")
    cluster.queue("queue-0", "default", gpus=gpus)
    cluster.fill_with_running("queue-0", gpus, nodes, "running")
    for number in range(pending):
        cluster.job(f"pending-{number}", "queue-0", 1, pending=1)
    return cluster.document()


def gang_fill(nodes: int = 500, pods: int = 64, gpus: int = 8, jobs: int = 7) -> Document:
    """Gangs whose pods take a whole node each; one gang too many must leave no trace."""
    cluster = Cluster("gang_fill", ["allocate"], nodes=nodes, pods=pods, gpus=gpus, jobs=jobs)
    cluster.plain_nodes(nodes)
    cluster.two_departments(nodes * GPUS_PER_NODE)
    for number in range(jobs):
        cluster.job(f"gang-{number}", f"queue-{number % 4}", gpus, pending=pods)
    return cluster.document()


def gang_topology(
    level: str = "none", kind: str = "preferred", pods: int = 512, gpus: int = 2
) -> Document:
    """One large gang on 4 zones of 8 blocks of 8 racks of 2 nodes, with a topology constraint or none."""
    cluster = Cluster("gang_topology", ["allocate"], level=level, kind=kind, pods=pods)
    keys = {"zone": "example.com/zone", "block": "example.com/block", "rack": RACK}
    for zone in range(4):
        for block in range(8):
            for rack in range(8):
                for place in range(2):
                    cluster.node(f"node-{zone}-{block}-{rack}-{place}")
                    cluster.nodes[-1]["labels"] = {
                        keys["zone"]: f"z{zone}",
                        keys["block"]: f"z{zone}b{block}",
                        keys["rack"]: f"z{zone}b{block}r{rack}",
                    }
    cluster.two_departments(len(cluster.nodes) * GPUS_PER_NODE)
    cluster.topologies.append({"name": "tree", "levels": list(keys.values())})
    constraint = None
    if level != "none":
        constraint = {"topology": "tree", "required_level": "", "preferred_level": ""}
        constraint["required_level" if kind == "required" else "preferred_level"] = keys[level]
    cluster.job("gang", "queue-0", gpus, pending=pods, topology=constraint)
    return cluster.document()


# ------------------------------------------------------------------------------------- evictions


def reclaim_large_job(nodes: int = 500) -> Document:
    """Full of one-GPU jobs without a right to run; one gang wants half of the nodes whole."""
    cluster = Cluster("reclaim_large_job", ["reclaim"], nodes=nodes)
    cluster.plain_nodes(nodes)
    gpus = nodes * GPUS_PER_NODE
    cluster.queue("default")
    cluster.queue("queue-0", "default", gpus=0, weight=0)
    cluster.queue("queue-1", "default", gpus=gpus, weight=0)
    cluster.fill_with_running("queue-0", gpus, nodes, "running")
    cluster.job("very-large-job", "queue-1", GPUS_PER_NODE, pending=nodes // 2)
    return cluster.document()


def reclaim_many_single(nodes: int = 100, min_runtime_s: float | None = None) -> Document:
    """Build a full cluster in which as many one-GPU jobs of an entitled queue wait; runs the whole cycle."""
    cluster = Cluster("reclaim_many_single", WHOLE_CYCLE, nodes=nodes)
    cluster.plain_nodes(nodes)
    gpus = nodes * GPUS_PER_NODE
    cluster.queue("default")
    cluster.queue("running", "default", gpus=0, weight=0, reclaim_min_runtime_s=min_runtime_s)
    cluster.queue("pending", "default", gpus=gpus, weight=0)
    cluster.fill_with_running("running", gpus, nodes, "running")
    for number in range(gpus):
        cluster.job(f"pending-{number}", "pending", 1, pending=1)
    return cluster.document()


def reclaim_half(nodes: int = 100) -> Document:
    """One queue runs everywhere, the other asks for its half with one-GPU jobs."""
    cluster = Cluster("reclaim_half", ["reclaim"], nodes=nodes)
    cluster.plain_nodes(nodes)
    half = nodes * GPUS_PER_NODE // 2
    cluster.queue("default")
    cluster.queue("queue-a", "default", gpus=half)
    cluster.queue("queue-b", "default", gpus=half)
    cluster.fill_with_running("queue-a", nodes * GPUS_PER_NODE, nodes, "a")
    for number in range(half):
        cluster.job(f"b-{number}", "queue-b", 1, pending=1)
    return cluster.document()


def reclaim_unschedulable(nodes: int = 100, mode: str = "proportion") -> Document:
    """Build a full cluster with a gang of ten whole nodes that must not be served.

    proportion: the running queue's quota is one GPU too high for the tenth node; antiaffinity: ten
    pods, nine racks; topology: all in one rack, which is too small.
    """
    pods = 10
    cluster = Cluster("reclaim_unschedulable", ["reclaim"], nodes=nodes, mode=mode)
    racks = {"antiaffinity": pods - 1, "topology": pods + 2}.get(mode, 0)
    for number in range(nodes):
        cluster.node(f"node-{number}")
        if racks:
            cluster.nodes[-1]["labels"] = {RACK: f"rack-{number % racks}"}
    gpus = nodes * GPUS_PER_NODE
    requested_gpus = pods * GPUS_PER_NODE
    cluster.queue("default")
    spare = 1 if mode == "proportion" else 0
    cluster.queue("queue-0", "default", gpus=gpus - requested_gpus + spare, weight=0)
    cluster.queue("queue-1", "default", gpus=requested_gpus, weight=0)
    cluster.fill_with_running("queue-0", gpus, nodes, "running")
    apart = {
        "anti_affinity_labels": {"example.com/job": "distributed"},
        "anti_affinity_topology_key": RACK,
    }
    if mode == "antiaffinity":
        cluster.extra_plugins.append("podaffinity")
    constraint = {"topology": "racks", "required_level": RACK, "preferred_level": ""}
    if mode == "topology":
        cluster.topologies.append({"name": "racks", "levels": [RACK]})
    cluster.job(
        "unschedulable",
        "queue-1",
        GPUS_PER_NODE,
        pending=pods,
        topology=constraint if mode == "topology" else None,
        task=apart if mode == "antiaffinity" else None,
    )
    return cluster.document()


def reclaim_missing_pvc(nodes: int = 1500, running: int = 7370, pending: int = 3) -> Document:
    """Nodes without GPU; pending pods name a volume claim that does not exist."""
    cluster = Cluster("reclaim_missing_pvc", ["reclaim"], nodes=nodes)
    cluster.plain_nodes(nodes, gpus=0, cpus=80)
    cluster.queue("default")
    cluster.queue("test-cpu", "default", gpus=0, weight=0, cpus=500, priority=100)
    cluster.queue("reclaim-cpu", "default", gpus=0, weight=0, priority=210)
    for number in range(running):
        cpus = 0.5 + 0.25 * (number % 19)
        node = f"node-{number % nodes}"
        cluster.job(f"cpu-{number}", "test-cpu", 0, running_on=[node], cpus=cpus)
    missing = {"missing_pvcs": ["no-such-claim"]}
    for number in range(pending):
        cluster.job(f"missing-pvc-{number}", "reclaim-cpu", 0, pending=1, cpus=0.5, task=missing)
    return cluster.document()


def consolidate_nodes(nodes: int = 50) -> Document:
    """Every node half full; jobs want whole nodes, so pods must be moved together."""
    cluster = Cluster("consolidate_nodes", ["consolidation"], nodes=nodes)
    cluster.plain_nodes(nodes)
    cluster.queue("default")
    for number in range(2):
        cluster.queue(f"queue-{number}", "default", gpus=nodes * 4)
    for number in range(nodes * 4):
        cluster.job(
            f"small-{number}", f"queue-{number % 2}", 1, running_on=[f"node-{number % nodes}"]
        )
    for number in range(nodes // 4):
        cluster.job(f"whole-{number}", f"queue-{number % 2}", GPUS_PER_NODE, pending=1)
    return cluster.document()


def consolidate_gangs(nodes: int = 50) -> Document:
    """Five GPUs free on each node; gangs of ten pods with six GPUs each."""
    cluster = Cluster("consolidate_gangs", ["consolidation"], nodes=nodes)
    cluster.plain_nodes(nodes)
    cluster.queue("default")
    cluster.queue("queue-0", "default", gpus=0)
    cluster.queue("queue-1", "default", gpus=nodes * GPUS_PER_NODE)
    cluster.fill_with_running("queue-0", nodes * 3, nodes, "small")
    for number in range((5 * 10 * (nodes // 10)) // (6 * 10)):
        cluster.job(f"gang-{number}", "queue-1", 6, pending=10)
    return cluster.document()


def steady(nodes: int = 500, per_node: int = 8) -> Document:
    """Measure the cost of opening a session and of an idle cycle."""
    cluster = Cluster("steady", WHOLE_CYCLE, nodes=nodes, per_node=per_node)
    cluster.plain_nodes(nodes)
    cluster.two_departments(nodes * GPUS_PER_NODE)
    for number in range(nodes * per_node):
        cluster.job(
            f"job-{number}", f"queue-{number % 4}", 1, running_on=[f"node-{number % nodes}"]
        )
    return cluster.document()


WORKLOADS: dict[str, Callable[..., Document]] = {
    builder.__name__: builder
    for builder in (
        small_allocate,
        small_running,
        small_mixed,
        small_many_queues,
        small_gangs,
        reclaim_large_job,
        reclaim_many_single,
        reclaim_unschedulable,
        reclaim_missing_pvc,
        fill,
        fill_fractions,
        fill_sizes,
        full_cluster_pending,
        gang_fill,
        gang_topology,
        reclaim_half,
        consolidate_nodes,
        consolidate_gangs,
        steady,
        unsolvable_sizes,
    )
}
