"""Time series: average GPUs of queues in each step, and GPU-hours of the whole cluster in each step.

A step that was not observed is None in every series, never zero and never interpolated.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from kaiweb.items.amounts import Number, rounded, timestamp
from kaiweb.usage.models import ModelUse, OwnerUse, QueueBounds, QueueUse
from kaiweb.usage.ranges import Range, covered_seconds, rows_in, sums_by
from kaiweb.utilisation.models import UtilisationUse
from queues.tree.unlimited import UNLIMITED, UNLIMITED_WORD

AVERAGES = ("allocated", "waiting", "share")
BOUNDS = ("quota", "limit")
FIELDS = (*AVERAGES, *BOUNDS)
HOUR_S = 3600

Averages = list[Number | None]
Bounds = list[Number | str | None]


def frame(span: Range, covered: Sequence[float]) -> dict[str, Any]:
    """Return what all answers about a range begin with."""
    return {
        "from": timestamp(span.start),
        "to": timestamp(span.end),
        "stepSeconds": span.step,
        "times": [timestamp(moment) for moment in span.times],
        "coveredSeconds": [rounded(seconds) for seconds in covered],
    }


def queue_series(
    names: Sequence[str], span: Range, fields: Collection[str] = FIELDS
) -> dict[str, Any]:
    """Return the average GPUs of each queue in each step, and its quota and limit at the end of the step."""
    pieces = span.pieces()
    covered = covered_seconds(span, pieces)
    averages = [name for name in AVERAGES if name in fields]
    sums = {name: {column: [0.0] * len(covered) for column in averages} for name in names}
    for piece in pieces:
        rows = rows_in(piece, QueueUse, names)
        for queue, start, *values in rows.values_list("queue", "start", *averages):
            step = span.index(start)
            for column, value in zip(averages, values, strict=True):
                sums[queue][column][step] += value
    bounds = _bounds(names, span, [name for name in BOUNDS if name in fields])
    return {
        **frame(span, covered),
        "series": [
            {
                "queue": name,
                **{column: _averages(sums[name][column], covered) for column in averages},
                **bounds[name],
            }
            for name in names
        ],
    }


def _averages(sums: Sequence[float], covered: Sequence[float]) -> Averages:
    return [
        rounded(total / seconds) if seconds else None
        for total, seconds in zip(sums, covered, strict=True)
    ]


def _bounds(
    names: Sequence[str], span: Range, columns: Sequence[str]
) -> dict[str, dict[str, Bounds]]:
    """Return for each queue the bounds that held at the end of each step; None before the first is known."""
    if not columns:
        return {name: {} for name in names}
    times = span.times
    bounds: dict[str, dict[str, Bounds]] = {
        name: {column: [None] * len(times) for column in columns} for name in names
    }
    rows = QueueBounds.objects.filter(queue__in=names, at__lt=span.end).order_by("at", "id")
    for queue, changed_at, *values in rows.values_list("queue", "at", *columns):
        first = max(0, span.index(changed_at))
        for column, value in zip(columns, values, strict=True):
            bounds[queue][column][first:] = [_bound(value)] * (len(times) - first)
    return bounds


def _bound(value: float | None) -> Number | str | None:
    if value is None:
        return 0  # an unset quota guarantees nothing, an unset limit allows nothing
    return UNLIMITED_WORD if value == UNLIMITED else rounded(value)


def usage_series(span: Range, queues: Collection[str] | None) -> dict[str, Any]:
    """Return the GPU-hours of each step: in quota, over quota, waited for, held but not used, and idle in the cluster.

    Those held but not used are None where no utilisation is known.

    Parameters
    ----------
    queues : the queues whose work counts; None for all. Capacity and idle GPUs are always the cluster's.
    """
    pieces = span.pieces()
    covered = covered_seconds(span, pieces)
    count = len(covered)
    used = {column: [0.0] * count for column in OwnerUse.SUMS}
    of_nodes = {column: [0.0] * count for column in ModelUse.SUMS}
    of_devices = {column: [0.0] * count for column in UtilisationUse.SUMS}
    for piece in pieces:
        for rows, sums, columns in (
            (rows_in(piece, OwnerUse, queues), used, OwnerUse.SUMS),
            (rows_in(piece, ModelUse), of_nodes, ModelUse.SUMS),
            (rows_in(piece, UtilisationUse, queues), of_devices, UtilisationUse.SUMS),
        ):
            for start, *values in sums_by(rows, ("start",), columns):
                for column, value in zip(columns, values, strict=True):
                    sums[column][span.index(start)] += value
    over_quota = [
        allocated - in_quota
        for allocated, in_quota in zip(used["allocated"], used["in_quota"], strict=True)
    ]
    idle = [
        max(0.0, capacity - allocated)
        for capacity, allocated in zip(of_nodes["capacity"], of_nodes["allocated"], strict=True)
    ]
    return {
        **frame(span, covered),
        "inQuotaHours": _hours(used["in_quota"], covered),
        "overQuotaHours": _hours(over_quota, covered),
        "waitingHours": _hours(used["waiting"], covered),
        "capacityHours": _hours(of_nodes["capacity"], covered),
        "idleHours": _hours(idle, covered),
        "allocatedButIdleHours": _hours(of_devices["idle"], of_devices["known"]),
    }


def _hours(sums: Sequence[float], covered: Sequence[float]) -> Averages:
    return [
        rounded(max(0.0, total) / HOUR_S) if seconds else None
        for total, seconds in zip(sums, covered, strict=True)
    ]
