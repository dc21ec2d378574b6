"""Grove: the group is taken from the PodGang, in which the operator states which pods form a gang.

The PodGang replaces the top owner, and its references map pod names to subgroups. What a user wrote
on the PodCliqueSet counts where neither the gang nor the pod says anything; only class, preemptibility and
preemption delay of the set come before those of the pod, as in KAI.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kube import keys
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
    PREEMPTIBILITIES,
    base_metadata,
    queue_name,
    stated_duration,
    stated_queue,
)

POD_GANG_LABEL = "grove.io/podgang"
TOPOLOGY_NAME = "grove.io/topology-name"
API_VERSION = "scheduler.grove.io/v1alpha1"


def grove_grouper(ctx: Context) -> Metadata:
    gang = _pod_gang(ctx)
    merged = _with_gaps_filled(gang, ctx.top)
    of_gang = ctx.with_top(gang)
    metadata = base_metadata(of_gang)
    topology_name = annotations_of(gang).get(TOPOLOGY_NAME) or annotations_of(merged).get(
        keys.TOPOLOGY, ""
    )
    leaves = tuple(_leaves(gang, topology_name))
    return replace(
        metadata,
        labels={**labels_of(ctx.top), **metadata.labels},
        annotations={**annotations_of(ctx.top), **metadata.annotations},
        queue=stated_queue(of_gang) or queue_name(ctx),
        staleness_grace=stated_duration(
            ctx, (gang, ctx.pod, ctx.top), keys.STALENESS_GRACE, negative=True
        ),
        min_member=sum(leaf.min_member or 0 for leaf in leaves),
        priority_class=labels_of(merged).get(keys.PRIORITY_CLASS)
        or dig_text(gang, "spec", "priorityClassName")
        or metadata.priority_class,
        preemptibility=_preemptibility(merged) or metadata.preemptibility,
        preemption_delay=_preemption_delay(merged) or metadata.preemption_delay,
        topology=_root_topology(gang, topology_name, annotations_of(merged)),
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
    metadata = {
        **dig_map(gang, "metadata"),
        "labels": {**labels_of(top), **labels_of(gang)},
        "annotations": {**annotations_of(top), **annotations_of(gang)},
    }
    return {**gang, "metadata": metadata}


def _preemptibility(merged: Json) -> str:
    value = labels_of(merged).get(keys.PREEMPTIBILITY, "")
    if value and value.lower() not in PREEMPTIBILITIES:
        raise GroupingError(
            f"invalid preemptibility {value!r} on PodGang {name_of(merged)}: "
            "must be preemptible or non-preemptible"
        )
    return value.lower()


def _preemption_delay(merged: Json) -> str:
    try:
        value = parse_duration(annotations_of(merged).get(keys.PREEMPTION_DELAY, ""))
    except ValueError:
        return ""
    return format_duration(value) if value >= 0 else ""


def _root_topology(gang: Json, name: str, annotations: dict[str, str]) -> Topology:
    """Return the root's own constraint, its blanks filled by annotations; without one the annotations alone count."""
    annotated = topology_from(annotations)
    pack = _pack(dig_map(gang, "spec"), name)
    if pack is None:
        return annotated
    return replace(
        pack,
        required=pack.required or annotated.required,
        preferred=pack.preferred or annotated.preferred,
    )


def _pack(spec: Json, name: str) -> Topology | None:
    pack = dig_map(spec, "topologyConstraint", "packConstraint")
    required, preferred = dig_text(pack, "required"), dig_text(pack, "preferred")
    if not (required or preferred):
        return None
    if not name:
        raise GroupingError("topology name cannot be empty when topology constraints are defined")
    return Topology(name=name, required=required, preferred=preferred)


def _parents(gang: Json, topology_name: str) -> Iterator[SubGroup]:
    for config in dig_list(gang, "spec", "topologyConstraintGroupConfigs"):
        names = dig_list(config, "podGroupNames")
        if names:
            yield SubGroup(
                name=dig_text(config, "name"),
                min_sub_group=len(names),
                topology=_pack(config, topology_name),
            )


def _leaves(gang: Json, topology_name: str) -> Iterator[SubGroup]:
    parents = {
        member: dig_text(config, "name")
        for config in dig_list(gang, "spec", "topologyConstraintGroupConfigs")
        for member in dig_list(config, "podGroupNames")
        if isinstance(member, str)
    }
    for spec in dig_list(gang, "spec", "podgroups"):
        name = dig_text(spec, "name")
        least = count_at(spec, "minReplicas", default=0, below=f"spec.podgroups[name={name}]") or 0
        if least <= 0:
            raise GroupingError(
                f"PodGang {full_name(gang)}: minReplicas of podgroup {name} must be greater than 0, "
                f"got {least}"
            )
        yield SubGroup(
            name=name,
            min_member=least,
            parent=parents.get(name, ""),
            topology=_pack(spec, topology_name),
        )


def _sub_group_of(pod: Json, gang: Json) -> str:
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
