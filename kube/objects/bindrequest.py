# ruff: noqa: RUF012 - msgspec gives every struct its own copy of an empty default
"""BindRequest v1alpha2: the object by which the scheduler asks the binder to bind a pod."""

from __future__ import annotations

from typing import Any

from msgspec import field

from kube.objects.meta import KubeObject, KubeStruct
from kube.objects.pod import Pod, Quantity

#: Errors of failed requests that say nothing about their pod or node.
OUTDATED = "made by a scheduling worker that no longer owns the shard"
SCALING_UP = "cluster is scaling up, could not create reservation pod"


class ReceivedGpu(KubeStruct, frozen=True, kw_only=True):
    count: int = 0
    portion: str = ""


class ClaimAllocation(KubeStruct, frozen=True, kw_only=True):
    """`name` is the pod's own name for the claim; `allocation` an AllocationResult, carried as it is."""

    name: str = ""
    allocation: dict[str, Any] | None = None


class ExtendedClaimAllocation(KubeStruct, frozen=True, kw_only=True):
    allocation: dict[str, Any] | None = None
    device_requests: tuple[dict[str, Any], ...] = ()
    container_mappings: tuple[dict[str, Any], ...] = ()


class NumaZone(KubeStruct, frozen=True, kw_only=True):
    zone: str = ""
    amount: dict[str, Quantity] = {}


class BindRequestSpec(KubeStruct, frozen=True, kw_only=True):
    pod_name: str = ""
    selected_node: str = ""
    received_resource_type: str = ""
    received_gpu: ReceivedGpu | None = field(name="receivedGPU", default=None)
    selected_gpu_groups: tuple[str, ...] = field(name="selectedGPUGroups", default=())
    resource_claim_allocations: tuple[ClaimAllocation, ...] = ()
    extended_resource_claim_allocation: ExtendedClaimAllocation | None = None
    predicted_numa_zones: tuple[NumaZone, ...] = field(name="predictedNUMAZones", default=())
    backoff_limit: int | None = None


class BindRequestStatus(KubeStruct, frozen=True, kw_only=True):
    phase: str = ""
    reason: str = ""
    failed_attempts: int = 0


class BindRequest(KubeObject, frozen=True, kw_only=True):
    spec: BindRequestSpec = BindRequestSpec()
    status: BindRequestStatus = BindRequestStatus()

    @property
    def is_failed(self) -> bool:
        """Return whether no attempt is left; without a backoff limit the first failure is final."""
        limit = self.spec.backoff_limit
        return self.status.phase == "Failed" and (
            limit is None or self.status.failed_attempts >= limit
        )

    def is_for(self, pod: Pod) -> bool:
        """Return whether the request was made for this pod, not for an earlier one of the same name."""
        owners = [owner.uid for owner in self.metadata.owner_references if owner.kind == "Pod"]
        return not owners or pod.metadata.uid in owners
