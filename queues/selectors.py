"""Read the queue tree and its usage from the mirror; and one row by its number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from django.db.models import Count, Model, Q, QuerySet

from queues.models import PodGroup, Queue, WorkloadState
from queues.tree.amounts import Usage
from queues.tree.options import NO_OPTIONS, QueueOptions, read_options
from queues.tree.shape import RESOURCES, BoundAmounts, QueueShape

M = TypeVar("M", bound=Model)

USE_KINDS = ("allocated", "non_preemptible")
# From the units of the rows (bytes, millicores) to those of the custom resource.
USE_FACTORS = {"gpu": 1.0, "cpu": 1.0, "memory": 1e-6}


def tree() -> dict[str, QueueShape]:
    """Return the place and the options of every mirrored queue, by name; amounts are left out.

    Only columns are read, because thousands of rows as objects would take most of the time of many requests.
    """
    # Few queues have options, and decoding a JSON column costs more than the rest of its row.
    annotations = dict(Queue.objects.exclude(options={}).values_list("name", "options"))
    rows = Queue.objects.order_by("name").values_list("name", "parent")
    return {
        name: QueueShape(name=name, parent=parent, options=options_of(annotations.get(name, {})))
        for name, parent in rows
    }


def shape_of(row: Queue) -> QueueShape:
    """Return a mirrored queue as a shape."""
    return QueueShape(
        name=row.name,
        parent=row.parent,
        display_name=row.display_name,
        priority=row.priority,
        preempt_min_runtime=row.preempt_min_runtime,
        reclaim_min_runtime=row.reclaim_min_runtime,
        quota=_amounts(row, "quota"),
        limit=_amounts(row, "limit"),
        weight=_amounts(row, "weight"),
        options=options_of(row.options),
    )


def options_of(annotations: Mapping[str, Any]) -> QueueOptions:
    """Return the options in the column `options` of a row."""
    return read_options(annotations)[0] if annotations else NO_OPTIONS


def _amounts(row: Queue, prefix: str) -> BoundAmounts:
    return {resource: getattr(row, f"{prefix}_{resource}") for resource in RESOURCES}


def usage() -> Mapping[str, Usage]:
    """Return the usage of each queue, for the warnings of an edit."""
    living = ~Q(state__in=[WorkloadState.FINISHED, WorkloadState.FAILED])
    # Counting rows instead of keys lets the database read the index on queue and state only.
    counted = PodGroup.objects.filter(living).values_list("queue").annotate(count=Count("*"))
    workloads = dict(counted.order_by())
    columns = [f"{kind}_{resource}" for kind in USE_KINDS for resource in RESOURCES]
    rows = Queue.objects.order_by().values_list("name", *columns)
    return {
        name: Usage(
            allocated=_used(amounts[: len(RESOURCES)]),
            non_preemptible=_used(amounts[len(RESOURCES) :]),
            workloads=workloads.get(name, 0),
        )
        for name, *amounts in rows
    }


def _used(amounts: Sequence[float]) -> dict[str, float]:
    return {
        resource: amount * USE_FACTORS[resource]
        for resource, amount in zip(RESOURCES, amounts, strict=True)
    }


def row_with_number(rows: QuerySet[M], number: int) -> M | None:
    """Return the row with a primary key; None if there is none, as for a number too large for the column."""
    return rows.filter(pk=number).first() if number < 2**63 else None


def has_queue(name: str) -> bool:
    """Return whether there is a queue of this name, which may be any text."""
    return "\x00" not in name and Queue.objects.filter(name=name).exists()
