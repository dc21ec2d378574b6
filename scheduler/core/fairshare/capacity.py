"""The two gates every placement passes: queue limits, and quota for non-preemptible work.

Fair share is no gate: a preemptible pod group may use free room beyond it. Only the limit of
the queue and of its ancestors stops it, and work that cannot be preempted must fit into quota
at every level, so that quotas stay a promise that can be kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from scheduler.core.arrays import CPU_INDEX, GPU_INDEX, Amounts
from scheduler.core.fairshare.shares import RESOURCES, QueueLedger


class CapacityReason(StrEnum):
    """Why a queue cannot take the work, as shown in conditions."""

    OVER_LIMIT = "OverLimit"
    NON_PREEMPTIBLE_OVER_QUOTA = "NonPreemptibleOverQuota"


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityRefusal:
    """The first queue and resource that do not allow the request, with the figures.

    `bound` is the limit or the quota, `held` what is allocated against it, `requested` what the
    pod group asks for, all in the resource's internal unit (millicores, bytes, GPUs).
    """

    reason: CapacityReason
    queue: int
    resource: int
    bound: float
    held: float
    requested: float
    requested_all: Amounts
    preemptible: bool


def refuse_over_capacity(
    ledger: QueueLedger, queue: int, requested: Amounts, *, preemptible: bool
) -> CapacityRefusal | None:
    """Check the limit gate for everyone, then the quota gate for non-preemptible work.

    Parameters
    ----------
    ledger : the queues with what they hold now
    queue : leaf queue of the pod group
    requested : triple; a resource of which nothing is requested is not checked
    preemptible : whether the pod group may be evicted later

    Returns
    -------
    None if the request may be placed, else the first refusal found from leaf to root
    """
    refusal = refuse_over_limit(ledger, queue, requested, preemptible=preemptible)
    if refusal is None and not preemptible:
        refusal = refuse_over_quota(ledger, queue, requested)
    return refusal


def refuse_over_limit(
    ledger: QueueLedger, queue: int, requested: Amounts, *, preemptible: bool
) -> CapacityRefusal | None:
    """Check that no queue on the path to the root passes its limit."""
    for index in ledger.paths[queue]:
        limit, held = ledger.limits[index], ledger.allocated[index]
        for resource in RESOURCES:
            amount = requested[resource]
            if amount and limit[resource] < held[resource] + amount:
                return CapacityRefusal(
                    reason=CapacityReason.OVER_LIMIT,
                    queue=index,
                    resource=resource,
                    bound=limit[resource],
                    held=held[resource],
                    requested=amount,
                    requested_all=requested,
                    preemptible=preemptible,
                )
    return None


def refuse_over_quota(
    ledger: QueueLedger, queue: int, requested: Amounts
) -> CapacityRefusal | None:
    """Check that non-preemptible work fits into quota on the whole path to the root."""
    for index in ledger.paths[queue]:
        quota, held = ledger.quotas[index], ledger.allocated_non_preemptible[index]
        for resource in RESOURCES:
            amount = requested[resource]
            if amount and quota[resource] < held[resource] + amount:
                return CapacityRefusal(
                    reason=CapacityReason.NON_PREEMPTIBLE_OVER_QUOTA,
                    queue=index,
                    resource=resource,
                    bound=quota[resource],
                    held=held[resource],
                    requested=amount,
                    requested_all=requested,
                    preemptible=False,
                )
    return None


def capacity_message(refusal: CapacityRefusal, queue_name: str) -> str:
    """Word a refusal as KAI words it; `queue_name` is the name shown to people."""
    bound = human_amount(refusal.bound, refusal.resource)
    held = human_amount(refusal.held, refusal.resource)
    requested = human_amount(refusal.requested, refusal.resource)
    if refusal.reason is CapacityReason.OVER_LIMIT:
        noun, unit = _LIMIT_WORDS[refusal.resource]
        return (
            f"{queue_name} quota has reached the allowable limit of {noun}. "
            f"Limit is {bound} {unit}, currently {held} {unit} allocated and "
            f"workload requested {requested} {unit}"
        )
    if refusal.resource == GPU_INDEX:
        requested = _plain_number(refusal.requested)
    asked, unit = _QUOTA_WORDS[refusal.resource]
    return (
        "Non-preemptible workload is over quota. "
        f"Workload requested {requested} {asked}, but {queue_name} quota is {bound} {unit}, "
        f"while {held} {unit} are already allocated for non-preemptible pods. "
        "Use a preemptible workload to go over quota."
    )


def human_amount(amount: float, resource: int) -> str:
    """Print an amount in cores, GB or GPUs, cut (not rounded) to three decimals.

    Examples: 1500 millicores -> ``1.5``, inf -> ``Unlimited``.
    """
    if amount == float("inf"):
        return "Unlimited"
    text = f"{amount / _UNIT_SIZE[resource]:.6f}"[:-3]
    return text.rstrip("0").rstrip(".")


def _plain_number(amount: float) -> str:
    return str(int(amount)) if amount == int(amount) else repr(amount)


_UNIT_SIZE = {CPU_INDEX: 1000.0, 1: 1e9, GPU_INDEX: 1.0}
_LIMIT_WORDS = {CPU_INDEX: ("CPU cores", "cores"), 1: ("memory", "GB"), GPU_INDEX: ("GPUs", "GPUs")}
_QUOTA_WORDS = {
    CPU_INDEX: ("CPU cores", "cores"),
    1: ("GB memory", "GB"),
    GPU_INDEX: ("GPUs", "GPUs"),
}
