"""The two gates that every placement must pass: queue limits, and quota for non-preemptible work.

Fair share is no gate: a preemptible pod group may use free resources beyond the fair share of its queue.
Only the limits of the queue and its ancestors stop it. Non-preemptible work must also fit into the quota
of every queue on its path, because what it holds can never be reclaimed for another queue's quota.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from scheduler.core.arrays import TOLERANCE, Amounts
from scheduler.core.fairshare.shares import RESOURCES, QueueLedger


class CapacityReason(StrEnum):
    """Why a queue cannot take the work, as shown in conditions; also the name of the gate."""

    OVER_LIMIT = "OverLimit"
    NON_PREEMPTIBLE_OVER_QUOTA = "NonPreemptibleOverQuota"


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityRefusal:
    """The first queue and resource that do not allow the request, with the figures.

    Attributes
    ----------
    queue, resource : index of the queue; position in `Amounts`
    bound : its limit or quota, in millicores, bytes or GPUs, as are the next two
    held : what is allocated against that bound
    requested : what the pod group requests of this resource
    requested_all : what it requests of all three
    preemptible : whether the pod group is preemptible
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
    """Check the limit gate, and for non-preemptible work then the quota gate.

    Parameters
    ----------
    ledger : the queues with what they hold now
    queue : leaf queue of the pod group
    requested : a resource of which nothing is requested is not checked
    preemptible : whether the pod group may be evicted later

    Returns
    -------
    None if the request may be placed, else the first refusal from leaf to root
    """
    over_limit = CapacityReason.OVER_LIMIT
    refusal = refuse_at_gate(over_limit, ledger, queue, requested, preemptible=preemptible)
    if refusal is None and not preemptible:
        over_quota = CapacityReason.NON_PREEMPTIBLE_OVER_QUOTA
        refusal = refuse_at_gate(over_quota, ledger, queue, requested, preemptible=False)
    return refusal


def refuse_at_gate(
    gate: CapacityReason,
    ledger: QueueLedger,
    queue: int,
    requested: Amounts,
    *,
    preemptible: bool,
) -> CapacityRefusal | None:
    """Check one gate on the whole path to the root.

    Parameters
    ----------
    gate : compares all allocations with limits, or non-preemptible ones with quotas
    ledger, queue, requested, preemptible : as in `refuse_over_capacity`

    Returns
    -------
    None if every queue allows the request, else the first refusal from leaf to root
    """
    if gate is CapacityReason.OVER_LIMIT:
        bounds, allocated = ledger.limits, ledger.allocated
    else:
        bounds, allocated = ledger.quotas, ledger.allocated_non_preemptible
    for index in ledger.paths[queue]:
        bound, held_amounts = bounds[index], allocated[index]
        for resource in RESOURCES:
            amount = requested[resource]
            if amount and bound[resource] + TOLERANCE < held_amounts[resource] + amount:
                return CapacityRefusal(
                    reason=gate,
                    queue=index,
                    resource=resource,
                    bound=bound[resource],
                    held=held_amounts[resource],
                    requested=amount,
                    requested_all=requested,
                    preemptible=preemptible,
                )
    return None
