"""Build the input of the core from a worker's store.

A builder caches what it converted, so that a rebuild after a few changes costs little more than one pass over
all objects. The `Snapshot` also holds what a cycle needs besides the core's input: the objects to write back
to, and the bind requests to delete.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from kube.errors import UNREADABLE, BadValueError
from kube.keys import POD_GROUP
from kube.objects.bindrequest import BindRequest
from kube.objects.cluster import PriorityClass
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
from kube.process.set_aside import SetAside, shown_cause
from kube.resources import (
    BINDREQUESTS,
    CONFIGMAPS,
    CSI_DRIVERS,
    CSI_STORAGE_CAPACITIES,
    DEVICE_CLASSES,
    DEVICE_TAINT_RULES,
    NAMESPACES,
    NODE_RESOURCE_TOPOLOGIES,
    NODES,
    PODGROUPS,
    PODS,
    PRIORITY_CLASSES,
    PVCS,
    PVS,
    QUEUES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    STORAGE_CLASSES,
    TOPOLOGIES,
)
from kube.store import StoreView
from queues.workloads.bind_failures import BindFailures
from scheduler.core.cluster.device_inputs import DeviceInputs
from scheduler.core.cluster.inputs import (
    ClusterInput,
    NodeInput,
    OtherPod,
    PlainRequest,
    PodGroupInput,
    TaskInput,
    TopologyInput,
    VolumeInputs,
)
from scheduler.core.cluster.status import ACTIVE_USED, TaskStatus
from scheduler.load import claims, podgroups, slices, volumes
from scheduler.load.bind_memory import BindMemory, bind_memory
from scheduler.load.disruptions import RefusedEviction, disruptions_of
from scheduler.load.nodes import NodeBuilder
from scheduler.load.pods import TaskBuilder
from scheduler.load.queues import QueueBuilder, UsageByQueue
from scheduler.settings.params import ShardParams

APP_LABEL = "app"
#: What the API accepts in a Topology.
MAX_TOPOLOGY_LEVELS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The cluster as one cycle sees it.

    Attributes
    ----------
    cluster : what the core decides on
    pods, groups, queues : the objects behind it, by key, for writing back
    spent_requests : bind requests that failed for good or name a node that is gone; to be deleted
    budget_of : the disruption budget that the eviction of a pod takes from, by uid of the pod
    refused_pods : pods of our groups that cannot be read, by key, with the cause
    binds : the failed binds, which pods wait and which nodes rest because of them
    """

    cluster: ClusterInput
    pods: Mapping[str, Pod]
    groups: Mapping[str, PodGroup]
    queues: Mapping[str, Queue]
    spent_requests: tuple[BindRequest, ...]
    generation: int
    now: float
    refused_pods: Mapping[str, str] = field(default_factory=dict)
    binds: BindMemory = field(default_factory=BindMemory)
    budget_of: Mapping[str, PodDisruptionBudget] = field(default_factory=dict)

    def with_past(self, requests: Mapping[PlainRequest, float]) -> Snapshot:
        """Return the snapshot with what tasks that are gone requested."""
        return replace(self, cluster=replace(self.cluster, past_requests=requests))


@dataclass(slots=True)
class _SortedPods:
    """The pods of a snapshot.

    Attributes
    ----------
    members : tasks by the key of their pod group
    others : pods of no group of ours that occupy one of our nodes
    refused : members that cannot be read, by key, with the cause
    unclear_nodes : nodes of pods that cannot be read, so that their free amounts are unknown
    """

    members: dict[str, list[TaskInput]] = field(default_factory=dict)
    others: list[OtherPod] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    unclear_nodes: set[str] = field(default_factory=set)


@dataclass(slots=True)
class SnapshotBuilder:
    """Builds snapshots for one shard."""

    params: ShardParams
    origin: float
    _tasks: TaskBuilder = field(init=False)
    _nodes: NodeBuilder = field(init=False)
    _queues: QueueBuilder = field(init=False)
    _groups: podgroups.GroupBuilder = field(init=False)
    #: (The topologies they were made from, the aliases).
    _aliases: tuple[Mapping[str, Topology], podgroups.Aliases] | None = None
    #: (The objects they were made from, the devices).
    _devices: tuple[tuple[object, ...], DeviceInputs] | None = None
    _aside: SetAside = field(default_factory=lambda: SetAside("snapshot"))

    def __post_init__(self) -> None:
        """Make the converters, which cache."""
        self._tasks = TaskBuilder(self.params.stuck_in_releasing_s, self.origin)
        self._nodes = NodeBuilder(self.params, self._aside)
        self._queues = QueueBuilder(self.origin, self._aside)
        self._groups = podgroups.GroupBuilder(self.params, self._aside)

    def build(
        self,
        view: StoreView,
        now: float,
        *,
        usage: UsageByQueue | None = None,
        marks: Mapping[str, podgroups.FreshMarks] | None = None,
        refused_evictions: Mapping[str, RefusedEviction] | None = None,
    ) -> Snapshot:
        """Return the snapshot of a store view.

        Parameters
        ----------
        now : Unix time of the cycle
        usage : past consumption by queue, as fractions of the cluster
        marks : timestamps of pod groups, written a moment ago
        refused_evictions : evictions that the API server refused a moment ago, by uid of the pod
        """
        pods = view.of(PODS, Pod)
        nodes = self._node_inputs(view)
        queues = self._own_queues(view)
        node_names = {node.name for node in nodes}
        live, spent = self._bind_requests(view, pods, node_names)
        topologies = view.of(TOPOLOGIES, Topology)
        groups = view.of(PODGROUPS, PodGroup)
        binds = bind_memory(pods, groups, spent, node_names, now)
        shapes = self._groups.shapes(groups, self._level_aliases(topologies))
        sorted_pods = self._sort_pods(
            view, shapes, live, binds.held, podgroups.held_groups(groups, now), node_names, now
        )
        others = sorted_pods.others
        nodes = _close(nodes, sorted_pods.unclear_nodes | binds.resting.keys())
        pod_groups = _pod_groups(view, shapes, sorted_pods.members, marks or {}, now)
        for pod_group in pod_groups:
            others.extend(_placed_orphans(pod_group.invalid_subgroup_tasks, node_names))
        disruptions = disruptions_of(view, refused_evictions or {}, self.params)
        cluster = ClusterInput(
            nodes=nodes,
            queues=self._queues.queues(queues, usage or {}),
            pod_groups=tuple(pod_groups),
            other_pods=tuple(others),
            topologies=self._topology_inputs(topologies),
            devices=self._device_inputs(view),
            volumes=self._volume_inputs(view, pods, node_names),
            disruption_limits=disruptions.limits,
            config_maps=_config_maps(view),
            namespaces={
                name: item.metadata.labels for name, item in view.of(NAMESPACES, KubeObject).items()
            },
            node_pool=self.params.pool_name,
        )
        self._tasks.forget_all_but(pods)
        return Snapshot(
            cluster=cluster,
            pods=pods,
            groups=groups,
            queues=queues,
            spent_requests=tuple(spent),
            refused_pods=sorted_pods.refused,
            binds=binds,
            budget_of=disruptions.budget_of,
            generation=view.generation,
            now=now,
        )

    def _node_inputs(self, view: StoreView) -> tuple[NodeInput, ...]:
        return self._nodes.nodes(
            view.of(NODES, Node),
            slices.dra_gpus(view.of(RESOURCE_SLICES, ResourceSlice).values()),
            view.of(NODE_RESOURCE_TOPOLOGIES, NodeResourceTopology),
        )

    def _own_queues(self, view: StoreView) -> dict[str, Queue]:
        return {
            name: queue
            for name, queue in view.of(QUEUES, Queue).items()
            if self.params.owns(queue.metadata.labels)
        }

    def _topology_inputs(self, topologies: Mapping[str, Topology]) -> tuple[TopologyInput, ...]:
        by_name = [topologies[name] for name in sorted(topologies)]
        return tuple(self._aside.each("Topology", by_name, _topology))

    def _bind_requests(
        self, view: StoreView, pods: Mapping[str, Pod], node_names: set[str]
    ) -> tuple[dict[str, BindRequest], list[BindRequest]]:
        """Split bind requests into live ones, by pod key, and spent ones of this shard."""
        live: dict[str, BindRequest] = {}
        spent: list[BindRequest] = []
        for request in view.of(BINDREQUESTS, BindRequest).values():
            meta = request.metadata
            key = f"{meta.namespace}/{request.spec.pod_name}"
            pod = pods.get(key)
            is_ours = self.params.owns(meta.labels)
            is_orphan = pod is not None and not request.is_for(pod)
            if (
                is_ours and (request.is_failed or request.spec.selected_node not in node_names)
            ) or (is_ours and is_orphan):
                spent.append(request)
            elif not request.is_failed and not is_orphan:
                live[key] = request
        return live, spent

    def _sort_pods(
        self,
        view: StoreView,
        shapes: Mapping[str, podgroups.GroupShape],
        live: Mapping[str, BindRequest],
        held: Mapping[str, BindFailures],
        held_groups: frozenset[str],
        node_names: set[str],
        now: float,
    ) -> _SortedPods:
        """Assign each pod to its group; of the others keep those that occupy one of our nodes."""
        result = _SortedPods()
        resource_claims = view.of(RESOURCE_CLAIMS, ResourceClaim)
        for key, pod in view.of(PODS, Pod).items():
            meta = pod.metadata
            group_name = meta.annotations.get(POD_GROUP, "")
            group_key = f"{meta.namespace}/{group_name}" if group_name else ""
            request = live.get(key)
            is_member = group_key in shapes and pod.status.phase != "Failed"
            node = pod.spec.node_name or (request.spec.selected_node if request else "")
            if not is_member and (node not in node_names or pod.is_finished):
                continue
            try:
                task = self._tasks.task(key, pod, request, resource_claims, now)
            except UNREADABLE as error:
                self._aside.log_once("Pod", key, meta.resource_version, error)
                if is_member:
                    result.refused[key] = shown_cause(error)
                if not pod.is_finished:
                    result.unclear_nodes.add(node)
                continue
            if (key in held or group_key in held_groups) and task.status is TaskStatus.PENDING:
                # For the core a pod that waits for its next attempt, or that a person holds back, is like one with
                # a scheduling gate.
                task = replace(task, status=TaskStatus.GATED)
            if is_member:
                result.members.setdefault(group_key, []).append(task)
            elif ACTIVE_USED[task.status]:
                result.others.append(self._other_pod(pod, task))
        return result

    def _other_pod(self, pod: Pod, task: TaskInput) -> OtherPod:
        params = self.params
        return OtherPod(
            task=task,
            is_foreign=pod.spec.scheduler_name != params.scheduler_name,
            is_reservation=pod.metadata.labels.get(APP_LABEL) == params.reservation_app_label,
        )

    def _level_aliases(self, topologies: Mapping[str, Topology]) -> podgroups.Aliases:
        """Return the same aliases object as long as no topology changed, because shapes are cached by it."""
        if self._aliases is None or self._aliases[0] is not topologies:
            aliases = podgroups.level_aliases(topologies)
            is_same = self._aliases is not None and self._aliases[1] == aliases
            current = self._aliases[1] if self._aliases is not None and is_same else aliases
            self._aliases = (topologies, current)
        return self._aliases[1]

    def _device_inputs(self, view: StoreView) -> DeviceInputs:
        classes = view.of(DEVICE_CLASSES, DeviceClass)
        published = view.of(RESOURCE_SLICES, ResourceSlice)
        claimed = view.of(RESOURCE_CLAIMS, ResourceClaim)
        rules = view.of(DEVICE_TAINT_RULES, DeviceTaintRule)
        sources = (classes, published, claimed, rules, view.absent)
        if self._devices is None or any(
            old is not new and old != new
            for old, new in zip(self._devices[0], sources, strict=True)
        ):
            devices = claims.device_inputs(
                [classes[name] for name in sorted(classes)],
                [published[name] for name in sorted(published)],
                [claimed[name] for name in sorted(claimed)],
                [rules[name] for name in sorted(rules)],
                aside=self._aside,
            )
            is_served = RESOURCE_CLAIMS in view.kinds and RESOURCE_CLAIMS not in view.absent
            self._devices = (sources, replace(devices, available=is_served))
        return self._devices[1]

    def _volume_inputs(
        self, view: StoreView, pods: Mapping[str, Pod], node_names: set[str]
    ) -> VolumeInputs:
        claimed = view.of(PVCS, PersistentVolumeClaim)
        if not claimed:
            return VolumeInputs()
        owners = {
            pod.metadata.uid: pod.metadata.deletion_timestamp is None for pod in pods.values()
        }
        return volumes.volume_inputs(
            claimed.values(),
            view.of(PVS, PersistentVolume),
            view.of(STORAGE_CLASSES, StorageClass),
            view.of(CSI_DRIVERS, CSIDriver),
            view.of(CSI_STORAGE_CAPACITIES, CSIStorageCapacity).values(),
            owners,
            self._aside,
            node_names,
        )


def _close(nodes: tuple[NodeInput, ...], names: set[str]) -> tuple[NodeInput, ...]:
    """Return the nodes, the named ones unschedulable for new pods."""
    if names.isdisjoint(node.name for node in nodes):
        return nodes
    return tuple(
        replace(node, unschedulable=True) if node.name in names else node for node in nodes
    )


def _pod_groups(
    view: StoreView,
    shapes: Mapping[str, podgroups.GroupShape],
    members: Mapping[str, list[TaskInput]],
    marks: Mapping[str, podgroups.FreshMarks],
    now: float,
) -> list[PodGroupInput]:
    classes = view.of(PRIORITY_CLASSES, PriorityClass)
    fallback = podgroups.fallback_priority(classes)
    return [
        podgroups.group_input(
            shapes[key], tuple(members.get(key, ())), classes, fallback, now, marks.get(key)
        )
        for key in sorted(shapes)
    ]


def _topology(item: Topology) -> TopologyInput:
    levels = tuple(level.node_label for level in item.spec.levels)
    if len(levels) > MAX_TOPOLOGY_LEVELS or len(set(levels)) < len(levels):
        raise BadValueError(
            f"expected at most {MAX_TOPOLOGY_LEVELS} levels, each with its own label, got {len(levels)}"
        )
    return TopologyInput(name=item.metadata.name, levels=levels)


def _placed_orphans(tasks: tuple[TaskInput, ...], node_names: set[str]) -> list[OtherPod]:
    """Return the pods of an unknown subgroup that occupy a node; they take no part in their group."""
    return [
        OtherPod(task=task)
        for task in tasks
        if ACTIVE_USED[task.status] and task.node in node_names
    ]


def _config_maps(view: StoreView) -> frozenset[tuple[str, str]] | None:
    if CONFIGMAPS not in view.kinds:
        return None
    config_maps = view.of(CONFIGMAPS, KubeObject).values()
    return frozenset((item.metadata.namespace, item.metadata.name) for item in config_maps)
