"""Ray: a head and its worker groups start together; their sizes are in the RayCluster.

The operator creates a RayCluster for a RayJob or RayService and writes its name to the status. A pod may be
processed before that; this is an error, and a later retry succeeds.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace

from queues.grouping.base import (
    Context,
    Json,
    Metadata,
    SubGroup,
    Topology,
    count_at,
    dig,
    dig_list,
    dig_map,
    dig_strings,
    dig_text,
    full_name,
    labels_of,
    namespace_of,
    topology_from,
)
from queues.grouping.errors import GroupingError, NotReadableError, ReadError
from queues.grouping.metadata import base_metadata

logger = logging.getLogger(__name__)

GROUP_LABEL = "ray.io/group"
PRIORITY_LABEL = "ray.io/priority-class-name"
HEAD_GROUP = "headgroup"


def ray_cluster_grouper(ctx: Context) -> Metadata:
    return _ray_metadata(ctx, lambda top: top)


def ray_job_grouper(ctx: Context) -> Metadata:
    return _ray_metadata(
        ctx, lambda top: _cluster_of(ctx, dig_text(top, "status", "rayClusterName"))
    )


def ray_service_grouper(ctx: Context) -> Metadata:
    def find(top: Json) -> Json:
        active = dig_text(top, "status", "activeServiceStatus", "rayClusterName")
        pending = dig_text(top, "status", "pendingServiceStatus", "rayClusterName")
        return _cluster_of(ctx, active or pending)

    return _ray_metadata(ctx, find)


def _ray_metadata(ctx: Context, find_cluster: Callable[[Json], Json]) -> Metadata:
    metadata = base_metadata(ctx)
    cluster = find_cluster(ctx.top)
    groups = (_head_group(cluster), *_worker_groups(cluster))
    joined = labels_of(ctx.pod).get(GROUP_LABEL, "")
    stored = ctx.lookups.pod_group(namespace_of(ctx.pod), metadata.name)
    # A group created before subgroups were supported stays flat, because its running pods name no subgroup.
    flat = stored is not None and not dig_list(stored, "spec", "subGroups")
    in_group = not flat and any(group.name == joined for group in groups)
    if not flat and not in_group:
        logger.info(
            "pod %s joins no group of %s: label %s is %r",
            full_name(ctx.pod),
            metadata.name,
            GROUP_LABEL,
            joined,
        )
    return replace(
        metadata,
        min_member=sum(group.min_member or 0 for group in groups),
        priority_class=labels_of(ctx.top).get(PRIORITY_LABEL) or metadata.priority_class,
        sub_groups=() if flat else groups,
        pod_sub_group=joined if in_group else "",
    )


def _cluster_of(ctx: Context, name: str) -> Json:
    if not name:
        raise GroupingError(
            f"failed to extract rayClusterName for {full_name(ctx.top)} of kind "
            f"{dig_text(ctx.top, 'kind')}. Please make sure that the ray-operator is up and a "
            "rayCluster child-object has been created"
        )
    namespace = namespace_of(ctx.pod)
    try:
        return ctx.lookups.get(dig_text(ctx.top, "apiVersion"), "RayCluster", namespace, name)
    except (ReadError, NotReadableError) as error:
        raise GroupingError(f"failed to get RayCluster {namespace}/{name}: {error}") from error


def _head_group(cluster: Json) -> SubGroup:
    template = dig_map(cluster, "spec", "headGroupSpec", "template")
    return SubGroup(name=HEAD_GROUP, min_member=1, topology=_placement(template, HEAD_GROUP))


def _worker_groups(cluster: Json) -> Iterator[SubGroup]:
    for index, spec in enumerate(dig_list(cluster, "spec", "workerGroupSpecs")):
        # KAI reads `suspended`; the field of KubeRay is `suspend`.
        if dig(spec, "suspended") is True or dig(spec, "suspend") is True:
            continue
        path = f"spec.workerGroupSpecs[{index}]"
        min_replicas = count_at(spec, "minReplicas", default=0, below=path) or 0
        replicas = count_at(spec, "replicas", default=min_replicas, below=path) or 0
        if min_replicas > replicas:
            raise GroupingError(
                "ray-cluster replicas for a workerGroupsSpec can't be less than minReplicas. "
                f"Given {replicas} replicas and {min_replicas} minReplicas. "
                f"Please fix the replicas field for group number {index}"
            )
        count = min_replicas or replicas
        if count:
            name = dig_text(spec, "groupName") or f"worker-group-{index}"
            hosts = count_at(spec, "numOfHosts", default=1, below=path) or 1
            topology = _placement(dig_map(spec, "template"), name)
            yield SubGroup(name=name, min_member=count * hosts, topology=topology)


def _placement(template: Json, group: str) -> Topology | None:
    topology = topology_from(dig_strings(template, "metadata", "annotations"))
    if topology.name:
        return topology if topology.required or topology.preferred else None
    if topology.required or topology.preferred:
        raise GroupingError(
            f"topology annotation (kai.scheduler/topology) is required for {group} "
            "when topology placement annotations are set"
        )
    return None
