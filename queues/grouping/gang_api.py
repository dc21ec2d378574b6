"""Pods that name a gang of Kubernetes' own API: `scheduling.k8s.io` Workload (1.35) or PodGroup (1.36).

The gang decides name and size of the pod group. What it does not state - queue, priority, preemptibility, placement -
comes from the rule of the pod's owner. The pod groups of a Workload start independently of each other (KEP-4671), so
each becomes a pod group of its own and never a subgroup. The names are KAI's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kube import keys
from queues.grouping.base import (
    Context,
    Json,
    Lookups,
    Metadata,
    annotations_of,
    count_at,
    dig_list,
    dig_map,
    dig_text,
    labels_of,
    namespace_of,
    topology_from,
)
from queues.grouping.errors import FieldError, GangMissingError, GroupingError
from queues.grouping.metadata import (
    base_metadata,
    preemptibility,
    priority_class,
    stated_duration,
    stated_queue,
)

WORKLOAD = "Workload"
POD_GROUP = "PodGroup"


@dataclass(frozen=True, slots=True, kw_only=True)
class GangReference:
    """The gang that a pod names.

    Attributes
    ----------
    pod_group, replica_key : which part of a Workload; empty for a PodGroup
    """

    kind: str
    namespace: str
    name: str
    pod_group: str = ""
    replica_key: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


def gang_reference(pod: Json) -> GangReference | None:
    """Return the gang that a pod names in its spec; the newer field wins."""
    namespace = namespace_of(pod)
    group = dig_text(pod, "spec", "schedulingGroup", "podGroupName")
    if group:
        return GangReference(kind=POD_GROUP, namespace=namespace, name=group)
    reference = dig_map(pod, "spec", "workloadRef")
    if not dig_text(reference, "name"):
        return None
    return GangReference(
        kind=WORKLOAD,
        namespace=namespace,
        name=dig_text(reference, "name"),
        pod_group=dig_text(reference, "podGroup"),
        replica_key=dig_text(reference, "podGroupReplicaKey"),
    )


def followed_gang(pod: Json, owners: tuple[Json, ...], lookups: Lookups) -> GangReference | None:
    """Return the gang that a pod names, unless the cluster does not serve it or the pod or its top owner opted out."""
    reference = gang_reference(pod)
    if reference is None or not lookups.serves_gangs(reference.kind):
        return None
    is_ignored = any(
        annotations_of(source).get(keys.IGNORE_GANG) == "true" for source in (pod, *owners[-1:])
    )
    return None if is_ignored else reference


def gang_metadata(
    ctx: Context, reference: GangReference, gang: Json, of_owner: Metadata | None
) -> Metadata:
    """Return the pod group of a pod that names a gang.

    Parameters
    ----------
    of_owner : the pod group by the rule of the owner; None for a pod without owners, or of a kind without pod groups.
        Then the gang counts as the owner, because its pods would not agree on one of them

    Raises
    ------
    GangMissingError : the Workload has no such pod group
    GroupingError : the policy has an invalid size, or the pod group's name belongs to another gang
    """
    policy = _policy(reference, gang)
    try:
        size = count_at(policy, "gang", "minCount", below="policy")
    except FieldError as error:
        raise GroupingError(f"{reference}: {error}") from error
    metadata = of_owner or base_metadata(ctx.with_top(gang))
    identity = _identity(reference, is_gang=size is not None)
    return replace(
        _with_stated(metadata, ctx, gang),
        name=_unused_name(ctx, reference, identity),
        annotations={
            **metadata.annotations,
            **annotations_of(gang),
            keys.GANG: "/".join(identity),
        },
        labels={**metadata.labels, **labels_of(gang)},
        min_member=1 if size is None else size,
        min_sub_group=None,
        sub_groups=(),
        pod_sub_group="",
    )


def _policy(reference: GangReference, gang: Json) -> Json:
    if reference.kind == POD_GROUP:
        return dig_map(gang, "spec", "schedulingPolicy")
    for entry in dig_list(gang, "spec", "podGroups"):
        if dig_text(entry, "name") == reference.pod_group:
            return dig_map(entry, "policy")
    raise GangMissingError(
        f"{reference}, which the pod names, has no pod group {reference.pod_group!r}"
    )


def _identity(reference: GangReference, *, is_gang: bool) -> tuple[str, ...]:
    """Return what tells a pod group from others: without a gang, all replica keys share one pod group."""
    parts = (reference.name, reference.pod_group, reference.replica_key if is_gang else "")
    return (reference.kind, *(part for part in parts if part))


def _unused_name(ctx: Context, reference: GangReference, identity: tuple[str, ...]) -> str:
    """Return the pod group's name, such as `training-workers-0`, unless another gang or user has it."""
    name = "-".join(identity[1:])
    stored = ctx.lookups.pod_group(reference.namespace, name)
    holder = None if stored is None else annotations_of(stored).get(keys.GANG, "somebody else")
    if holder not in (None, "/".join(identity)):
        raise GroupingError(
            f"{reference} needs the pod group {name}, which belongs to {holder}; rename one of them"
        )
    return name


def _with_stated(metadata: Metadata, ctx: Context, gang: Json) -> Metadata:
    """Return the pod group with what labels, annotations and fields of the gang state themselves."""
    class_name = dig_text(gang, "spec", "priorityClassName")
    gang_context = replace(
        ctx, top=gang, owners=(), pod={"spec": {"priorityClassName": class_name}, "metadata": {}}
    )
    # The gang in the place of the pod and its owner, so that only what it states itself is read.
    sources = (gang,)
    topology = topology_from(annotations_of(gang))
    return replace(
        metadata,
        queue=stated_queue(gang_context) or metadata.queue,
        priority_class=priority_class(gang_context, sources, metadata.priority_class),
        preemptibility=preemptibility(gang_context, sources) or metadata.preemptibility,
        preemption_delay=stated_duration(
            gang_context, sources, keys.PREEMPTION_DELAY, negative=False
        )
        or metadata.preemption_delay,
        staleness_grace=stated_duration(gang_context, sources, keys.STALENESS_GRACE, negative=True)
        or metadata.staleness_grace,
        topology=replace(
            metadata.topology,
            name=topology.name or metadata.topology.name,
            required=topology.required or metadata.topology.required,
            preferred=topology.preferred or metadata.topology.preferred,
        ),
    )


def missing_gang(reference: GangReference) -> GangMissingError:
    """Return the error of a pod whose gang does not exist."""
    return GangMissingError(
        f"{reference}, which the pod names, does not exist; the pod waits for it"
    )


def is_placed(pod: Json, lookups: Lookups) -> bool:
    """Return whether a pod is in a pod group that exists."""
    name = annotations_of(pod).get(keys.POD_GROUP)
    return bool(name) and lookups.pod_group(namespace_of(pod), name or "") is not None


def is_claimed(pod: Json, metadata: Metadata) -> bool:
    """Return whether somebody else put a pod into a pod group before it was grouped."""
    return annotations_of(pod).get(keys.POD_GROUP, metadata.name) != metadata.name
