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
from kaiweb.utilisation.models import UtilisationUse
from queues.tree import hierarchy

HOUR_S = 3600


class By(StrEnum):
    """What the rows of a usage report stand for."""

    QUEUE = "queue"
    OWNER = "owner"
    MODEL = "model"


@dataclass(slots=True)
class Used:
    """GPU-seconds of one row, and the allocated ones by period of prices and GPU model for its cost.

    Attributes
    ----------
    known : allocated GPU-seconds with known utilisation
    idle : those of them that were not used
    """

    allocated: float = 0.0
    in_quota: float = 0.0
    waiting: float = 0.0
    known: float = 0.0
    idle: float = 0.0
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
        rows = sums_by(
            rows_in(piece, UtilisationUse, queues), UtilisationUse.KEYS, UtilisationUse.SUMS
        )
        for queue, owner, model, known, idle in rows:
            for row in (
                total,
                *(usage_by_key[key] for key in _keys(by, queue, owner, model, tree, queues)),
            ):
                row.known += known
                row.idle += idle
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
        **_not_used(usage.allocated, usage.known, usage.idle),
        "cost": price_list.cost(hours_by_model),
    }


def _hours(seconds: float) -> Number:
    return rounded(max(0.0, seconds) / HOUR_S)


def _not_used(allocated: float, known: float, idle: float) -> dict[str, Any]:
    """Return the held hours that were not used, None if none of them is known, and those of which it is not known."""
    unknown = max(0.0, allocated - known)
    return {
        "allocatedButIdleHours": _hours(idle) if known or not allocated else None,
        "utilisationUnknownHours": _hours(unknown),
    }


def capacity(span: Range) -> dict[str, Any]:
    """Return the GPU-hours of the whole cluster: what there was, what pods held, what was idle, what was held but not used."""
    existing = held = known = idle = 0.0
    for piece in span.pieces():
        row = rows_in(piece, ModelUse).aggregate(
            capacity=Sum("capacity"), allocated=Sum("allocated")
        )
        existing += row["capacity"] or 0.0
        held += row["allocated"] or 0.0
        row = rows_in(piece, UtilisationUse).aggregate(known=Sum("known"), idle=Sum("idle"))
        known += row["known"] or 0.0
        idle += row["idle"] or 0.0
    return {
        "capacityHours": _hours(existing),
        "allocatedHours": _hours(held),
        "idleHours": _hours(existing - held),
        **_not_used(held, known, idle),
    }
