"""Batch workloads: Job, CronJob, AmlJob, RunaiJob."""

from __future__ import annotations

from dataclasses import replace

from kube import keys
from queues.grouping.base import (
    Context,
    Metadata,
    annotations_of,
    dig,
    kind_of,
    name_of,
    namespace_of,
    uid_of,
    whole_number,
)
from queues.grouping.errors import GroupingError
from queues.grouping.metadata import base_metadata


def job_grouper(ctx: Context) -> Metadata:
    """Group all pods of a Job; pods start one by one unless the Job states a minimum."""
    metadata = base_metadata(ctx)
    legacy = f"pg-{name_of(ctx.pod)}-{uid_of(ctx.top)}"
    if _legacy_exists(ctx, legacy):
        return replace(metadata, name=legacy, min_member=1)
    text = annotations_of(ctx.top).get(keys.BATCH_MIN_MEMBER)
    if text is None:
        return metadata
    minimum = whole_number(text)
    if minimum is None or minimum < 0:
        raise GroupingError(
            f"invalid min-member annotation value: {text!r} is not a whole number from 0 to 2147483647"
        )
    return replace(metadata, min_member=minimum)


def cron_job_grouper(ctx: Context) -> Metadata:
    """Group each run separately: apply the base rules with the Job that owns the pod as top owner."""
    for owner in ctx.owners[:1]:
        if kind_of(owner).kind == "Job":
            return base_metadata(ctx.with_top(owner))
    raise GroupingError("no owner reference of type 'Job'")


def aml_job_grouper(ctx: Context) -> Metadata:
    """Take the gang size from the node count that Azure ML passes to its processes."""
    value = dig(ctx.top, "spec", "job", "options", "envs", "AZUREML_NODE_COUNT")
    count = whole_number(str(value)) if isinstance(value, str | int) else None
    if count is None or count < 0:
        raise GroupingError(
            f"AmlJob {name_of(ctx.top)}: spec.job.options.envs.AZUREML_NODE_COUNT must be a whole "
            f"number, got {value!r}"
        )
    return replace(base_metadata(ctx), min_member=count)


def runai_job_grouper(ctx: Context) -> Metadata:
    """Name the group after the pod without its last part, so that reruns of one index stay together."""
    metadata = base_metadata(ctx)
    pod, uid = name_of(ctx.pod), uid_of(ctx.top)
    for legacy in (f"pg-{name_of(ctx.top)}-{uid}", f"pg-{pod}-{uid}"):
        if _legacy_exists(ctx, legacy):
            return replace(metadata, name=legacy)
    stem = pod.rpartition("-")[0] or pod
    return replace(metadata, name=f"pg-{stem}-{uid}")


def _legacy_exists(ctx: Context, name: str) -> bool:
    if not ctx.settings.search_legacy:
        return False
    return ctx.lookups.pod_group(namespace_of(ctx.pod), name) is not None
