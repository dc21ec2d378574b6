"""SparkApplication: queue and priority class may also be in `batchSchedulerOptions`. KAI has no rule for it."""

from __future__ import annotations

from dataclasses import replace

from kube import keys
from queues.grouping.base import Context, Metadata, dig_text, labels_of
from queues.grouping.metadata import default_grouper


def spark_application_grouper(ctx: Context) -> Metadata:
    """Group driver and executors of a SparkApplication; the driver starts alone and requests executors later."""
    metadata = default_grouper(ctx)
    queue = dig_text(ctx.top, "spec", "batchSchedulerOptions", "queue")
    if queue and metadata.queue == keys.DEFAULT_QUEUE and not _names_queue(ctx):
        metadata = replace(metadata, queue=queue)
    class_name = dig_text(ctx.top, "spec", "batchSchedulerOptions", "priorityClassName")
    if (
        class_name
        and metadata.priority_class == keys.TRAIN
        and ctx.lookups.priority_class_exists(class_name)
    ):
        metadata = replace(metadata, priority_class=class_name)
    return metadata


def _names_queue(ctx: Context) -> bool:
    label = ctx.settings.queue_label
    return bool(labels_of(ctx.top).get(label) or labels_of(ctx.pod).get(label))
