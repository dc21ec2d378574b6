"""Convert a workload document to the core's snapshot and configuration."""

from __future__ import annotations

from math import inf
from typing import Any

from scheduler.core.cluster.constraints import (
    NO_CONSTRAINTS,
    Expression,
    LabelSelector,
    Operator,
    PodTerm,
    TaskConstraints,
)
from scheduler.core.cluster.inputs import (
    ClusterInput,
    NodeInput,
    PodGroupInput,
    PodSetInput,
    QueueAmounts,
    QueueInput,
    SubGroupInput,
    TaskInput,
    TaskRequest,
    TopologyConstraint,
    TopologyInput,
)
from scheduler.core.cluster.status import TaskStatus
from scheduler.core.config import DEFAULT_PLUGINS, PluginConfig, SchedulerConfig
from scheduler.core.decisions import ActionName

Document = dict[str, Any]

POD_SLOTS = 110.0
STATUS_OF = {"Pending": TaskStatus.PENDING, "Running": TaskStatus.RUNNING}


def load_config(document: Document) -> SchedulerConfig:
    """Return the default configuration with the workload's actions and extra plugins.

    Consolidation may move any number of pods, as in the runs the expected outcomes come from.
    """
    on = {plugin.name for plugin in DEFAULT_PLUGINS}
    extra = (name for name in document.get("extra_plugins", ()) if name not in on)
    return SchedulerConfig(
        actions=tuple(ActionName(name) for name in document["actions"]),
        plugins=(*DEFAULT_PLUGINS, *(PluginConfig(name) for name in extra)),
        max_consolidation_victims=inf,
    )


def load_cluster(document: Document) -> ClusterInput:
    """Return the snapshot a workload describes."""
    shared = _Shared()
    jobs = document["jobs"]
    return ClusterInput(
        nodes=tuple(_node(node) for node in document["nodes"]),
        queues=tuple(_queue(queue, age) for age, queue in enumerate(document["queues"])),
        pod_groups=tuple(_job(job, age - len(jobs), shared) for age, job in enumerate(jobs)),
        topologies=tuple(
            TopologyInput(name=topology["name"], levels=tuple(topology["levels"]))
            for topology in document.get("topologies", ())
        ),
    )


class _Shared:
    """Makes equal requests and trees one object: the core finds classes of equal tasks by identity."""

    def __init__(self) -> None:
        self._requests: dict[TaskRequest, TaskRequest] = {}
        self._roots: dict[tuple[int, TopologyConstraint | None], SubGroupInput] = {}

    def request(self, job: Document) -> TaskRequest:
        """Return the request of each task of a job."""
        gpus = float(job["gpus_per_task"])
        request = TaskRequest(
            cpu_milli=job["cpus_per_task"] * 1000.0,
            memory_bytes=float(job["memory_bytes_per_task"]),
            gpus=gpus if gpus >= 1 else 0.0,
            gpu_fraction=gpus if gpus < 1 else 0.0,
        )
        return self._requests.setdefault(request, request)

    def root(self, minimum: int, topology: TopologyConstraint | None) -> SubGroupInput:
        """Return the tree of a plain gang."""
        key = (minimum, topology)
        if key not in self._roots:
            pod_sets = (PodSetInput(min_available=minimum),)
            self._roots[key] = SubGroupInput(pod_sets=pod_sets, topology=topology)
        return self._roots[key]


def _node(node: Document) -> NodeInput:
    return NodeInput(
        name=node["name"],
        labels=dict(node.get("labels") or {}),
        allocatable={
            "cpu": node["cpus"] * 1000.0,
            "memory": float(node["memory_bytes"]),
            "gpu": float(node["gpus"]),
            "pods": POD_SLOTS,
        },
    )


def _queue(queue: Document, age: int) -> QueueInput:
    return QueueInput(
        name=queue["name"],
        parent=queue["parent"],
        priority=100 if queue.get("priority") is None else queue["priority"],
        created=float(age),
        cpu=_amounts(queue["cpu"], 1000.0),
        memory=_amounts(queue["memory"], 1.0),
        gpu=_amounts(queue["gpu"], 1.0),
        reclaim_min_runtime_s=queue.get("reclaim_min_runtime_s"),
    )


def _amounts(amounts: Document, unit: float) -> QueueAmounts:
    def bound(value: float) -> float:
        return inf if value == -1 else value * unit

    return QueueAmounts(
        quota=bound(amounts["quota"]),
        limit=bound(amounts["limit"]),
        over_quota_weight=float(amounts["over_quota_weight"]),
    )


def _job(job: Document, created: float, shared: _Shared) -> PodGroupInput:
    topology = job.get("topology_constraint")
    request = shared.request(job)
    constraints: dict[str, TaskConstraints] = {}
    runs = any(task["state"] == "Running" for task in job["tasks"])
    return PodGroupInput(
        name=job["name"],
        namespace=job["namespace"],
        uid=job["name"],
        queue=job["queue"],
        priority=job["priority"],
        preemptible=job["priority"] < 100,
        created=created,
        root=shared.root(job["min_member"], TopologyConstraint(**topology) if topology else None),
        last_start=-60.0 if runs else None,
        tasks=tuple(
            _task(job, number, task, request, constraints)
            for number, task in enumerate(job["tasks"])
        ),
    )


def _task(
    job: Document,
    number: int,
    task: Document,
    request: TaskRequest,
    constraints: dict[str, TaskConstraints],
) -> TaskInput:
    name = f"{job['name']}-{number}"
    labels = task.get("anti_affinity_labels")
    return TaskInput(
        name=name,
        uid=name,
        namespace=job["namespace"],
        status=STATUS_OF[task["state"]],
        node=task["node"],
        gpu_groups=tuple(task.get("gpu_groups", ())),
        request=request,
        constraints=_constraints(task, constraints),
        labels=dict(labels) if labels else {},
    )


def _constraints(task: Document, constraints_cache: dict[str, TaskConstraints]) -> TaskConstraints:
    claims, labels = task.get("missing_pvcs"), task.get("anti_affinity_labels")
    if not claims and not labels:
        return NO_CONSTRAINTS
    key = repr((claims, labels))
    if key not in constraints_cache:
        apart: tuple[PodTerm, ...] = ()
        if labels:
            selector = LabelSelector(
                tuple(Expression(k, Operator.IN, (v,)) for k, v in sorted(labels.items()))
            )
            apart = (PodTerm(task["anti_affinity_topology_key"], selector),)
        constraints_cache[key] = TaskConstraints(
            volume_claims=tuple(claims or ()),
            pod_anti_affinity=apart,
        )
    return constraints_cache[key]
