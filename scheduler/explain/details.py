"""The amounts behind a queue's refusal, as resource lists in a pod group's condition."""

from __future__ import annotations

from math import inf
from typing import Any

from kube.keys import NVIDIA_GPU
from kube.values.quantity import format_decimal
from scheduler.core.arrays import Amounts
from scheduler.core.fairshare.capacity import CapacityReason, CapacityRefusal
from scheduler.core.session.session import Session

NO_AMOUNTS = (0.0, 0.0, 0.0)


def queue_details(
    session: Session, refusal: CapacityRefusal, *, is_preemptible: bool
) -> dict[str, Any]:
    """Return `details` of a capacity reason: the queue that refused and every amount involved."""
    ledger, queue = session.policy.ledger, refusal.queue
    is_over_quota = refusal.reason is CapacityReason.NON_PREEMPTIBLE_OVER_QUOTA
    non_preemptible = refusal.requested_all if is_over_quota or not is_preemptible else NO_AMOUNTS
    lists = {
        "queueDeservedResources": ledger.quotas[queue],
        "queueAllocatedResources": ledger.allocated[queue],
        "queueAllocatedNonPreemptibleResources": ledger.allocated_non_preemptible[queue],
        "queueRequestedResources": ledger.requests[queue],
        "queueResourceLimits": ledger.limits[queue],
        "podGroupRequestedResources": refusal.requested_all,
        "podGroupRequestedNonPreemptibleResources": non_preemptible,
    }
    shown = {name: resource_list(amounts) for name, amounts in lists.items()}
    return {"queueDetails": {"name": session.state.queues.names[queue], **shown}}


def resource_list(amounts: Amounts) -> dict[str, str]:
    """Return (millicores, bytes, GPUs) as a resource list; unlimited is -1 (CPU: -1m)."""
    cpu, memory, gpu = amounts[0], amounts[1], amounts[2]
    return {
        "cpu": "-1m" if cpu == inf else format_decimal(round(cpu) / 1000),
        "memory": "-1" if memory == inf else str(round(memory)),
        NVIDIA_GPU: "-1" if gpu == inf else format_decimal(round(gpu, 3)),
    }
