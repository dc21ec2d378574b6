"""LeaderWorkerSet: one group per replica group (a leader and its workers), optionally divided into segments.

The worker index decides the segment. If `size - 1` is divisible by the segment size, the leader is added to the
first full segment; otherwise it is its first member. With `LeaderExcluded` it is in no segment.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from kube import keys
from queues.grouping.base import (
    Context,
    Metadata,
    SubGroup,
    Topology,
    annotations_of,
    count_at,
    dig_strings,
    dig_text,
    labels_of,
    name_of,
    whole_number,
)
from queues.grouping.errors import GroupingError
from queues.grouping.metadata import base_metadata
from queues.grouping.segments import MAX_SEGMENTS, first_of, segment_topology

GROUP_INDEX_LABEL = "leaderworkerset.sigs.k8s.io/group-index"
WORKER_INDEX_LABEL = "leaderworkerset.sigs.k8s.io/worker-index"
SIZE_ANNOTATION = "leaderworkerset.sigs.k8s.io/size"
LEADER = "leader"
WORKERS = "workers"


def leader_worker_set_grouper(ctx: Context) -> Metadata:
    metadata = base_metadata(ctx)
    group_index = whole_number(labels_of(ctx.pod).get(GROUP_INDEX_LABEL, ""))
    name = metadata.name if group_index is None else f"{metadata.name}-group-{group_index}"
    size = _replica_size(ctx)
    layout = _layout(ctx, size)
    groups = tuple(layout.groups()) if layout else tuple(_plain_groups(size))
    return replace(
        metadata,
        name=name,
        min_member=size,
        sub_groups=groups,
        pod_sub_group=_sub_group_of(ctx, layout, groups),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The division of `size` pods into segments of `segment` pods."""

    size: int
    segment: int
    leader_excluded: bool
    topology: Topology | None

    @property
    def divisible(self) -> bool:
        return (self.size - 1) % self.segment == 0

    def segment_of(self, worker: int) -> int:
        if worker == 0:
            return 0
        return (worker - 1) // self.segment if self.divisible else worker // self.segment

    def groups(self) -> Iterator[SubGroup]:
        counts = [0] * (self.segment_of(self.size - 1) + 1)
        for worker in range(1 if self.leader_excluded else 0, self.size):
            counts[self.segment_of(worker)] += 1
        if self.leader_excluded:
            yield SubGroup(name=LEADER, min_member=1)
        for index, count in enumerate(counts):
            name = f"segment-{index}"
            if index == 0 and not self.leader_excluded:
                yield SubGroup(name=name, min_sub_group=2, topology=self.topology)
                yield SubGroup(name=LEADER, min_member=1, parent=name)
                yield SubGroup(name=WORKERS, min_member=count - 1, parent=name)
            else:
                yield SubGroup(name=name, min_member=count, topology=self.topology)

    def name_of_worker(self, worker: int) -> str:
        if worker == 0:
            return LEADER
        segment = self.segment_of(worker)
        return WORKERS if segment == 0 and not self.leader_excluded else f"segment-{segment}"


def _plain_groups(size: int) -> Iterator[SubGroup]:
    yield SubGroup(name=LEADER, min_member=1)
    if size > 1:
        yield SubGroup(name=WORKERS, min_member=size - 1)


def _replica_size(ctx: Context) -> int:
    size = count_at(ctx.top, "spec", "leaderWorkerTemplate", "size", default=0) or 0
    if size <= 0:
        raise GroupingError(
            f"LeaderWorkerSet {name_of(ctx.top)}: spec.leaderWorkerTemplate.size must be greater "
            f"than 0, got {size}"
        )
    policy = dig_text(ctx.top, "spec", "startupPolicy") or "LeaderCreated"
    if policy == "LeaderCreated":
        return size
    if policy != "LeaderReady":
        raise GroupingError(f"unknown startupPolicy: {policy}")
    if _worker_index(ctx) == 0 and not dig_text(ctx.pod, "spec", "nodeName"):
        return 1
    annotated = whole_number(annotations_of(ctx.pod).get(SIZE_ANNOTATION, ""))
    return annotated if annotated and annotated > 0 else size


def _worker_index(ctx: Context) -> int | None:
    index = whole_number(labels_of(ctx.pod).get(WORKER_INDEX_LABEL, ""))
    if index is not None and index < 0:
        raise GroupingError(f"workerIndex {index} is not valid. It must be bigger than 0")
    return index


def _layout(ctx: Context, size: int) -> Layout | None:
    segment = _segment_size(ctx)
    if segment is None:
        return None
    if segment <= 1:
        raise GroupingError(f"segmentSize {segment} is not valid. It must be greater than 1")
    if segment > size:
        raise GroupingError(f"segmentSize {segment} is greater than replicasSize {size}")
    if -(-size // segment) > MAX_SEGMENTS:
        raise GroupingError(
            f"number of subgroups created for the segmentation {-(-size // segment)} is greater than "
            f"max allowed segmentation {MAX_SEGMENTS}"
        )
    policy = dig_text(
        ctx.top, "spec", "leaderWorkerTemplate", "subGroupPolicy", "subGroupPolicyType"
    )
    layout = Layout(
        size=size,
        segment=segment,
        leader_excluded=policy == "LeaderExcluded",
        topology=_topology(ctx),
    )
    if layout.leader_excluded and not layout.divisible:
        raise GroupingError(
            f"replicasSize {size} is not divisible by segmentSize {segment}. LeaderExcluded policy is "
            "only supported when replicasSize is divisible by segmentSize."
        )
    return layout


def _segment_size(ctx: Context) -> int | None:
    segment_size = count_at(
        ctx.top, "spec", "leaderWorkerTemplate", "subGroupPolicy", "subGroupSize"
    )
    if segment_size is not None:
        return segment_size
    text = first_of(keys.SEGMENT_SIZE, annotations_of(ctx.top), _worker_annotations(ctx))
    if not text:
        return None
    size = whole_number(text)
    if size is None:
        raise GroupingError(
            f"invalid {keys.SEGMENT_SIZE} annotation on LeaderWorkerSet {name_of(ctx.top)}: "
            f"{text!r} is not a whole number"
        )
    return size


def _topology(ctx: Context) -> Topology | None:
    sources = (annotations_of(ctx.pod), _worker_annotations(ctx), annotations_of(ctx.top))
    return segment_topology(first_of(keys.TOPOLOGY, *sources), *sources)


def _worker_annotations(ctx: Context) -> dict[str, str]:
    return dig_strings(
        ctx.top, "spec", "leaderWorkerTemplate", "workerTemplate", "metadata", "annotations"
    )


def _sub_group_of(ctx: Context, layout: Layout | None, groups: tuple[SubGroup, ...]) -> str:
    index = _worker_index(ctx)
    if index is None:
        return ""
    plain = LEADER if index == 0 else WORKERS
    name = layout.name_of_worker(index) if layout else plain
    return name if any(group.name == name for group in groups) else ""
