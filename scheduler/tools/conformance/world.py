"""The cluster of one scenario as it stands between rounds.

A scenario file describes the state at the start; this module keeps what changes (where tasks are,
which shared GPU they hold, which devices claims hold) and turns it into the core's snapshot on
demand. Unknown keys of the file are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from scheduler.core.cluster.device_inputs import (
    ClaimAllocation,
    DeviceClaim,
    DeviceClass,
    DeviceInputs,
)
from scheduler.core.cluster.inputs import (
    DEFAULT_SUBGROUP,
    ClusterInput,
    NumaShare,
    OtherPod,
    PodGroupInput,
    TaskInput,
    TopologyInput,
    VolumeInputs,
)
from scheduler.core.cluster.status import TaskStatus
from scheduler.tools.conformance.read_cluster import (
    optional_number,
    read_device_claim,
    read_device_slice,
    read_node,
    read_numa_shares,
    read_queue,
)
from scheduler.tools.conformance.read_jobs import read_constraints, read_request, read_subgroups

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


@dataclass(slots=True)
class TaskPlace:
    """State and place of one task; everything else about a task stays as in the file."""

    state: str
    node: str = ""
    gpu_groups: tuple[str, ...] = ()
    numa: tuple[NumaShare, ...] = ()
    claim_allocations: tuple[ClaimAllocation, ...] = ()


@dataclass(slots=True)
class World:
    """A scenario's cluster with the current place of every task."""

    document: Document
    #: By id of the task.
    places: dict[str, TaskPlace] = field(default_factory=dict)
    claims: tuple[DeviceClaim, ...] = ()

    def __post_init__(self) -> None:
        """Read the places and claims at the start from the file."""
        for job in self.document.get("jobs", ()):
            for task in job.get("tasks", ()):
                self.places[task["id"]] = TaskPlace(
                    state=task["state"],
                    node=task.get("node") or "",
                    gpu_groups=tuple(task.get("gpu_groups") or ()),
                    numa=read_numa_shares(task.get("numa_placement_observed") or ()),
                )
        self.claims = tuple(read_device_claim(claim) for claim in self._dra().get("claims", ()))

    def snapshot(self) -> ClusterInput:
        """Return the cluster as the core sees it now."""
        cluster = self.document["cluster"]
        dra = self._dra()
        return ClusterInput(
            nodes=tuple(read_node(node) for node in cluster.get("nodes", ())),
            queues=tuple(read_queue(queue) for queue in cluster.get("queues", ())),
            pod_groups=tuple(self._pod_group(job) for job in self.document.get("jobs", ())),
            other_pods=tuple(_foreign_pod(entry) for entry in cluster.get("other_pods", ())),
            topologies=tuple(
                TopologyInput(name=entry["name"], levels=tuple(entry["levels"]))
                for entry in cluster.get("topologies", ())
            ),
            devices=DeviceInputs(
                available=True,
                classes=tuple(DeviceClass(name=name) for name in dra.get("device_classes", ())),
                slices=tuple(read_device_slice(entry) for entry in dra.get("slices", ())),
                claims=self.claims,
            ),
            volumes=VolumeInputs(),
        )

    def _dra(self) -> Document:
        """Return the file's part on dynamic resource allocation, empty if it has none."""
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
            protects_minimum=bool(job.get("protects_minimum", False)),
            created=float(job.get("created_offset_seconds", 0)),
            root=read_subgroups(job, len(tasks)),
            tasks=tasks,
            last_start=optional_number(job.get("last_start_offset_seconds")),
            stale_since=optional_number(job.get("stale_since_offset_seconds")),
            staleness_grace_s=optional_number(job.get("staleness_grace_seconds")),
            preemption_delay_s=float(job.get("preemption_delay_seconds", 0)),
            user=job.get("user") or "",
            max_run_time_s=optional_number(job.get("max_run_time_seconds")),
            ends_by=optional_number(job.get("ends_by_offset_seconds")),
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
            request=read_request(request),
            constraints=read_constraints(task, request),
            created=float(job.get("created_offset_seconds", 0)),
            labels=labels,
            gpu_groups=place.gpu_groups,
            numa=place.numa,
            claim_allocations=place.claim_allocations,
        )


def _foreign_pod(entry: Document) -> OtherPod:
    """Return a running pod that another scheduler placed."""
    return OtherPod(
        task=TaskInput(
            name=entry["id"],
            uid=entry["id"],
            status=TaskStatus.RUNNING,
            node=entry["node"],
            request=read_request(entry["request"]),
            labels=dict(entry.get("labels") or {}),
        ),
        is_foreign=True,
    )
