# ruff: noqa: RUF012 - msgspec gives every struct its own copy of an empty default
"""Queue v2: quotas in the units of the custom resource (GPUs, millicores, 10^6 bytes; -1 = none)."""

from __future__ import annotations

from kube.objects.meta import Condition, KubeObject, KubeStruct
from kube.objects.pod import Quantity


class QueueResource(KubeStruct, frozen=True, kw_only=True):
    quota: float = 0.0
    over_quota_weight: float = 0.0
    limit: float = 0.0


class QueueResources(KubeStruct, frozen=True, kw_only=True):
    cpu: QueueResource = QueueResource()
    memory: QueueResource = QueueResource()
    gpu: QueueResource = QueueResource()


class QueueSpec(KubeStruct, frozen=True, kw_only=True):
    display_name: str = ""
    parent_queue: str = ""
    priority: int | None = None
    preempt_min_runtime: str | None = None
    reclaim_min_runtime: str | None = None
    resources: QueueResources | None = None


class QueueStatus(KubeStruct, frozen=True, kw_only=True):
    child_queues: tuple[str, ...] = ()
    allocated: dict[str, Quantity] = {}
    allocated_non_preemptible: dict[str, Quantity] = {}
    requested: dict[str, Quantity] = {}
    conditions: tuple[Condition, ...] = ()


class Queue(KubeObject, frozen=True, kw_only=True):
    spec: QueueSpec = QueueSpec()
    status: QueueStatus = QueueStatus()

    @property
    def display_name(self) -> str:
        return self.spec.display_name or self.metadata.name
