"""The cluster of one scenario as it stands between rounds.

A scenario file describes the state at the start; this room keeps what changes (where tasks are,
which shared GPU they hold, what claims were given) and turns it into the core's snapshot on
demand. Keys the file has and this reader does not know are passed over.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from math import inf
from typing import Any

from scheduler.core.cluster.constraints import (
    ClaimReference,
    ContainerRequest,
    Expression,
    LabelSelector,
    NodeTerm,
    Operator,
    PodTerm,
    TaskConstraints,
)
from scheduler.core.cluster.inputs import (
    DEFAULT_SUBGROUP,
    UNLIMITED_AMOUNTS,
    ClaimAllocation,
    ClusterInput,
    Device,
    DeviceClaim,
    DeviceClass,
    DeviceInputs,
    DeviceRequest,
    DeviceSlice,
    NodeInput,
    NumaShare,
    NumaTopology,
    NumaZone,
    PodGroupInput,
    PodSetInput,
    QueueAmounts,
    QueueInput,
    SubGroupInput,
    TaskInput,
    TaskRequest,
    TopologyConstraint,
    TopologyInput,
    VolumeInputs,
)
from scheduler.core.cluster.status import TaskStatus

Document = Mapping[str, Any]

STATUS_OF_STATE = {
    "pending": TaskStatus.PENDING,
    "gated": TaskStatus.GATED,
    "binding": TaskStatus.BINDING,
    "bound": TaskStatus.BOUND,
    "allocated": TaskStatus.BINDING,
    "pipelined": TaskStatus.NOMINATED,
    "running": TaskStatus.RUNNING,
    "releasing": TaskStatus.RELEASING,
    "stuck_in_releasing": TaskStatus.STUCK_IN_RELEASING,
    "succeeded": TaskStatus.SUCCEEDED,
    "failed": TaskStatus.FAILED,
}
STATE_OF_STATUS = {status: state for state, status in STATUS_OF_STATE.items()} | {
    TaskStatus.BINDING: "binding",
    TaskStatus.ALLOCATED: "binding",
    TaskStatus.BOUND: "binding",
    TaskStatus.UNKNOWN: "unknown",
}
GPU_DRIVER = "nvidia.com/gpu"
QUEUE_LABEL = "kai.scheduler/queue"
GPU_COUNT_LABEL = "nvidia.com/gpu.count"
DEFAULT_MAX_PODS = 110
DEFAULT_GPU_MEMORY_MIB = 100
AXIS_NAMES = {"cpu_millis": "cpu", "memory_bytes": "memory"}


@dataclass(slots=True)
class TaskPlace:
    """Where one task stands; the only thing about it that changes."""

    state: str
    node: str = ""
    gpu_groups: tuple[str, ...] = ()
    numa: tuple[NumaShare, ...] = ()
    claim_allocations: tuple[ClaimAllocation, ...] = ()


@dataclass(slots=True)
class World:
    """A scenario's cluster with the current place of every task."""

    document: Document
    places: dict[str, TaskPlace] = field(default_factory=dict)
    claims: tuple[DeviceClaim, ...] = ()

    def __post_init__(self) -> None:
        """Take the starting places from the file."""
        for job in self.document.get("jobs", ()):
            for task in job.get("tasks", ()):
                self.places[task["id"]] = TaskPlace(
                    state=task["state"],
                    node=task.get("node") or "",
                    gpu_groups=tuple(task.get("gpu_groups") or ()),
                    numa=_numa_shares(task.get("numa_placement_observed") or ()),
                )
        self.claims = tuple(_device_claim(claim) for claim in self._dra().get("claims", ()))

    def snapshot(self) -> ClusterInput:
        """Build what the core sees now."""
        cluster = self.document["cluster"]
        dra = self._dra()
        return ClusterInput(
            nodes=tuple(_node(node) for node in cluster.get("nodes", ())),
            queues=tuple(_queue(queue) for queue in cluster.get("queues", ())),
            pod_groups=tuple(self._pod_group(job) for job in self.document.get("jobs", ())),
            topologies=tuple(
                TopologyInput(name=entry["name"], levels=tuple(entry["levels"]))
                for entry in cluster.get("topologies", ())
            ),
            devices=DeviceInputs(
                available=True,
                classes=tuple(DeviceClass(name=name) for name in dra.get("device_classes", ())),
                slices=tuple(_device_slice(entry) for entry in dra.get("slices", ())),
                claims=self.claims,
            ),
            volumes=VolumeInputs(),
        )

    def _dra(self) -> Document:
        return self.document["cluster"].get("dra") or {}

    def _pod_group(self, job: Document) -> PodGroupInput:
        tasks = tuple(self._task(job, task) for task in job.get("tasks", ()))
        return PodGroupInput(
            name=job["name"],
            namespace=job.get("namespace") or "",
            uid=job["name"],
            queue=job["queue"],
            priority=int(job.get("priority", 50)),
            preemptible=bool(job.get("preemptible", int(job.get("priority", 50)) < 100)),
            created=float(job.get("created_offset_seconds", 0)),
            root=_subgroups(job, len(tasks)),
            tasks=tasks,
            last_start=_optional(job.get("last_start_offset_seconds")),
            stale_since=_optional(job.get("stale_since_offset_seconds")),
            staleness_grace_s=_optional(job.get("staleness_grace_seconds")),
            preemption_delay_s=float(job.get("preemption_delay_seconds", 0)),
        )

    def _task(self, job: Document, task: Document) -> TaskInput:
        place = self.places[task["id"]]
        request = task.get("request") or job.get("request") or {}
        labels = dict(task.get("labels") or {})
        if task.get("task_priority") is not None:
            labels["kai.scheduler/task-priority"] = str(task["task_priority"])
        return TaskInput(
            name=task["id"],
            uid=task["id"],
            namespace=job.get("namespace") or "",
            status=STATUS_OF_STATE[place.state],
            node=place.node,
            subgroup=task.get("subgroup") or DEFAULT_SUBGROUP,
            request=_request(request),
            constraints=_constraints(task, request),
            created=float(job.get("created_offset_seconds", 0)),
            labels=labels,
            gpu_groups=place.gpu_groups,
            numa=place.numa,
            claim_allocations=place.claim_allocations,
        )


def _optional(value: float | None) -> float | None:
    return None if value is None else float(value)


def _subgroups(job: Document, tasks: int) -> SubGroupInput:
    tree = job.get("pod_group")
    if tree is not None:
        return _group(tree)
    minimum = job.get("min_available")
    return SubGroupInput(
        pod_sets=(PodSetInput(min_available=tasks if minimum is None else int(minimum)),)
    )


def _group(tree: Document) -> SubGroupInput:
    return SubGroupInput(
        name=tree.get("name") or "",
        min_subgroups=tree.get("min_subgroups"),
        topology=_topology(tree.get("topology")),
        groups=tuple(_group(inner) for inner in tree.get("groups") or ()),
        pod_sets=tuple(
            PodSetInput(
                name=entry["name"],
                min_available=int(entry.get("min_available", 0)),
                topology=_topology(entry.get("topology")),
            )
            for entry in tree.get("pod_sets") or ()
        ),
    )


def _topology(wish: Document | None) -> TopologyConstraint | None:
    if not wish:
        return None
    return TopologyConstraint(
        topology=wish.get("topology") or "",
        required_level=wish.get("required_level") or "",
        preferred_level=wish.get("preferred_level") or "",
    )


def _request(request: Document) -> TaskRequest:
    return _intern_request(
        TaskRequest(
            cpu_milli=float(request.get("cpu_millis", 0)),
            memory_bytes=float(request.get("memory_bytes", 0)),
            gpus=float(request.get("gpu", 0)),
            gpu_fraction=float(request.get("gpu_fraction", 0)),
            gpu_memory_mib=int(request.get("gpu_memory_mib", 0)),
            gpu_devices=int(request.get("gpu_devices", 1)),
            mig=_pairs(request.get("mig")),
            device_classes=_pairs(request.get("dra_gpus")),
            legacy_mig=bool(request.get("legacy_mig", False)),
        )
    )


@lru_cache(maxsize=4096)
def _intern_request(request: TaskRequest) -> TaskRequest:
    """Share equal requests: the core finds classes of equal tasks by identity."""
    return request


@lru_cache(maxsize=4096)
def _intern_constraints(constraints: TaskConstraints) -> TaskConstraints:
    return constraints


def _pairs(counts: Mapping[str, float] | None) -> tuple[tuple[str, float], ...]:
    return tuple((name, float(count)) for name, count in sorted((counts or {}).items()))


def _constraints(task: Document, request: Document) -> TaskConstraints:
    affinity = task.get("node_affinity")
    container = ContainerRequest(name="main", requests=_container_requests(request))
    return _intern_constraints(
        TaskConstraints(
            node_affinity=(_node_term(affinity),) if affinity else None,
            pod_affinity=_pod_terms(task.get("pod_affinity")),
            pod_anti_affinity=_pod_terms(task.get("pod_anti_affinity")),
            volume_claims=tuple(task.get("persistent_volume_claims") or ()),
            device_claims=tuple(
                ClaimReference(claim=entry["claim"], from_template=bool(entry.get("template")))
                for entry in task.get("resource_claims") or ()
            ),
            containers=(container,),
            qos_class=(task.get("qos_class") or "burstable").title(),
        )
    )


def _container_requests(request: Document) -> tuple[tuple[str, float], ...]:
    named = {
        "cpu": float(request.get("cpu_millis", 0)),
        "memory": float(request.get("memory_bytes", 0)),
        "gpu": float(request.get("gpu", 0)),
    }
    return tuple((name, amount) for name, amount in named.items() if amount)


def _node_term(expressions: list[Document]) -> NodeTerm:
    return NodeTerm(
        labels=tuple(
            Expression(
                key=entry["key"],
                operator=Operator(entry["operator"]),
                values=tuple(entry.get("values") or ()),
            )
            for entry in expressions
        )
    )


def _pod_terms(terms: list[Document] | None) -> tuple[PodTerm, ...]:
    return tuple(
        PodTerm(
            topology_key=term["topology_key"],
            selector=LabelSelector(
                expressions=tuple(
                    Expression(key=key, operator=Operator.IN, values=(value,))
                    for key, value in sorted((term.get("match_labels") or {}).items())
                )
            ),
        )
        for term in terms or ()
    )


def _node(node: Document) -> NodeInput:
    labels = dict(node.get("labels") or {})
    mig = node.get("mig") or {}
    allocatable = {
        "cpu": float(node.get("cpu_millis", 0)),
        "memory": float(node.get("memory_bytes", 0)),
        "gpu": float(node.get("gpu", 0)),
        "pods": float(node.get("max_pods", DEFAULT_MAX_PODS)),
    }
    allocatable.update({name: float(n) for name, n in (mig.get("instances") or {}).items()})
    count = labels.get(GPU_COUNT_LABEL, "")
    return NodeInput(
        name=node["name"],
        labels=labels,
        allocatable=allocatable,
        gpu_memory_mib=int(node.get("gpu_memory_mib", DEFAULT_GPU_MEMORY_MIB)),
        gpu_count_label=int(count) if count.isdigit() else None,
        dra_gpus=float(node.get("dra_gpus", 0)),
        mig_enabled=bool(mig),
        mig_strategy=mig.get("strategy", "none"),
        numa=_numa(node.get("numa")),
    )


def _numa(block: Document | None) -> NumaTopology | None:
    if not block:
        return None
    return NumaTopology(
        policy=block.get("policy", "none"),
        scope=block.get("scope", "container"),
        zones=tuple(
            NumaZone(
                zone=zone["id"],
                allocatable=_axis_amounts(zone.get("allocatable")),
                available=_axis_amounts(zone.get("available")),
            )
            for zone in block.get("zones") or ()
        ),
    )


def _axis_amounts(amounts: Mapping[str, float] | None) -> dict[str, float]:
    return {AXIS_NAMES.get(name, name): float(n) for name, n in (amounts or {}).items()}


def _numa_shares(placement: Any) -> tuple[NumaShare, ...]:
    return tuple(
        NumaShare(zone=entry["zone"], amounts=tuple(_axis_amounts(entry["amount"]).items()))
        for entry in placement
    )


def _queue(queue: Document) -> QueueInput:
    return QueueInput(
        name=queue["name"],
        parent=queue.get("parent") or "",
        priority=int(queue.get("priority", 100)),
        created=float(queue.get("created_offset_seconds", 0)),
        cpu=_queue_amounts(queue.get("cpu_millis")),
        memory=_queue_amounts(queue.get("memory_bytes")),
        gpu=_queue_amounts(queue.get("gpu")),
        preempt_min_runtime_s=_optional(queue.get("preempt_min_runtime_seconds")),
        reclaim_min_runtime_s=_optional(queue.get("reclaim_min_runtime_seconds")),
    )


def _queue_amounts(block: Document | None) -> QueueAmounts:
    if block is None:
        return UNLIMITED_AMOUNTS
    return QueueAmounts(
        deserved=_unlimited(block.get("quota", 0)),
        limit=_unlimited(block.get("limit", 0)),
        over_quota_weight=float(block.get("over_quota_weight", 0)),
        usage=float(block.get("usage", 0)),
    )


def _unlimited(value: float) -> float:
    return inf if value == -1 else float(value)


def _device_slice(entry: Document) -> DeviceSlice:
    return DeviceSlice(
        driver=GPU_DRIVER,
        pool=entry["node"],
        node=entry["node"],
        devices=tuple(Device(name=str(number)) for number in range(int(entry["devices"]))),
    )


def _device_claim(entry: Document) -> DeviceClaim:
    unknown = int(entry.get("reserved_for_unknown_pods", 0))
    return DeviceClaim(
        name=entry["name"],
        namespace=entry.get("namespace") or "",
        requests=(
            DeviceRequest(
                device_class=entry.get("device_class", ""), count=float(entry.get("count", 1))
            ),
        ),
        labels=dict(entry.get("labels") or {}),
        allocation=_claim_allocation(entry),
        reserved_for=(
            *(entry.get("reserved_for") or ()),
            *(f"unknown-pod-{number}" for number in range(unknown)),
        ),
    )


def _claim_allocation(entry: Document) -> ClaimAllocation | None:
    devices = entry.get("allocated_devices")
    if not devices:
        return None
    pools = sorted({device["pool"] for device in devices})
    hostname = Expression(key="metadata.name", operator=Operator.IN, values=tuple(pools))
    return ClaimAllocation(
        claim=entry["name"],
        namespace=entry.get("namespace") or "",
        devices=tuple(
            (device["driver"], device["pool"], device["device"], "gpu") for device in devices
        ),
        node_terms=(NodeTerm(fields=(hostname,)),),
    )
