"""Read the queue tree and its usage from the mirror."""

from __future__ import annotations

from collections.abc import Mapping

from django.db.models import Count, Q

from queues.models import PodGroup, Queue, WorkloadState
from queues.tree.amounts import Usage
from queues.tree.options import NO_OPTIONS, read_options
from queues.tree.shape import RESOURCES, BoundAmounts, QueueShape

# From the units of the rows (bytes, millicores) to those of the custom resource.
USE_FACTORS = {"gpu": 1.0, "cpu": 1.0, "memory": 1e-6}


def tree() -> dict[str, QueueShape]:
    """Return every mirrored queue as a shape, by name."""
    return {row.name: shape_of(row) for row in Queue.objects.all().order_by("name")}


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
        options=read_options(row.options)[0] if row.options else NO_OPTIONS,
    )


def _amounts(row: Queue, prefix: str) -> BoundAmounts:
    return {resource: getattr(row, f"{prefix}_{resource}") for resource in RESOURCES}


def usage() -> Mapping[str, Usage]:
    """Return the usage of each queue, for the warnings of an edit."""
    living = ~Q(state__in=[WorkloadState.FINISHED, WorkloadState.FAILED])
    counted = PodGroup.objects.filter(living).values_list("queue").annotate(count=Count("key"))
    workloads = dict(counted.order_by())
    return {
        row.name: Usage(
            allocated=_used(row, "allocated"),
            non_preemptible=_used(row, "non_preemptible"),
            workloads=workloads.get(row.name, 0),
        )
        for row in Queue.objects.all()
    }


def _used(row: Queue, prefix: str) -> dict[str, float]:
    return {
        resource: getattr(row, f"{prefix}_{resource}") * USE_FACTORS[resource]
        for resource in RESOURCES
    }
