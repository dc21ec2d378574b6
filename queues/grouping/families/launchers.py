"""Workloads that only launch other workloads: pods are grouped by the owner below them.

An Argo Workflow, a TrainJob, a Dynamo graph or an AppWrapper has no gang of its own; the PyTorchJob (or bare pod) that
it creates has one. Labels and annotations of the launcher, and the defaults of its kind, apply where the lower owner
has none of its own.
"""

from __future__ import annotations

from kube import keys
from queues.grouping.base import (
    Context,
    Json,
    Metadata,
    annotations_of,
    dig_map,
    kind_of,
    labels_of,
)
from queues.grouping.metadata import base_metadata, kind_default


def skip_top_owner_grouper(ctx: Context) -> Metadata | None:
    """Group by the second-last owner, or by the pod itself when the launcher owns it directly."""
    below = ctx.owners[:-1]
    effective = _with_copied(ctx, below[-1] if below else ctx.pod)
    owners = (*below[:-1], effective) if below else ()
    grouper = ctx.delegate(kind_of(effective))
    return grouper(ctx.with_top(effective, owners))


def inference_service_grouper(ctx: Context) -> Metadata | None:
    """Group a KServe service as the Deployment, Knative Service or LeaderWorkerSet that runs it."""
    if len(ctx.owners) > 1 and kind_of(ctx.owners[-2]).kind != "ReplicaSet":
        return skip_top_owner_grouper(ctx)
    return base_metadata(ctx, default_priority=keys.INFERENCE)


def _with_copied(ctx: Context, owner: Json) -> Json:
    labels = {**_default_labels(ctx), **labels_of(ctx.top), **labels_of(owner)}
    annotations = {**annotations_of(ctx.top), **annotations_of(owner)}
    metadata = {**dig_map(owner, "metadata"), "labels": labels, "annotations": annotations}
    return {**owner, "metadata": metadata}


def _default_labels(ctx: Context) -> dict[str, str]:
    default = kind_default(ctx, ctx.top)
    labels = {
        keys.PRIORITY_CLASS: default.priority_class,
        keys.PREEMPTIBILITY: default.preemptibility,
    }
    return {key: value for key, value in labels.items() if value}
