"""Structs of the mirror for kinds whose shared structs lack something it needs.

The mirror distinguishes unset amounts of a queue from zero, and reads its manager from `managedFields`, which
would cost the other readers time.
"""

from __future__ import annotations

from datetime import datetime

from msgspec import field

from kube.objects.meta import KubeObject, KubeStruct, ObjectMeta
from kube.objects.queue import QueueStatus


class ManagedFields(KubeStruct, frozen=True, kw_only=True):
    manager: str = ""
    operation: str = ""
    subresource: str = ""
    time: datetime | None = None


class ManagedMeta(ObjectMeta, frozen=True, kw_only=True):
    managed_fields: tuple[ManagedFields, ...] = ()


class OptionalAmounts(KubeStruct, frozen=True, kw_only=True):
    quota: float | None = None
    over_quota_weight: float | None = None
    limit: float | None = None


class OptionalResources(KubeStruct, frozen=True, kw_only=True):
    cpu: OptionalAmounts = OptionalAmounts()
    memory: OptionalAmounts = OptionalAmounts()
    gpu: OptionalAmounts = OptionalAmounts()


class QueueViewSpec(KubeStruct, frozen=True, kw_only=True):
    display_name: str = ""
    parent_queue: str = ""
    priority: int | None = None
    preempt_min_runtime: str = ""
    reclaim_min_runtime: str = ""
    resources: OptionalResources = OptionalResources()


class QueueView(KubeObject, frozen=True, kw_only=True):
    """A queue with unset amounts as None, and the managers of its fields."""

    metadata: ManagedMeta = ManagedMeta()
    spec: QueueViewSpec = QueueViewSpec()
    status: QueueStatus = QueueStatus()

    @property
    def manager(self) -> str:
        """Return the field manager that wrote the spec last; empty if unknown."""
        writers = [entry for entry in self.metadata.managed_fields if not entry.subresource]
        if not writers:
            return ""
        return max(writers, key=lambda entry: entry.time.timestamp() if entry.time else 0.0).manager


class PriorityClassView(KubeObject, frozen=True, kw_only=True):
    value: int = 0
    global_default: bool = field(name="globalDefault", default=False)
