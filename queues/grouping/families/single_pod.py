"""Bare pods, Spark applications of bare pods, and kinds with one group per pod.

The pods of a Deployment start and end one by one, so each pod has its own group.
"""

from __future__ import annotations

from dataclasses import replace

from kube import keys
from queues.grouping.base import Context, Metadata, labels_of
from queues.grouping.metadata import base_metadata, per_pod

SPARK_APP = "spark-app-name"
SPARK_SELECTOR = "spark-app-selector"


def pod_grouper(ctx: Context) -> Metadata:
    """Group a pod by itself; a Spark driver and its executors share the group named by the selector label."""
    metadata = base_metadata(ctx)
    labels = labels_of(ctx.pod)
    if SPARK_APP in labels and labels.get(SPARK_SELECTOR):
        return replace(metadata, name=labels[SPARK_SELECTOR])
    return metadata


def deployment_grouper(ctx: Context) -> Metadata:
    """Group each pod separately, as inference; queue, labels and placement come from the Deployment."""
    return per_pod(base_metadata(ctx, default_priority=keys.INFERENCE), ctx.pod)


def spot_request_grouper(ctx: Context) -> Metadata:
    return base_metadata(ctx, default_priority=keys.INFERENCE)


def notebook_grouper(ctx: Context) -> Metadata:
    """Treat a notebook as interactive work: by default it is not preempted."""
    return base_metadata(ctx, default_priority=keys.BUILD)
