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
from queues.grouping.gang_api import (
    GangReference,
    followed_gang,
    gang_metadata,
    gang_reference,
    is_claimed,
    is_placed,
    missing_gang,
)


class Skip(StrEnum):
    """Why a pod is skipped."""

    OTHER_SCHEDULER = "another scheduler places this pod"
    ASKED = "annotation kai.scheduler/skip-podgrouper"
    GROUPED = "a pod without owners that already names its pod group"
    OWNER_ASKED = "an owner carries annotation kai.scheduler/skip-podgrouper"
    LEAVING = "the pod is being deleted and its owner is gone"
    NOTHING = "its kind asks for no pod group"
    GANG_GONE = "the Workload or PodGroup it names was deleted, and the pod stays in its pod group"


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
    reference = followed_gang(pod, owners, lookups)
    gang = lookups.gang(reference.kind, reference.namespace, reference.name) if reference else None
    if reference is not None and gang is None:
        return _without_gang(pod, reference, lookups)
    metadata = _group(_context(pod, owners, lookups, settings), reference, gang)
    if metadata is None:
        return GroupingDecision(skip=Skip.NOTHING)
    if not owners and is_claimed(pod, metadata):
        return GroupingDecision(skip=Skip.GROUPED)
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
    is_grouped = bool(annotations_of(pod).get(keys.POD_GROUP))
    has_owner = bool(dig_list(pod, "metadata", "ownerReferences"))
    # The size of a gang may change, so a pod that names one is looked at again.
    if is_grouped and not has_owner and gang_reference(pod) is None:
        return Skip.GROUPED
    return None


def _without_gang(pod: Json, reference: GangReference, lookups: Lookups) -> GroupingDecision:
    if is_placed(pod, lookups):
        return GroupingDecision(skip=Skip.GANG_GONE)
    if dig(pod, "metadata", "deletionTimestamp"):
        return GroupingDecision(skip=Skip.LEAVING)
    raise missing_gang(reference)


def _context(pod: Json, owners: tuple[Json, ...], lookups: Lookups, settings: Settings) -> Context:
    return Context(
        pod=pod,
        top=owners[-1] if owners else pod,
        owners=owners,
        lookups=lookups,
        settings=settings,
        delegate=exact_grouper,
    )


def _group(context: Context, reference: GangReference | None, gang: Json | None) -> Metadata | None:
    is_of_gang = reference is not None and gang is not None
    metadata = None if is_of_gang and not context.owners else _by_rule(context)
    if reference is not None and gang is not None:
        metadata = gang_metadata(context, reference, gang, metadata)
    label = context.settings.node_pool_label
    pool = labels_of(context.pod).get(label) if label else None
    if metadata is not None and pool and label not in metadata.labels:
        return replace(metadata, labels={**metadata.labels, label: pool})
    return metadata


def _by_rule(context: Context) -> Metadata | None:
    """Return the pod group by the rule of the top owner's kind."""
    top = context.top
    try:
        return select_grouper(kind_of(top), context.settings)(context)
    except FieldError as error:
        raise GroupingError(f"{kind_of(top).kind} {full_name(top)}: {error}") from error


def _is_opted_out(obj: Json) -> bool:
    return annotations_of(obj).get(keys.SKIP) == "true"
