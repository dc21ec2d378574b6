"""Volcano Job: the gang is `spec.minAvailable`. KAI has no rule for it."""

from __future__ import annotations

from dataclasses import replace

from kube import keys
from queues.grouping.base import Context, Metadata, count_at, dig, dig_list, dig_text
from queues.grouping.metadata import base_metadata


def volcano_job_grouper(ctx: Context) -> Metadata:
    """Take `spec.minAvailable`, else the sum of the tasks' minimums (replicas where none is given)."""
    metadata = base_metadata(ctx)
    size = count_at(ctx.top, "spec", "minAvailable")
    if not size:
        size = sum(_task_minimum(task) for task in dig_list(ctx.top, "spec", "tasks"))
    class_name = dig_text(ctx.top, "spec", "priorityClassName")
    if (
        class_name
        and metadata.priority_class == keys.TRAIN
        and ctx.lookups.priority_class_exists(class_name)
    ):
        metadata = replace(metadata, priority_class=class_name)
    return replace(metadata, min_member=max(1, size))


def _task_minimum(task: object) -> int:
    path = f"spec.tasks[name={dig_text(task, 'name')}]"
    replicas = count_at(task, "replicas", default=1, below=path) or 0
    min_available = (
        count_at(task, "minAvailable", below=path)
        if dig(task, "minAvailable") is not None
        else None
    )
    return replicas if min_available is None else min_available
