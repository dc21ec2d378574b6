"""Knative services: one group per revision; its minimum is the minimum scale."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from kube import keys
from queues.grouping.base import (
    Context,
    Json,
    Metadata,
    Topology,
    annotations_of,
    dig_list,
    full_name,
    labels_of,
    namespace_of,
    whole_number,
)
from queues.grouping.errors import GroupingError, NotReadableError, ReadError
from queues.grouping.keys import KNATIVE_REVISION
from queues.grouping.metadata import base_metadata, per_pod

MIN_SCALE = "autoscaling.knative.dev/min-scale"
API_VERSION = "serving.knative.dev/v1"


def knative_service_grouper(ctx: Context) -> Metadata:
    revision = _revision(ctx)
    metadata = replace(
        base_metadata(ctx.with_top(revision), default_priority=keys.INFERENCE),
        preemptibility="",
        preemption_delay="",
        staleness_grace="",
        topology=Topology(),
    )
    if not ctx.settings.knative_gang or _runs_pod_by_pod(ctx):
        return replace(per_pod(metadata, ctx.pod), priority_class=keys.INFERENCE)
    scale = whole_number(annotations_of(revision).get(MIN_SCALE, ""))
    return replace(metadata, min_member=scale if scale is not None and scale >= 0 else 1)


def _revision(ctx: Context) -> Json:
    name = labels_of(ctx.pod).get(KNATIVE_REVISION)
    if not name:
        raise GroupingError(f'pod {full_name(ctx.pod)} missing required label "{KNATIVE_REVISION}"')
    namespace = namespace_of(ctx.pod)
    try:
        return ctx.lookups.get(API_VERSION, "Revision", namespace, name)
    except (ReadError, NotReadableError) as error:
        raise GroupingError(f"failed to get Revision {namespace}/{name}: {error}") from error


def _runs_pod_by_pod(ctx: Context) -> bool:
    """Return whether the pods of the revision already have a group each, which must not change while they run."""
    label = {KNATIVE_REVISION: labels_of(ctx.pod)[KNATIVE_REVISION]}
    pods = ctx.lookups.pods(namespace_of(ctx.pod), label)
    members = Counter(annotations_of(pod).get(keys.POD_GROUP, "") for pod in pods)
    groups = set(members) - {""}
    if any(members[name] > 1 for name in groups):
        return False  # two pods share a group, so the revision is a gang
    if len(groups) > 1:
        return True
    for name in groups:
        stored = ctx.lookups.pod_group(namespace_of(ctx.pod), name)
        owners = dig_list(stored, "metadata", "ownerReferences")
        return any(isinstance(owner, dict) and owner.get("kind") == "Pod" for owner in owners)
    return False
