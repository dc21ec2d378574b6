"""Collect the nodes, queues and jobs of a workload document."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Document = dict[str, Any]

GPUS_PER_NODE = 8
UNLIMITED = -1
PENDING, RUNNING = "Pending", "Running"


class Cluster:
    """Collects the parts of one workload."""

    def __init__(self, name: str, actions: Iterable[str], **params: Any) -> None:
        self.name = name
        self.actions = list(actions)
        self.params = params
        self.nodes: list[Document] = []
        self.queues: list[Document] = []
        self.jobs: list[Document] = []
        self.topologies: list[Document] = []
        self.extra_plugins: list[str] = []

    def node(
        self, name: str, *, gpus: int = GPUS_PER_NODE, cpus: int = 20_000, **labels: str
    ) -> None:
        """Add a node; memory is plentiful, and CPU too unless said otherwise."""
        self.nodes.append(
            {"name": name, "gpus": gpus, "cpus": cpus, "memory_bytes": 20_000_000_000}
            | {"labels": {key.replace("__", "/").replace("_", "."): v for key, v in labels.items()}}
        )

    def plain_nodes(self, count: int, **options: Any) -> None:
        """Add nodes that differ in name only."""
        for number in range(count):
            self.node(f"node-{number}", **options)

    def queue(self, name: str, parent: str = "", **options: Any) -> None:
        """Add a queue; what is not said is unlimited."""
        gpu = {
            "quota": options.get("gpus", UNLIMITED),
            "limit": UNLIMITED,
            "over_quota_weight": options.get("weight", 1),
        }
        free = {"quota": UNLIMITED, "limit": UNLIMITED, "over_quota_weight": 1}
        self.queues.append(
            {
                "name": name,
                "parent": parent,
                "priority": options.get("priority"),
                "gpu": gpu,
                "cpu": free | {"quota": options.get("cpus", UNLIMITED)},
                "memory": dict(free),
                "reclaim_min_runtime_s": options.get("reclaim_min_runtime_s"),
            }
        )

    def two_departments(self, gpus: float) -> None:
        """Add two departments with half of the GPUs each, and four queues with a quarter each."""
        for department in ("dept-a", "dept-b"):
            self.queue(department, gpus=gpus / 2, weight=gpus / 2)
        for number in range(4):
            self.queue(f"queue-{number}", "dept-a" if number < 2 else "dept-b", gpus=gpus / 4)

    def job(
        self,
        name: str,
        queue: str,
        gpus: float,
        *,
        running_on: Iterable[str] = (),
        pending: int = 0,
        cpus: float = 1,
        memory_bytes: int = 1_000_000_000,
        topology: Document | None = None,
        task: Document | None = None,
    ) -> None:
        """Add a gang: one running task on each named node, and so many pending ones."""
        tasks = [{"state": RUNNING, "node": node} for node in running_on]
        tasks += [{"state": PENDING, "node": ""} | (task or {}) for _ in range(pending)]
        job: Document = {
            "name": name,
            "namespace": "bench",
            "queue": queue,
            "priority": 50,
            "gpus_per_task": gpus,
            "cpus_per_task": cpus,
            "memory_bytes_per_task": memory_bytes,
            "min_member": len(tasks),
            "tasks": tasks,
        }
        if topology is not None:
            job["topology_constraint"] = topology
        self.jobs.append(job)

    def fill_with_running(self, queue: str, count: int, nodes: int, prefix: str) -> None:
        """Deal one-GPU jobs that run already to the nodes in turn."""
        for number in range(count):
            self.job(f"{prefix}-{number}", queue, 1, running_on=[f"node-{number % nodes}"])

    def document(self) -> Document:
        """Return the workload."""
        states = [task["state"] for job in self.jobs for task in job["tasks"]]
        workload = {
            "name": self.name,
            "params": self.params,
            "summary": {
                "nodes": len(self.nodes),
                "gpus": sum(node["gpus"] for node in self.nodes),
                "queues": len(self.queues),
                "jobs": len(self.jobs),
                "running_tasks": states.count(RUNNING),
                "pending_tasks": states.count(PENDING),
            },
            "actions": self.actions,
            "nodes": self.nodes,
            "queues": self.queues,
            "topologies": self.topologies,
            "jobs": self.jobs,
        }
        return workload | ({"extra_plugins": self.extra_plugins} if self.extra_plugins else {})
