"""Grove: the group is taken from the PodGang, in which the operator states which pods form a gang.

The PodGang replaces the top owner, and its references map pod names to subgroups. What a user wrote
on the PodCliqueSet counts where neither the gang nor the pod says anything; only priority class,
preemptibility and preemption delay of the PodCliqueSet come before those of the pod, as in KAI.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kube import keys
from kube.objects.podgroup import PREEMPTIBILITIES
from kube.values.durations import format_duration, parse_duration
from queues.grouping.base import (
    Context,
    Json,
    Metadata,
    SubGroup,
    Topology,
    annotations_of,
    count_at,
    dig_list,
    dig_map,
    dig_text,
    full_name,
    labels_of,
    name_of,
    namespace_of,
    topology_from,
)
from queues.grouping.errors import GroupingError, NotReadableError, ReadError
from queues.grouping.metadata import (
    base_metadata,
    queue_name,
    stated_duration,
    stated_queue,
)

POD_GANG_LABEL = "grove.io/podgang"
TOPOLOGY_NAME = "grove.io/topology-name"
API_VERSION = "scheduler.grove.io/v1alpha1"


def grove_grouper(ctx: Context) -> Metadata:
    """Return the pod group of a pod that a PodCliqueSet owns.

    Raises
    ------
    GroupingError : the pod names no PodGang, or the PodGang cannot be read or is not valid
    """
    gang = _pod_gang(ctx)
    gang_over_top = _with_gaps_filled(gang, ctx.top)
    gang_ctx = ctx.with_top(gang)
    metadata = base_metadata(gang_ctx)
    topology_name = annotations_of(gang).get(TOPOLOGY_NAME) or annotations_of(gang_over_top).get(
        keys.TOPOLOGY, ""
    )
    leaves = tuple(_leaves(gang, topology_name))
    return replace(
        metadata,
        labels={**labels_of(ctx.top), **metadata.labels},
        annotations={**annotations_of(ctx.top), **metadata.annotations},
        queue=stated_queue(gang_ctx) or queue_name(ctx),
        staleness_grace=stated_duration(
            ctx, (gang, ctx.pod, ctx.top), keys.STALENESS_GRACE, negative=True
        ),
        min_member=sum(leaf.min_member or 0 for leaf in leaves),
        priority_class=labels_of(gang_over_top).get(keys.PRIORITY_CLASS)
        or dig_text(gang, "spec", "priorityClassName")
        or metadata.priority_class,
        preemptibility=_preemptibility(gang_over_top) or metadata.preemptibility,
        preemption_delay=_preemption_delay(gang_over_top) or metadata.preemption_delay,
        topology=_root_topology(gang, topology_name, annotations_of(gang_over_top)),
        sub_groups=(*_parents(gang, topology_name), *leaves),
        pod_sub_group=_sub_group_of(ctx.pod, gang),
    )


def _pod_gang(ctx: Context) -> Json:
    name = labels_of(ctx.pod).get(POD_GANG_LABEL)
    if not name:
        raise GroupingError(f'pod {full_name(ctx.pod)} missing required label "{POD_GANG_LABEL}"')
    namespace = namespace_of(ctx.pod)
    try:
        gang = ctx.lookups.get(API_VERSION, "PodGang", namespace, name)
    except (ReadError, NotReadableError) as error:
        raise GroupingError(f"failed to get PodGang {namespace}/{name}: {error}") from error
    return {"apiVersion": API_VERSION, "kind": "PodGang", **gang}


def _with_gaps_filled(gang: Json, top: Json) -> Json:
    """Return the gang with those labels and annotations of the top owner that it does not set itself."""
    metadata = {
        **dig_map(gang, "metadata"),
        "labels": {**labels_of(top), **labels_of(gang)},
        "annotations": {**annotations_of(top), **annotations_of(gang)},
    }
    return {**gang, "metadata": metadata}


def _preemptibility(gang_over_top: Json) -> str:
    value = labels_of(gang_over_top).get(keys.PREEMPTIBILITY, "")
    if value and value.lower() not in PREEMPTIBILITIES:
        raise GroupingError(
            f"invalid preemptibility {value!r} on PodGang {name_of(gang_over_top)}: "
            f"must be one of {', '.join(sorted(PREEMPTIBILITIES))}"
        )
    return value.lower()


def _preemption_delay(gang_over_top: Json) -> str:
    try:
        value = parse_duration(annotations_of(gang_over_top).get(keys.PREEMPTION_DELAY, ""))
    except ValueError:
        return ""
    return format_duration(value) if value >= 0 else ""


def _root_topology(gang: Json, name: str, annotations: dict[str, str]) -> Topology:
    """Return the constraint of the PodGang; annotations supply the levels, or all of it, if it states none."""
    from_annotations = topology_from(annotations)
    pack = _pack_constraint(dig_map(gang, "spec"), name)
    if pack is None:
        return from_annotations
    return replace(
        pack,
        required=pack.required or from_annotations.required,
        preferred=pack.preferred or from_annotations.preferred,
    )


def _pack_constraint(spec: Json, name: str) -> Topology | None:
    pack = dig_map(spec, "topologyConstraint", "packConstraint")
    required, preferred = dig_text(pack, "required"), dig_text(pack, "preferred")
    if not (required or preferred):
        return None
    if not name:
        raise GroupingError("topology name cannot be empty when topology constraints are defined")
    return Topology(name=name, required=required, preferred=preferred)


def _parents(gang: Json, topology_name: str) -> Iterator[SubGroup]:
    """Yield the subgroups that put several podgroups of a PodGang under one topology constraint."""
    for config in dig_list(gang, "spec", "topologyConstraintGroupConfigs"):
        names = dig_list(config, "podGroupNames")
        if names:
            yield SubGroup(
                name=dig_text(config, "name"),
                min_sub_group=len(names),
                topology=_pack_constraint(config, topology_name),
            )


def _leaves(gang: Json, topology_name: str) -> Iterator[SubGroup]:
    """Yield a subgroup for each podgroup of a PodGang."""
    parents = {
        member: dig_text(config, "name")
        for config in dig_list(gang, "spec", "topologyConstraintGroupConfigs")
        for member in dig_list(config, "podGroupNames")
        if isinstance(member, str)
    }
    for spec in dig_list(gang, "spec", "podgroups"):
        name = dig_text(spec, "name")
        min_replicas = (
            count_at(spec, "minReplicas", default=0, below=f"spec.podgroups[name={name}]") or 0
        )
        if min_replicas <= 0:
            raise GroupingError(
                f"PodGang {full_name(gang)}: minReplicas of podgroup {name} must be greater than 0, "
                f"got {min_replicas}"
            )
        yield SubGroup(
            name=name,
            min_member=min_replicas,
            parent=parents.get(name, ""),
            topology=_pack_constraint(spec, topology_name),
        )


def _sub_group_of(pod: Json, gang: Json) -> str:
    """Return the name of the last podgroup that refers to a pod; "" if none does."""
    sub_group = ""
    for spec in dig_list(gang, "spec", "podgroups"):
        for reference in dig_list(spec, "podReferences"):
            namespace = dig_text(reference, "namespace") or namespace_of(gang)
            if namespace != namespace_of(pod):
                raise GroupingError(
                    f"PodGang {full_name(gang)} refers to pod {namespace}/{dig_text(reference, 'name')} "
                    f"outside its namespace"
                )
            if dig_text(reference, "name") == name_of(pod):
                sub_group = dig_text(spec, "name")
    return sub_group
