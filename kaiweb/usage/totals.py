"""Who used how many GPU-hours in a range: by queue, by user or by GPU model, with cost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from django.db.models import Sum

from kaiweb.items.amounts import Number, rounded
from kaiweb.usage import prices
from kaiweb.usage.models import ModelUse, OwnerUse, QueueUse
from kaiweb.usage.ranges import Range, rows_in, sums_by
from queues.tree import hierarchy

HOUR_S = 3600


class By(StrEnum):
    """What the rows of a usage report stand for."""

    QUEUE = "queue"
    OWNER = "owner"
    MODEL = "model"


@dataclass(slots=True)
class Used:
    """GPU-seconds of one row, and the allocated ones by period of prices and GPU model for its cost."""

    allocated: float = 0.0
    in_quota: float = 0.0
    waiting: float = 0.0
    by_model: dict[tuple[int, str], float] = field(default_factory=lambda: defaultdict(float))

    def add(self, allocated: float, in_quota: float, waiting: float) -> None:
        """Add GPU-seconds that belong to this row."""
        self.allocated += allocated
        self.in_quota += in_quota
        self.waiting += waiting


def usage_items(
    span: Range, by: By, tree: hierarchy.Tree, queues: Collection[str] | None
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the rows of a report, and their totals.

    Parameters
    ----------
    tree : the queues of today, which tell what lies below what
    queues : the queues whose work counts; None for all
    """
    usage_by_key: dict[str, Used] = defaultdict(Used)
    total = Used()
    price_list = prices.price_list()
    for piece in price_list.pieces(span.pieces()):
        period = price_list.period_of(piece.start)
        work = sums_by(rows_in(piece, OwnerUse, queues), OwnerUse.KEYS, OwnerUse.SUMS)
        for queue, owner, model, allocated, in_quota, waiting in work:
            keys = _keys(by, queue, owner, model, tree, queues)
            for key in keys:
                usage_by_key[key].by_model[period, model] += allocated
                if by != By.QUEUE:
                    usage_by_key[key].add(allocated, in_quota, waiting)
            total.by_model[period, model] += allocated
            total.add(allocated, in_quota, waiting)
        # What is in quota is measured by the quota of each queue, so the rows of users do not add up to it.
        if by == By.QUEUE:
            rows = rows_in(piece, QueueUse, queues)
            for queue, *sums in sums_by(rows, QueueUse.KEYS, OwnerUse.SUMS):
                usage_by_key[queue].add(*sums)
    items = [
        {"key": key, **_amounts(usage_by_key[key], price_list)} for key in sorted(usage_by_key)
    ]
    return items, _amounts(total, price_list)


def _keys(
    by: By,
    queue: str,
    owner: str,
    model: str,
    tree: hierarchy.Tree,
    queues: Collection[str] | None,
) -> list[str]:
    """Return the rows to which some work belongs: the queue and those above it, or the user, or the model."""
    if by == By.OWNER:
        return [owner]
    if by == By.MODEL:
        return [model]
    path = hierarchy.ancestors(tree, queue) or [queue]
    return [name for name in path if queues is None or name in queues]


def _amounts(usage: Used, price_list: prices.PriceList) -> dict[str, Any]:
    hours_by_model = {key: seconds / HOUR_S for key, seconds in usage.by_model.items()}
    return {
        "gpuHours": _hours(usage.allocated),
        "inQuotaHours": _hours(usage.in_quota),
        "overQuotaHours": _hours(usage.allocated - usage.in_quota),
        "waitingHours": _hours(usage.waiting),
        "cost": price_list.cost(hours_by_model),
    }


def _hours(seconds: float) -> Number:
    return rounded(max(0.0, seconds) / HOUR_S)


def capacity(span: Range) -> dict[str, Any]:
    """Return the GPU-hours of the whole cluster: what there was, what pods held, what was idle.

    Which of the held hours were not used cannot be told without the utilisation metrics of the devices (DCGM).
    """
    existing = held = 0.0
    for piece in span.pieces():
        row = rows_in(piece, ModelUse).aggregate(
            capacity=Sum("capacity"), allocated=Sum("allocated")
        )
        existing += row["capacity"] or 0.0
        held += row["allocated"] or 0.0
    return {
        "capacityHours": _hours(existing),
        "allocatedHours": _hours(held),
        "idleHours": _hours(existing - held),
        "allocatedButIdleHours": None,
    }
