"""Kinds that KAI has no rule for, where the workload itself says what its gang is.

Each rule reads only fields that mean the same to the kind's own scheduler integration, so nothing is guessed:
a Volcano Job states `minAvailable`, a SparkApplication its batch queue, an InferenceService serves.
"""

from __future__ import annotations

from dataclasses import replace

from kube import keys
from queues.grouping.base import (
    Context,
    Metadata,
    count_at,
    dig,
    dig_list,
    dig_text,
    kind_of,
    labels_of,
)
from queues.grouping.metadata import base_metadata, default_grouper
from queues.grouping.workflows import skip_top_owner_grouper


def volcano_job_grouper(ctx: Context) -> Metadata:
    """Take `spec.minAvailable`, else the sum of the tasks' minimums (replicas where none is given)."""
    metadata = base_metadata(ctx)
    size = count_at(ctx.top, "spec", "minAvailable")
    if not size:
        size = sum(_task_minimum(task) for task in dig_list(ctx.top, "spec", "tasks"))
    named = dig_text(ctx.top, "spec", "priorityClassName")
    if named and metadata.priority_class == keys.TRAIN and ctx.lookups.priority_class_exists(named):
        metadata = replace(metadata, priority_class=named)
    return replace(metadata, min_member=max(1, size))


def spark_application_grouper(ctx: Context) -> Metadata:
    """Group driver and executors of a SparkApplication; the driver starts alone and asks for executors later."""
    metadata = default_grouper(ctx)
    queue = dig_text(ctx.top, "spec", "batchSchedulerOptions", "queue")
    if queue and metadata.queue == keys.DEFAULT_QUEUE and not _names_queue(ctx):
        metadata = replace(metadata, queue=queue)
    named = dig_text(ctx.top, "spec", "batchSchedulerOptions", "priorityClassName")
    if named and metadata.priority_class == keys.TRAIN and ctx.lookups.priority_class_exists(named):
        metadata = replace(metadata, priority_class=named)
    return metadata


def inference_service_grouper(ctx: Context) -> Metadata | None:
    """Group a KServe service as the Deployment, Knative Service or LeaderWorkerSet that runs it."""
    if len(ctx.owners) > 1 and kind_of(ctx.owners[-2]).kind != "ReplicaSet":
        return skip_top_owner_grouper(ctx)
    return base_metadata(ctx, default_priority=keys.INFERENCE)


def _task_minimum(task: object) -> int:
    where = f"spec.tasks[name={dig_text(task, 'name')}]"
    replicas = count_at(task, "replicas", default=1, below=where) or 0
    own = (
        count_at(task, "minAvailable", below=where)
        if dig(task, "minAvailable") is not None
        else None
    )
    return replicas if own is None else own


def _names_queue(ctx: Context) -> bool:
    label = ctx.settings.queue_label
    return bool(labels_of(ctx.top).get(label) or labels_of(ctx.pod).get(label))
