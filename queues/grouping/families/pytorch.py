"""PyTorchJob: master and workers as subgroups, an elastic minimum, and optional segments of workers.

Segments are for workers that must share a rack or an NVLink domain: `worker` becomes a parent
whose children `worker-0..N-1` take `segment-size` consecutive replica indexes each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from kube import keys
from queues.grouping.base import (
    Context,
    Metadata,
    SubGroup,
    annotations_of,
    count_at,
    dig_map,
    dig_strings,
    full_name,
    labels_of,
    whole_number,
)
from queues.grouping.errors import GroupingError
from queues.grouping.metadata import base_metadata
from queues.grouping.replicas import MASTER, WORKER, elastic_gang_size
from queues.grouping.segments import MAX_SEGMENTS, first_of, segment_topology

REPLICAS = "pytorchReplicaSpecs"
REPLICA_TYPE = "training.kubeflow.org/replica-type"
REPLICA_INDEX = "training.kubeflow.org/replica-index"
MASTER_GROUP = "master"
WORKER_GROUP = "worker"


def pytorch_job_grouper(ctx: Context) -> Metadata:
    """Return a gang of `minAvailable`, else the elastic minimum, else all replicas."""
    total = elastic_gang_size(ctx.top, REPLICAS)
    roles = dig_map(ctx.top, "spec", REPLICAS)
    masters = count_at(ctx.top, "spec", REPLICAS, MASTER, "replicas", default=0) or 0
    groups: list[SubGroup] = []
    if masters:
        groups.append(SubGroup(name=MASTER_GROUP, min_member=masters))
    segment_size = None
    if WORKER in roles:
        workers = max(0, total - masters)
        segment_size = _segment_size(ctx)
        groups += _worker_groups(ctx, workers, segment_size)
    return replace(
        base_metadata(ctx),
        min_member=total,
        sub_groups=tuple(groups),
        pod_sub_group=_sub_group_of(ctx, groups),
    )


def _worker_groups(ctx: Context, worker_min: int, size: int | None) -> list[SubGroup]:
    replicas = count_at(ctx.top, "spec", REPLICAS, WORKER, "replicas", default=1) or 0
    count = -(-replicas // size) if size else 0
    if count > MAX_SEGMENTS:
        raise GroupingError(
            f"number of subgroups created for the segmentation {count} is greater than max allowed "
            f"segmentation {MAX_SEGMENTS}"
        )
    if not size or not count:
        return [SubGroup(name=WORKER_GROUP, min_member=worker_min)]
    return [
        SubGroup(name=WORKER_GROUP, min_sub_group=count),
        *_segments(ctx, replicas, worker_min, size, count),
    ]


def _segments(
    ctx: Context, replicas: int, worker_min: int, size: int, count: int
) -> Iterator[SubGroup]:
    sources = _annotation_sources(ctx)
    name = first_of(keys.TOPOLOGY, *sources, annotations_of(ctx.top))
    topology = segment_topology(name, *sources)
    full_segments = -(-worker_min // size)
    for index in range(count):
        members = size if index < full_segments else 0
        if members and index == count - 1 and replicas % size:
            members = replicas % size
        yield SubGroup(
            name=f"{WORKER_GROUP}-{index}",
            min_member=members,
            parent=WORKER_GROUP,
            topology=topology,
        )


def _segment_size(ctx: Context) -> int | None:
    pod, template = _annotation_sources(ctx)
    text = pod.get(keys.SEGMENT_SIZE)
    if text:
        size = whole_number(text)
        if size is None or size <= 0:
            raise GroupingError(
                f"invalid segment size {text} on pod {full_name(ctx.pod)}, "
                "err: not a positive whole number"
            )
        return size
    text = template.get(keys.SEGMENT_SIZE)
    if not text:
        return None
    size = whole_number(text)
    if size is None or size <= 0:
        raise GroupingError(
            f"segment size {text} on worker podTemplate needs to be a positive integer"
        )
    return size


def _annotation_sources(ctx: Context) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Return the annotations that apply to workers: the pod's, unless it is a master, and the template's.

    With the annotations of a master the group would differ between the master and the workers.
    """
    pod = {} if _role(ctx) == MASTER_GROUP else annotations_of(ctx.pod)
    return pod, dig_strings(
        ctx.top, "spec", REPLICAS, WORKER, "template", "metadata", "annotations"
    )


def _role(ctx: Context) -> str:
    return labels_of(ctx.pod).get(REPLICA_TYPE, "").lower()


def _sub_group_of(ctx: Context, groups: list[SubGroup]) -> str:
    role = _role(ctx)
    names = {group.name for group in groups}
    if role not in names or f"{role}-0" not in names:
        return role if role in names else ""
    index = whole_number(labels_of(ctx.pod).get(REPLICA_INDEX, ""))
    if index is None:
        raise GroupingError(f"replica index label not found on pod {full_name(ctx.pod)}")
    size = _segment_size(ctx) or 1
    name = f"{role}-{index // size}"
    return name if name in names else ""
