"""The rules about amounts of a queue: quota, limit and over-quota weight against usage, parent, siblings and children."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from queues.tree.shape import (
    BASE_UNITS,
    GPU_PLACES,
    LIMIT,
    QUOTA,
    RESOURCES,
    REST_NAMES,
    WEIGHT,
    Finding,
    QueueShape,
    Severity,
)
from queues.tree.unlimited import UNLIMITED, UNLIMITED_WORD

DEFAULT_PRIORITY = 100
# Sums of decimals are inexact: differences below half a thousandth of a GPU are ignored.
TOLERANCE = 5e-4


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a queue holds now, in the units of the custom resource."""

    #: By resource.
    allocated: Mapping[str, float] = field(default_factory=dict)
    #: By resource.
    non_preemptible: Mapping[str, float] = field(default_factory=dict)
    workloads: int = 0


NO_USAGE = Usage()


def own_amounts(shape: QueueShape, usage: Usage, *, checks_places: bool) -> Iterator[Finding]:
    """Yield findings about the amounts of one queue, by themselves and against its usage."""
    for resource in RESOURCES:
        quota, limit = shape.quota[resource], shape.limit[resource]
        if limit is None and shape.has_resources:
            yield _amount_warning(
                LIMIT, resource, "limit-unset", "is unset, so nothing of it may be used", None
            )
        if quota and limit is not None and exceeds(quota, limit):
            yield _amount_warning(
                QUOTA, resource, "quota-over-limit", f"is over the limit {limit:g}; the limit wins",
                quota, limit,
            )  # fmt: skip
        allocated = usage.allocated.get(resource, 0.0)
        if limit not in (None, UNLIMITED) and allocated > (limit or 0) + TOLERANCE:
            yield _amount_warning(
                LIMIT, resource, "limit-below-allocated",
                f"is below the {allocated:g} that the queue uses now", limit, allocated,
            )  # fmt: skip
        non_preemptible = usage.non_preemptible.get(resource, 0.0)
        if quota != UNLIMITED and non_preemptible > (quota or 0) + TOLERANCE:
            yield _amount_warning(
                QUOTA, resource, "quota-below-non-preemptible",
                f"is below the {non_preemptible:g} that non-preemptible workloads use now", quota, non_preemptible,
            )  # fmt: skip
    if checks_places:
        for bound_name, amounts in ((QUOTA, shape.quota), (LIMIT, shape.limit)):
            yield from _places(bound_name, amounts)


def _places(bound_name: str, amounts: Mapping[str, float | None]) -> Iterator[Finding]:
    """Yield a finding for each amount that is too fine: parts of a GPU have three places, the others none."""
    for resource, name in REST_NAMES.items():
        places = GPU_PLACES if resource == "gpu" else 0
        amount = amounts[resource]
        if amount is None:
            continue
        value = amount * BASE_UNITS[resource]
        # Memory is stored as a decimal of 10^6 bytes, so a whole number of bytes comes back inexactly.
        if abs(round(value, places) - value) > max(1e-9, abs(value) * 1e-15):
            expected = f"at most {places} decimal places" if places else "a whole number"
            yield Finding(
                pointer=f"/{bound_name}/{name}",
                code="places",
                message=f"{bound_name} of {name}: expected {expected}, got {value!r}",
                given=value,
                allowed=places,
            )


def among_relatives(
    after: Mapping[str, QueueShape], shape: QueueShape, before: QueueShape | None
) -> Iterator[Finding]:
    """Yield findings about amounts and priority against the parent, the siblings and the children."""
    parent = after.get(shape.parent) if shape.parent else None
    siblings = [
        queue
        for queue in after.values()
        if queue.parent == shape.parent and queue.name != shape.name
    ]
    own_children = [queue for queue in after.values() if queue.parent == shape.name]
    for resource in RESOURCES:
        if parent is not None and parent.name != shape.name:
            yield from _sum_against(parent, [shape, *siblings], resource, "/quota")
            limit, above = shape.limit[resource], parent.limit[resource]
            if limit is not None and above is not None and exceeds(limit, above):
                yield _amount_warning(
                    LIMIT, resource, "limit-over-parent",
                    f"is over the limit {above:g} of the parent '{parent.name}'", limit, above,
                )  # fmt: skip
        yield from _sum_against(shape, own_children, resource, "/quota")
        weights = [queue.weight[resource] for queue in siblings]
        if not shape.weight[resource] and any(weights):
            yield _amount_warning(
                WEIGHT, resource, "weight-zero",
                "is zero while siblings have one: it gets no surplus", shape.weight[resource],
            )  # fmt: skip
    priority = priority_of(shape)
    is_changed = before is None or priority_of(before) != priority
    if is_changed and siblings and all(priority_of(queue) != priority for queue in siblings):
        yield Finding(
            pointer="/priority",
            code="priority-differs",
            message=f"priority {priority} differs from that of all siblings",
            severity=Severity.WARNING,
            given=priority,
        )


def _sum_against(
    parent: QueueShape, below: list[QueueShape], resource: str, pointer: str
) -> Iterator[Finding]:
    quota = parent.quota[resource]
    if quota == UNLIMITED or not below:
        return
    quotas = [queue.quota[resource] or 0.0 for queue in below]
    is_unlimited = UNLIMITED in quotas
    total = sum(quotas)
    if not is_unlimited and total <= (quota or 0.0) + TOLERANCE:
        return
    if not total and not is_unlimited:
        return
    text = UNLIMITED_WORD if is_unlimited else f"{total:g}"
    yield Finding(
        pointer=f"{pointer}/{REST_NAMES[resource]}",
        code="children-over-parent",
        message=f"total children {resource} quota ({text}) exceeds parent queue {parent.name}"
        f" {resource} quota ({quota or 0:g}); shares are then not scaled down",
        severity=Severity.WARNING,
        given=UNLIMITED_WORD if is_unlimited else total,
        allowed=quota,
    )


def priority_of(shape: QueueShape) -> int:
    """Return the priority of a queue among its siblings, which is 100 if it states none."""
    return DEFAULT_PRIORITY if shape.priority is None else shape.priority


def exceeds(amount: float, bound: float) -> bool:
    """Return whether an amount is larger than a bound, by more than the error of sums."""
    if bound == UNLIMITED:
        return False
    return amount == UNLIMITED or amount > bound + TOLERANCE


def _amount_warning(
    bound_name: str,
    resource: str,
    code: str,
    text: str,
    amount: float | None,
    allowed: float | None = None,
) -> Finding:
    value = UNLIMITED_WORD if amount == UNLIMITED else "" if amount is None else f"{amount:g}"
    return Finding(
        pointer=f"/{bound_name}/{REST_NAMES[resource]}",
        code=code,
        message=f"{bound_name} of {resource} {value} {text}".replace("  ", " "),
        severity=Severity.WARNING,
        given=amount,
        allowed=allowed,
    )
