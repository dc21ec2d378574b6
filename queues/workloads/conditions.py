"""Read the scheduling conditions of a pod group, for the scheduler that obeys them and the mirror that shows them."""

from __future__ import annotations

from kube.objects.podgroup import PodGroup, SchedulingCondition
from kube.values.numbers import int_or_none

#: Name of the pool of nodes without a pool label.
DEFAULT_POOL = "default"


def pool_of(group: PodGroup, label_key: str) -> str:
    """Return the node pool named by the label of a pod group."""
    return group.metadata.labels.get(label_key, "") or DEFAULT_POOL


def is_backed_off(group: PodGroup, label_key: str) -> bool:
    """Return whether the group requested a single attempt per node pool and has had it in this pool."""
    if group.spec.scheduling_backoff in (None, -1):
        return False
    latest = latest_condition(group)
    return latest is not None and latest.node_pool == pool_of(group, label_key)


def latest_condition(group: PodGroup) -> SchedulingCondition | None:
    """Return the scheduling condition with the highest transition number."""
    return max(group.status.scheduling_conditions, key=transition_number, default=None)


def transition_number(condition: SchedulingCondition) -> int:
    """Return the number of a condition's transition; -1 if the id is no number."""
    number = int_or_none(condition.transition_id)
    return -1 if number is None else number
