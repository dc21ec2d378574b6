"""The kinds a scheduling worker follows, and which of them a cluster may lack."""

from __future__ import annotations

from dataclasses import dataclass

from kube.objects.bindrequest import BindRequest
from kube.objects.cluster import PriorityClass
from kube.objects.config import Config, SchedulingShard
from kube.objects.devices import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from kube.objects.meta import KubeObject
from kube.objects.node import Node
from kube.objects.pod import Pod
from kube.objects.podgroup import PodGroup
from kube.objects.policy import PodDisruptionBudget
from kube.objects.queue import Queue
from kube.objects.storage import (
    CSIDriver,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from kube.objects.topology import NodeResourceTopology, Topology
from kube.resources import (
    BINDREQUESTS,
    CONFIGMAPS,
    CONFIGS,
    CSI_DRIVERS,
    CSI_STORAGE_CAPACITIES,
    DEVICE_CLASSES,
    DEVICE_TAINT_RULES,
    NAMESPACES,
    NODE_RESOURCE_TOPOLOGIES,
    NODES,
    POD_DISRUPTION_BUDGETS,
    PODGROUPS,
    PODS,
    PRIORITY_CLASSES,
    PVCS,
    PVS,
    QUEUES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    SHARDS,
    STORAGE_CLASSES,
    TOPOLOGIES,
    Resource,
)


@dataclass(frozen=True, slots=True)
class WatchedKind:
    """One kind to follow.

    Attributes
    ----------
    is_optional : a cluster that does not serve the kind counts as having none of it
    wakes : a change of this kind is worth a cycle at once
    archived_as : its name among the raw objects of a saved snapshot, which is KAI's; empty: not kept
    """

    resource: Resource
    as_type: type[KubeObject]
    is_optional: bool = False
    wakes: bool = False
    field_selector: str = ""
    archived_as: str = ""


WATCHED = (
    WatchedKind(PODS, Pod, wakes=True, field_selector="status.phase!=Failed", archived_as="pods"),
    WatchedKind(NODES, Node, wakes=True, archived_as="nodes"),
    WatchedKind(QUEUES, Queue, wakes=True, archived_as="queues"),
    WatchedKind(PODGROUPS, PodGroup, wakes=True, archived_as="podGroups"),
    # A failed request does not start a cycle: otherwise a pod that always fails to bind would cause one after another.
    WatchedKind(BINDREQUESTS, BindRequest, archived_as="bindRequests"),
    WatchedKind(PRIORITY_CLASSES, PriorityClass, archived_as="priorityClasses"),
    WatchedKind(SHARDS, SchedulingShard, is_optional=True),
    WatchedKind(CONFIGS, Config, is_optional=True),
    WatchedKind(
        POD_DISRUPTION_BUDGETS,
        PodDisruptionBudget,
        is_optional=True,
        archived_as="podDisruptionBudgets",
    ),
    WatchedKind(TOPOLOGIES, Topology, is_optional=True, wakes=True, archived_as="topologies"),
    WatchedKind(CONFIGMAPS, KubeObject, archived_as="configMaps"),
    WatchedKind(NAMESPACES, KubeObject, archived_as="namespaces"),
    WatchedKind(PVCS, PersistentVolumeClaim, archived_as="persistentVolumeClaims"),
    WatchedKind(PVS, PersistentVolume, archived_as="persistentVolumes"),
    WatchedKind(STORAGE_CLASSES, StorageClass, archived_as="storageClasses"),
    WatchedKind(CSI_DRIVERS, CSIDriver, archived_as="csiDrivers"),
    WatchedKind(CSI_STORAGE_CAPACITIES, CSIStorageCapacity, archived_as="csiStorageCapacities"),
    WatchedKind(
        RESOURCE_CLAIMS, ResourceClaim, is_optional=True, wakes=True, archived_as="resourceClaims"
    ),
    WatchedKind(
        RESOURCE_SLICES, ResourceSlice, is_optional=True, wakes=True, archived_as="resourceSlices"
    ),
    WatchedKind(DEVICE_CLASSES, DeviceClass, is_optional=True, archived_as="deviceClasses"),
    WatchedKind(
        DEVICE_TAINT_RULES,
        DeviceTaintRule,
        is_optional=True,
        wakes=True,
        archived_as="deviceTaintRules",
    ),
    WatchedKind(
        NODE_RESOURCE_TOPOLOGIES,
        NodeResourceTopology,
        is_optional=True,
        archived_as="nodeResourceTopologies",
    ),
)
