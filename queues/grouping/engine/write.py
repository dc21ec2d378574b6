"""Compute the body or patch of a pod group without touching what others own.

The grouper owns the spec it computes, except for the queue (users move a workload by editing the PodGroup) and the
two scheduling switches. It does not change the queue and node-pool labels once written, and never removes a label or
annotation. Patches are merge patches with only the differences, so that they do not undo concurrent writes.
"""

from __future__ import annotations

from typing import Any

from kube import keys
from queues.grouping.base import (
    Json,
    Metadata,
    Settings,
    SubGroup,
    Topology,
    annotations_of,
    dig,
    dig_map,
    labels_of,
)

API_VERSION = "scheduling.run.ai/v2alpha2"
PROTECTED_FIELDS = ("queue", "markUnschedulable", "schedulingBackoff")


def pod_group_body(metadata: Metadata) -> Json:
    """Return the PodGroup object as it is created."""
    return {
        "apiVersion": API_VERSION,
        "kind": "PodGroup",
        "metadata": {
            "name": metadata.name,
            "namespace": metadata.namespace,
            "labels": dict(metadata.labels),
            "annotations": dict(metadata.annotations),
            "ownerReferences": [dict(metadata.owner)],
        },
        "spec": _spec(metadata),
    }


def pod_group_patch(existing: Json, desired: Json, settings: Settings) -> Json | None:
    """Return the merge patch that brings a stored PodGroup to `desired`, or None when nothing differs."""
    patch: Json = {}
    metadata = _metadata_patch(existing, desired, settings)
    if metadata:
        patch["metadata"] = metadata
    spec = _spec_patch(dig_map(existing, "spec"), dig_map(desired, "spec"))
    if spec:
        patch["spec"] = spec
    return patch or None


def pod_patch(pod: Json, pod_group: str, sub_group: str) -> Json | None:
    """Return the merge patch that puts a pod into its group, or None if it already is in it."""
    metadata: Json = {}
    if annotations_of(pod).get(keys.POD_GROUP) != pod_group:
        metadata["annotations"] = {keys.POD_GROUP: pod_group}
    if sub_group and labels_of(pod).get(keys.SUB_GROUP) != sub_group:
        metadata["labels"] = {keys.SUB_GROUP: sub_group}
    return {"metadata": metadata} if metadata else None


def _spec(metadata: Metadata) -> Json:
    spec: Json = {"queue": metadata.queue, "priorityClassName": metadata.priority_class}
    spec.update(_minimum(metadata.min_member, metadata.min_sub_group))
    if metadata.preemptibility:
        spec["preemptibility"] = metadata.preemptibility
    if metadata.preemption_delay:
        spec["preemptionDelay"] = metadata.preemption_delay
    if metadata.staleness_grace:
        spec["stalenessGracePeriod"] = metadata.staleness_grace
    topology = _topology(metadata.topology)
    if topology:
        spec["topologyConstraint"] = topology
    if metadata.sub_groups:
        spec["subGroups"] = [_sub_group(group) for group in metadata.sub_groups]
    return spec


def _sub_group(group: SubGroup) -> Json:
    body: Json = {"name": group.name, **_minimum(group.min_member or 0, group.min_sub_group)}
    if group.parent:
        body["parent"] = group.parent
    topology = _topology(group.topology) if group.topology else {}
    if topology:
        body["topologyConstraint"] = topology
    return body


def _minimum(min_member: int, min_sub_group: int | None) -> Json:
    if min_sub_group is not None:
        return {"minSubGroup": min_sub_group}
    return {"minMember": min_member}


def _topology(topology: Topology) -> Json:
    fields = {
        "topology": topology.name,
        "requiredTopologyLevel": topology.required,
        "preferredTopologyLevel": topology.preferred,
    }
    return {key: value for key, value in fields.items() if value}


def _metadata_patch(existing: Json, desired: Json, settings: Settings) -> Json:
    # Stored labels of queue and pool stay, and a pool label is never added later.
    protected = {settings.queue_label, settings.node_pool_label}
    has_queue = settings.queue_label in labels_of(existing)
    labels = {
        key: value
        for key, value in _differing(labels_of(existing), labels_of(desired)).items()
        if key not in protected or (key == settings.queue_label and not has_queue)
    }
    patch: Json = {"labels": labels} if labels else {}
    annotations = _differing(annotations_of(existing), annotations_of(desired))
    if annotations:
        patch["annotations"] = annotations
    owners = dig(desired, "metadata", "ownerReferences")
    if dig(existing, "metadata", "ownerReferences") != owners:
        patch["ownerReferences"] = owners
    return patch


def _spec_patch(existing: Json, desired: Json) -> Json:
    updates = {key: value for key, value in desired.items() if key not in PROTECTED_FIELDS}
    protected = {*PROTECTED_FIELDS}
    if not dig(desired, "topologyConstraint", "topology"):
        protected.add("topologyConstraint")
        updates.pop("topologyConstraint", None)
    patch: Json = {key: None for key in existing if key not in updates and key not in protected}
    for key, value in updates.items():
        if existing.get(key) == value:
            continue
        patch[key] = _replace_map(existing.get(key), value) if isinstance(value, dict) else value
    return patch


def _replace_map(existing: Any, value: Json) -> Json:
    """Return a merge patch that turns `existing` into `value`."""
    removed = (
        {key: None for key in existing if key not in value} if isinstance(existing, dict) else {}
    )
    return {**removed, **value}


def _differing(existing: dict[str, str], desired: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in desired.items() if existing.get(key) != value}
