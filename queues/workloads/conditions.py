"""What a pod group's scheduling conditions mean: one rule for the scheduler that obeys them and the mirror that shows it."""

from __future__ import annotations

from kube.numbers import int_or_none
from kube.objects.podgroup import PodGroup, SchedulingCondition

#: How people call the pool of nodes that carry no pool label.
DEFAULT_POOL = "default"


def pool_of(group: PodGroup, label_key: str) -> str:
    """Return the node pool that a pod group asks for by its label."""
    return group.metadata.labels.get(label_key, "") or DEFAULT_POOL


def is_backed_off(group: PodGroup, label_key: str) -> bool:
    """Tell whether the group tried this pool once, as it asked, and must be left alone here."""
    if group.spec.scheduling_backoff in (None, -1):
        return False
    latest = latest_condition(group)
    return latest is not None and latest.node_pool == pool_of(group, label_key)


def latest_condition(group: PodGroup) -> SchedulingCondition | None:
    """Return the scheduling condition with the highest transition number."""
    return max(group.status.scheduling_conditions, key=transition_number, default=None)


def transition_number(condition: SchedulingCondition) -> int:
    """Return the number of a condition's transition; -1 if it is none."""
    number = int_or_none(condition.transition_id)
    return -1 if number is None else number
