"""Decide for one pod: skip it, or return the pod group it belongs to.

This is the pod grouper without its reads and writes. The controller and `kaiweb group` both call `decide`; the former
applies the decision to a cluster, the latter prints it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from kube import keys
from queues.grouping.base import (
    Context,
    Json,
    Lookups,
    Metadata,
    Settings,
    annotations_of,
    dig,
    dig_list,
    dig_text,
    full_name,
    kind_of,
    labels_of,
)
from queues.grouping.engine.owners import walk_owners
from queues.grouping.engine.table import exact_grouper, select_grouper
from queues.grouping.engine.write import pod_group_body
from queues.grouping.errors import FieldError, GroupingError


class Skip(StrEnum):
    """Why a pod is skipped."""

    OTHER_SCHEDULER = "another scheduler places this pod"
    ASKED = "annotation kai.scheduler/skip-podgrouper"
    GROUPED = "a pod without owners that already names its pod group"
    OWNER_ASKED = "an owner carries annotation kai.scheduler/skip-podgrouper"
    LEAVING = "the pod is being deleted and its owner is gone"
    NOTHING = "its kind asks for no pod group"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupingDecision:
    """Either `skip`, or the pod group of a pod and its subgroup."""

    skip: Skip | None = None
    pod_group: str = ""
    sub_group: str = ""
    body: Json | None = None


def decide(pod: Json, lookups: Lookups, settings: Settings) -> GroupingDecision:
    """Return the decision for one pod.

    Raises
    ------
    GroupingError : with the text for the `PodGrouperWarning` event of the pod
    """
    skip = skip_before_owners(pod, settings)
    if skip is not None:
        return GroupingDecision(skip=skip)
    try:
        owners = walk_owners(pod, lookups)
    except GroupingError:
        if dig(pod, "metadata", "deletionTimestamp"):
            return GroupingDecision(skip=Skip.LEAVING)
        raise
    if any(_is_opted_out(owner) for owner in owners):
        return GroupingDecision(skip=Skip.OWNER_ASKED)
    metadata = _group(pod, owners, lookups, settings)
    if metadata is None:
        return GroupingDecision(skip=Skip.NOTHING)
    return GroupingDecision(
        pod_group=metadata.name,
        sub_group=metadata.pod_sub_group,
        body=pod_group_body(metadata),
    )


def skip_before_owners(pod: Json, settings: Settings) -> Skip | None:
    """Return why a pod is skipped, by its own fields alone."""
    if dig_text(pod, "spec", "schedulerName") != settings.scheduler_name:
        return Skip.OTHER_SCHEDULER
    if _is_opted_out(pod):
        return Skip.ASKED
    if annotations_of(pod).get(keys.POD_GROUP) and not dig_list(pod, "metadata", "ownerReferences"):
        return Skip.GROUPED
    return None


def _group(
    pod: Json, owners: tuple[Json, ...], lookups: Lookups, settings: Settings
) -> Metadata | None:
    top = owners[-1] if owners else pod
    context = Context(
        pod=pod,
        top=top,
        owners=owners,
        lookups=lookups,
        settings=settings,
        delegate=exact_grouper,
    )
    try:
        metadata = select_grouper(kind_of(top), settings)(context)
    except FieldError as error:
        raise GroupingError(f"{kind_of(top).kind} {full_name(top)}: {error}") from error
    if metadata is None or not settings.node_pool_label:
        return metadata
    pool = labels_of(pod).get(settings.node_pool_label)
    if pool and settings.node_pool_label not in metadata.labels:
        return replace(metadata, labels={**metadata.labels, settings.node_pool_label: pool})
    return metadata


def _is_opted_out(obj: Json) -> bool:
    return annotations_of(obj).get(keys.SKIP) == "true"
