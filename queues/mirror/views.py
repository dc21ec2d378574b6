"""What the mirror decodes of each kind, where the shared structs say less or more than it needs.

A queue's amounts must keep "unset" apart from zero, and its manager sits in `managedFields`, which no
other reader wants to pay for.
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
    """A queue with unset amounts as None, and who wrote its spec."""

    metadata: ManagedMeta = ManagedMeta()
    spec: QueueViewSpec = QueueViewSpec()
    status: QueueStatus = QueueStatus()

    @property
    def manager(self) -> str:
        """The field manager that wrote the spec last; empty if the API server does not say."""
        writers = [item for item in self.metadata.managed_fields if not item.subresource]
        if not writers:
            return ""
        return max(writers, key=lambda item: item.time.timestamp() if item.time else 0.0).manager


class PriorityClassView(KubeObject, frozen=True, kw_only=True):
    value: int = 0
    global_default: bool = field(name="globalDefault", default=False)
