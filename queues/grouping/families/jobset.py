"""JobSet: one group with a parent subgroup per replicated job and a leaf per replica of it.

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
    metadata = base_metadata(ctx)
    if _is_legacy(ctx, metadata.name):
        return _flat(ctx, metadata)
    jobs = _replicated_jobs(ctx.top)
    groups = tuple(group for job in jobs for group in _job_groups(job))
    return replace(
        metadata,
        min_sub_group=_minimum_of_set(ctx.top, len(jobs)),
        sub_groups=groups,
        pod_sub_group=_leaf_of(ctx.pod, groups),
    )


def _replicated_jobs(job_set: Json) -> list[Json]:
    """Return the replicated jobs with replicas; one scaled to zero has no leaf, and a parent needs children."""
    jobs = [job for job in dig_list(job_set, "spec", "replicatedJobs") if isinstance(job, dict)]
    return [job for job in jobs if count_at(job, "replicas", default=1, below=_where(job))]


def _job_groups(job: Json) -> Iterator[SubGroup]:
    name = dig_text(job, "name")
    replicas = count_at(job, "replicas", default=1, below=_where(job)) or 0
    members = _minimum_annotation(
        dig_strings(job, "template", "metadata", "annotations"), "replicatedJob template"
    )
    if members is None:
        members = count_at(job, "template", "spec", "parallelism", default=1, below=_where(job))
    topology = _placement(job)
    yield SubGroup(name=name, min_sub_group=replicas)
    for index in range(replicas):
        yield SubGroup(
            name=f"{name}-replica-{index}", parent=name, min_member=members, topology=topology
        )


def _where(job: Json) -> str:
    return f"spec.replicatedJobs[name={dig_text(job, 'name')}]"


def _placement(job: Json) -> Topology | None:
    topology = topology_from(dig_strings(job, "template", "metadata", "annotations"))
    return topology if topology.name and (topology.required or topology.preferred) else None


def _minimum_of_set(job_set: Json, jobs: int) -> int:
    minimum = _minimum_annotation(annotations_of(job_set), "JobSet")
    if minimum is not None:
        return min(minimum, jobs)
    return min(1, jobs) if _in_order(job_set) else jobs


def _minimum_annotation(annotations: Mapping[str, str], where: str) -> int | None:
    text = annotations.get(keys.BATCH_MIN_MEMBER)
    if text is None:
        return None
    value = whole_number(text)
    if value is None:
        raise GroupingError(
            f"invalid {keys.BATCH_MIN_MEMBER} annotation on {where}: {text!r} is not a whole number"
        )
    if value < 1:
        raise GroupingError(
            f"invalid {keys.BATCH_MIN_MEMBER} annotation on {where}: value {value} must be >= 1"
        )
    return value


def _in_order(job_set: Json) -> bool:
    return dig_text(job_set, "spec", "startupPolicy", "startupPolicyOrder") == "InOrder"


def _leaf_of(pod: Json, groups: tuple[SubGroup, ...]) -> str:
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


def _flat(ctx: Context, metadata: Metadata) -> Metadata:
    minimum = _minimum_annotation(annotations_of(ctx.top), "JobSet") or 1
    name = metadata.name
    if _in_order(ctx.top):
        name = f"{name}-{_required_label(ctx.pod, REPLICATED_JOB_LABEL)}"
    return replace(metadata, name=name, min_member=minimum)
