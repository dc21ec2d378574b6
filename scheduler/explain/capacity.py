"""The text of a refusal by the limit or the quota of a queue, as KAI writes it."""

from __future__ import annotations

from scheduler.core.arrays import CPU_INDEX, GPU_INDEX, MEMORY_INDEX
from scheduler.core.cluster.amount_text import human_amount
from scheduler.core.fairshare.capacity import CapacityReason, CapacityRefusal

#: Resource -> (name, unit), once for limits and once for quotas.
_LIMIT_WORDS = {
    CPU_INDEX: ("CPU cores", "cores"),
    MEMORY_INDEX: ("memory", "GB"),
    GPU_INDEX: ("GPUs", "GPUs"),
}
_QUOTA_WORDS = {
    CPU_INDEX: ("CPU cores", "cores"),
    MEMORY_INDEX: ("GB memory", "GB"),
    GPU_INDEX: ("GPUs", "GPUs"),
}


def capacity_message(refusal: CapacityRefusal, queue_name: str) -> str:
    """Return the message for a refusal; `queue_name` is the display name of the queue."""
    bound = human_amount(refusal.bound, refusal.resource)
    held_text = human_amount(refusal.held, refusal.resource)
    requested = human_amount(refusal.requested, refusal.resource)
    if refusal.reason is CapacityReason.OVER_LIMIT:
        noun, unit = _LIMIT_WORDS[refusal.resource]
        return (
            f"{queue_name} quota has reached the allowable limit of {noun}. "
            f"Limit is {bound} {unit}, currently {held_text} {unit} allocated and "
            f"workload requested {requested} {unit}"
        )
    if refusal.resource == GPU_INDEX:
        requested = _uncut_number(refusal.requested)
    noun, unit = _QUOTA_WORDS[refusal.resource]
    return (
        "Non-preemptible workload is over quota. "
        f"Workload requested {requested} {noun}, but {queue_name} quota is {bound} {unit}, "
        f"while {held_text} {unit} are already allocated for non-preemptible pods. "
        "Use a preemptible workload to go over quota."
    )


def _uncut_number(amount: float) -> str:
    return str(int(amount)) if amount == int(amount) else repr(amount)
