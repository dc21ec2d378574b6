"""JobSet: one pod group with a parent subgroup per replicated job, and below it one leaf per Job.

Each level counts only direct children, so an in-order JobSet can require one replicated job at a time
(`minSubGroup` 1) while each of its Jobs starts as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from kube import keys
from queues.grouping.base import (
    Context,
    Json,
    Metadata,
    SubGroup,
    Topology,
    annotations_of,
    count_at,
    dig_list,
    dig_strings,
    dig_text,
    full_name,
    labels_of,
    namespace_of,
    topology_from,
    whole_number,
)
from queues.grouping.errors import GroupingError
from queues.grouping.metadata import base_metadata

REPLICATED_JOB_LABEL = "jobset.sigs.k8s.io/replicatedjob-name"
JOB_INDEX_LABEL = "jobset.sigs.k8s.io/job-index"


def job_set_grouper(ctx: Context) -> Metadata:
    """Return the pod group of a pod of a JobSet."""
    metadata = base_metadata(ctx)
    if _is_legacy(ctx, metadata.name):
        return _without_subgroups(ctx, metadata)
    jobs = _replicated_jobs(ctx.top)
    groups = tuple(group for job in jobs for group in _job_groups(job))
    return replace(
        metadata,
        min_sub_group=_min_sub_group(ctx.top, len(jobs)),
        sub_groups=groups,
        pod_sub_group=_leaf_name(ctx.pod, groups),
    )


def _replicated_jobs(job_set: Json) -> list[Json]:
    """Return the replicated jobs with replicas; one scaled to zero would be a parent without children."""
    jobs = [job for job in dig_list(job_set, "spec", "replicatedJobs") if isinstance(job, dict)]
    return [job for job in jobs if count_at(job, "replicas", default=1, below=_path_of(job))]


def _job_groups(job: Json) -> Iterator[SubGroup]:
    name = dig_text(job, "name")
    replicas = count_at(job, "replicas", default=1, below=_path_of(job)) or 0
    min_member = _minimum_annotation(
        dig_strings(job, "template", "metadata", "annotations"), "replicatedJob template"
    )
    if min_member is None:
        min_member = count_at(
            job, "template", "spec", "parallelism", default=1, below=_path_of(job)
        )
    topology = _topology_of(job)
    yield SubGroup(name=name, min_sub_group=replicas)
    for index in range(replicas):
        yield SubGroup(
            name=f"{name}-replica-{index}", parent=name, min_member=min_member, topology=topology
        )


def _path_of(job: Json) -> str:
    return f"spec.replicatedJobs[name={dig_text(job, 'name')}]"


def _topology_of(job: Json) -> Topology | None:
    """Return the topology constraint of a replicated job, None if its annotations state no complete one."""
    topology = topology_from(dig_strings(job, "template", "metadata", "annotations"))
    return topology if topology.name and (topology.required or topology.preferred) else None


def _min_sub_group(job_set: Json, job_count: int) -> int:
    """Return how many replicated jobs must start: as annotated, else one if they start in order, else all."""
    minimum = _minimum_annotation(annotations_of(job_set), "JobSet")
    if minimum is not None:
        return min(minimum, job_count)
    return min(1, job_count) if _is_in_order(job_set) else job_count


def _minimum_annotation(annotations: Mapping[str, str], owner_text: str) -> int | None:
    text = annotations.get(keys.BATCH_MIN_MEMBER)
    if text is None:
        return None
    value = whole_number(text)
    if value is None:
        raise GroupingError(
            f"invalid {keys.BATCH_MIN_MEMBER} annotation on {owner_text}: {text!r} is not a whole number"
        )
    if value < 1:
        raise GroupingError(
            f"invalid {keys.BATCH_MIN_MEMBER} annotation on {owner_text}: value {value} must be >= 1"
        )
    return value


def _is_in_order(job_set: Json) -> bool:
    return dig_text(job_set, "spec", "startupPolicy", "startupPolicyOrder") == "InOrder"


def _leaf_name(pod: Json, groups: tuple[SubGroup, ...]) -> str:
    """Return the name of the leaf that a pod belongs to, from the labels that the JobSet controller sets."""
    leaf = f"{_required_label(pod, REPLICATED_JOB_LABEL)}-replica-{_required_label(pod, JOB_INDEX_LABEL)}"
    if not any(group.name == leaf and group.parent for group in groups):
        raise GroupingError(f'leaf subgroup "{leaf}" not found for pod {full_name(pod)}')
    return leaf


def _required_label(pod: Json, label: str) -> str:
    value = labels_of(pod).get(label)
    if not value:
        raise GroupingError(f'pod {full_name(pod)} missing required label "{label}"')
    return value


def _is_legacy(ctx: Context, name: str) -> bool:
    """Return whether an older grouper created this JobSet's groups, which have no subgroups."""
    if not ctx.settings.search_legacy:
        return False
    stored = ctx.lookups.pod_groups_starting(namespace_of(ctx.pod), name)
    return any(
        not dig_list(group, "spec", "subGroups")
        for group in stored
        if dig_text(group, "metadata", "name") == name
        or dig_text(group, "metadata", "name").startswith(f"{name}-")
    )


def _without_subgroups(ctx: Context, metadata: Metadata) -> Metadata:
    """Return the pod group as an older grouper made it; an in-order JobSet had one per replicated job."""
    minimum = _minimum_annotation(annotations_of(ctx.top), "JobSet") or 1
    name = metadata.name
    if _is_in_order(ctx.top):
        name = f"{name}-{_required_label(ctx.pod, REPLICATED_JOB_LABEL)}"
    return replace(metadata, name=name, min_member=minimum)
