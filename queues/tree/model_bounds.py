"""Check the quota and limit of a queue per GPU model: against each other, its GPU quota, its parent and children."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kube.values.pointers import pointer_part
from queues.tree.amounts import TOLERANCE, exceeds
from queues.tree.findings import Finding, Severity
from queues.tree.shape import QueueShape
from queues.tree.unlimited import UNLIMITED, UNLIMITED_WORD


def model_bounds(after: Mapping[str, QueueShape], shape: QueueShape) -> Iterator[Finding]:
    """Yield warnings about the bounds per GPU model of one queue in the tree after an edit."""
    parent = after.get(shape.parent)
    for model, bounds in shape.options.gpu_models.items():
        if _exceeds(bounds.quota, bounds.limit):
            yield _warning(
                model, "quota", "quota-over-limit",
                f"is over the limit {bounds.limit:g}; the limit wins", bounds.quota, bounds.limit,
            )  # fmt: skip
        parent_bounds = None if parent is None else parent.options.gpu_models.get(model)
        if parent_bounds is not None and _exceeds(bounds.limit, parent_bounds.limit):
            yield _warning(
                model, "limit", "limit-over-parent",
                f"is over the limit {parent_bounds.limit:g} of the parent '{shape.parent}'", bounds.limit, parent_bounds.limit,
            )  # fmt: skip
    quotas = [bounds.quota or 0.0 for bounds in shape.options.gpu_models.values()]
    total = shape.quota["gpu"]
    if total != UNLIMITED and (UNLIMITED in quotas or sum(quotas) > (total or 0.0) + TOLERANCE):
        yield _finding(
            "/gpuModels", "models-over-quota",
            f"quotas of GPU models ({_sum_text(quotas)}) exceed the GPU quota ({total or 0:g}); only the GPU quota"
            " entitles the queue to reclaim", _sum_text(quotas), total,
        )  # fmt: skip
    if parent is not None and parent.name != shape.name:
        yield from _children_over_parent(after, parent)
    yield from _children_over_parent(after, shape)


def _children_over_parent(after: Mapping[str, QueueShape], parent: QueueShape) -> Iterator[Finding]:
    """Yield a warning for each model of which the children are guaranteed more than their parent."""
    if not parent.options.gpu_models:
        return
    children = [
        queue for queue in after.values() if queue.parent == parent.name and queue is not parent
    ]
    for model, bounds in parent.options.gpu_models.items():
        if bounds.quota in (None, UNLIMITED):
            continue
        quotas = [
            child.options.gpu_models[model].quota or 0.0
            for child in children
            if model in child.options.gpu_models
        ]
        if UNLIMITED in quotas or sum(quotas) > (bounds.quota or 0.0) + TOLERANCE:
            yield _finding(
                f"/gpuModels/{pointer_part(model)}/quota", "children-over-parent",
                f"total children {model} quota ({_sum_text(quotas)}) exceeds parent queue {parent.name} {model}"
                f" quota ({bounds.quota or 0:g})", _sum_text(quotas), bounds.quota,
            )  # fmt: skip


def _sum_text(quotas: list[float]) -> str:
    return UNLIMITED_WORD if UNLIMITED in quotas else f"{sum(quotas):g}"


def _exceeds(amount: float | None, bound: float | None) -> bool:
    return amount is not None and bound is not None and exceeds(amount, bound)


def _warning(
    model: str, bound: str, code: str, text: str, amount: float | None, allowed: float | None
) -> Finding:
    amount_text = UNLIMITED_WORD if amount == UNLIMITED else f"{amount or 0:g}"
    pointer = f"/gpuModels/{pointer_part(model)}/{bound}"
    return _finding(pointer, code, f"{bound} of {model} {amount_text} {text}", amount, allowed)


def _finding(
    pointer: str, code: str, message: str, amount: float | str | None, allowed: float | None
) -> Finding:
    return Finding(
        pointer=pointer,
        code=code,
        message=message,
        severity=Severity.WARNING,
        given=amount,
        allowed=allowed,
    )
