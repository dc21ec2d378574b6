"""Build the input of the core from a worker's store.

A builder keeps what it converted: whatever did not change is the same Python object in the next snapshot, so that
the core too can keep what it made from it (ADR 32). Its tables convert only what changed. The `Snapshot` also holds
what a cycle needs besides the core's input: the objects to write back to, and the bind requests to delete.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace

from kube.errors import BadValueError
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
from kube.process.set_aside import SetAside
from kube.resources import (
    CONFIGMAPS,
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
    STORAGE_CLASSES,
    TOPOLOGIES,
)
from kube.store import StoreView
from queues.workloads.run_times import RunTimeLimit
from scheduler.core.cluster.device_inputs import DeviceInputs
from scheduler.core.cluster.inputs import (
    ClusterInput,
    NodeInput,
    OtherPod,
    PlainRequest,
    TaskInput,
    TopologyInput,
    VolumeInputs,
)
from scheduler.core.cluster.status import ACTIVE_USED
from scheduler.load import claims, slices, volumes
from scheduler.load.bind_memory import BindMemory, bind_memory
from scheduler.load.bind_requests import BindRequestTable
from scheduler.load.changes import Memo, same_or_new
from scheduler.load.disruptions import DisruptionInputs, RefusedEviction, disruptions_of
from scheduler.load.nodes import NodeBuilder
from scheduler.load.pod_table import PodSurroundings, PodTable
from scheduler.load.podgroups import Aliases, FreshMarks, GroupTable, level_aliases
from scheduler.load.pods import TaskBuilder
from scheduler.load.queues import QueueBuilder, UsageByQueue
from scheduler.load.run_times import limits_of, with_run_times
from scheduler.settings.params import ShardParams

_NO_VOLUMES = VolumeInputs()
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
    marked_groups : keys of pod groups with an annotation by which pods may have to be evicted
    judged_groups : keys of pod groups whose status says why they wait, or waited
    run_limits : limits of run times by key of the pod group, as `load.run_times.limits_of` returns them
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
    marked_groups: frozenset[str] = frozenset()
    judged_groups: frozenset[str] = frozenset()
    run_limits: Mapping[str, RunTimeLimit | None] = field(default_factory=dict)

    def running_pods(self, groups: Container[str]) -> Iterator[tuple[Pod, str]]:
        """Yield the pods of some pod groups that are on nodes and not on their way out, each with the key of its group."""
        for pod in self.pods.values():
            key, is_deleted = pod.pod_group_key, pod.metadata.deletion_timestamp is not None
            if key in groups and pod.spec.node_name and not pod.is_finished and not is_deleted:
                yield pod, key


@dataclass(slots=True)
class SnapshotBuilder:
    """Builds snapshots for one shard.

    Attributes
    ----------
    origin : Unix time that all times of the core's input count from
    """

    params: ShardParams
    origin: float
    _pods: PodTable = field(init=False)
    _groups: GroupTable = field(init=False)
    _requests: BindRequestTable = field(init=False)
    _nodes: NodeBuilder = field(init=False)
    _queues: QueueBuilder = field(init=False)
    _aside: SetAside = field(default_factory=lambda: SetAside("snapshot"))
    #: What is made anew only when its sources changed.
    _own_queues: Memo[dict[str, Queue]] = field(default_factory=Memo)
    _open_nodes: Memo[tuple[NodeInput, ...]] = field(default_factory=Memo)
    _names: Memo[frozenset[str]] = field(default_factory=Memo)
    _aliases: Memo[Aliases] = field(default_factory=Memo)
    _topologies: Memo[tuple[TopologyInput, ...]] = field(default_factory=Memo)
    _devices: Memo[DeviceInputs] = field(default_factory=Memo)
    _volumes: Memo[VolumeInputs] = field(default_factory=Memo)
    _disruptions: Memo[DisruptionInputs] = field(default_factory=Memo)
    _config_maps: Memo[frozenset[tuple[str, str]] | None] = field(default_factory=Memo)
    _namespaces: Memo[dict[str, dict[str, str]]] = field(default_factory=Memo)
    _refused_evictions: Mapping[str, RefusedEviction] = field(default_factory=dict)
    _others: tuple[OtherPod, ...] = ()

    def __post_init__(self) -> None:
        """Make the tables and converters, which keep what did not change."""
        tasks = TaskBuilder(self.params.stuck_in_releasing_s, self.origin)
        self._pods = PodTable(self.params, tasks, self._aside)
        self._groups = GroupTable(self.params, self.origin, self._aside)
        self._requests = BindRequestTable(self.params)
        self._nodes = NodeBuilder(self.params, self._aside)
        self._queues = QueueBuilder(self.origin, self._aside)

    def build(
        self,
        view: StoreView,
        now: float,
        *,
        usage: UsageByQueue | None = None,
        marks: Mapping[str, FreshMarks] | None = None,
        refused_evictions: Mapping[str, RefusedEviction] | None = None,
        past_requests: Mapping[PlainRequest, float] | None = None,
    ) -> Snapshot:
        """Return the snapshot of a store view.

        Parameters
        ----------
        now : Unix time of the cycle
        usage : past consumption by queue, as fractions of the cluster
        marks : timestamps of pod groups, written a moment ago
        refused_evictions : evictions that the API server refused a moment ago, by uid of the pod
        past_requests : what tasks that are gone requested
        """
        pods, groups = view.of(PODS, Pod), view.of(PODGROUPS, PodGroup)
        nodes = self._node_inputs(view)
        names = self._names.get(lambda: frozenset(node.name for node in nodes), nodes)
        changed_pods = self._pods.follow(view)
        changed_pods |= self._requests.update(view, pods, changed_pods, names)
        spent = self._requests.spent
        binds = bind_memory(pods, groups, spent, names, now, remembering=self._pods.failed_binds)
        changed_groups, toggled = self._groups.follow(view, self._level_aliases(view))
        around = PodSurroundings(
            live=self._requests.live,
            groups=self._groups.shapes,
            held=binds.held.keys(),
            held_groups=self._groups.held(now),
            node_names=names,
        )
        changed_groups |= self._pods.update(changed_pods, toggled, around, now)
        pod_groups = self._groups.inputs(
            changed_groups,
            self._pods.members,
            view.of(PRIORITY_CLASSES, PriorityClass),
            marks or {},
        )
        queues = self._queues_of_shard(view)
        run_limits = limits_of(groups, queues, self.params, self._groups.marked)
        if self.params.keeps_room:
            pod_groups = with_run_times(pod_groups, run_limits, groups, pods, self.origin)
        disruptions = self._disruption_inputs(view, refused_evictions or {})
        cluster = ClusterInput(
            now=now - self.origin,
            nodes=self._nodes.closed(nodes, self._pods.unclear_nodes | binds.resting.keys()),
            queues=self._queues.queues(queues, usage or {}),
            pod_groups=pod_groups,
            other_pods=self._other_pods(names),
            topologies=self._topology_inputs(view),
            devices=self._device_inputs(view),
            volumes=self._volume_inputs(view, names),
            disruption_limits=disruptions.limits,
            config_maps=self._config_map_names(view),
            namespaces=self._namespace_labels(view),
            node_pool=self.params.pool_name,
            past_requests=past_requests or {},
        )
        return Snapshot(
            cluster=cluster,
            pods=pods,
            groups=groups,
            queues=queues,
            spent_requests=spent,
            refused_pods=dict(self._pods.refused),
            binds=binds,
            budget_of=disruptions.budget_of,
            marked_groups=frozenset(self._groups.marked),
            judged_groups=frozenset(self._groups.judged),
            run_limits=run_limits,
            generation=view.generation,
            now=now,
        )

    def _node_inputs(self, view: StoreView) -> tuple[NodeInput, ...]:
        nodes = view.of(NODES, Node)
        published = view.of(RESOURCE_SLICES, ResourceSlice)
        zones = view.of(NODE_RESOURCE_TOPOLOGIES, NodeResourceTopology)
        return self._open_nodes.get(
            lambda: self._nodes.nodes(nodes, slices.dra_gpus(published.values()), zones),
            *(nodes, published, zones),
        )

    def _queues_of_shard(self, view: StoreView) -> dict[str, Queue]:
        queues = view.of(QUEUES, Queue)
        owns = self.params.owns
        return self._own_queues.get(
            lambda: {key: queue for key, queue in queues.items() if owns(queue.metadata.labels)},
            queues,
        )

    def _level_aliases(self, view: StoreView) -> Aliases:
        topologies = view.of(TOPOLOGIES, Topology)
        return self._aliases.get(lambda: level_aliases(topologies), topologies)

    def _topology_inputs(self, view: StoreView) -> tuple[TopologyInput, ...]:
        topologies = view.of(TOPOLOGIES, Topology)
        by_name = [topologies[name] for name in sorted(topologies)]
        return self._topologies.get(
            lambda: tuple(self._aside.each("Topology", by_name, _topology)), topologies
        )

    def _other_pods(self, node_names: Set[str]) -> tuple[OtherPod, ...]:
        """Return the pods outside of pod groups, then those of unknown subgroups; the same tuple if none changed."""
        by_key = self._pods.others
        others = [by_key[key] for key in sorted(by_key)]
        others.extend(_placed_orphans(self._groups.orphans(), node_names))
        self._others = same_or_new(self._others, others)
        return self._others

    def _disruption_inputs(
        self, view: StoreView, refused: Mapping[str, RefusedEviction]
    ) -> DisruptionInputs:
        if refused != self._refused_evictions:
            self._refused_evictions = refused
        refused = self._refused_evictions
        return self._disruptions.get(
            lambda: disruptions_of(view, refused, self.params),
            view.of(POD_DISRUPTION_BUDGETS, PodDisruptionBudget),
            view.of(PODS, Pod),
            refused,
        )

    def _device_inputs(self, view: StoreView) -> DeviceInputs:
        classes = view.of(DEVICE_CLASSES, DeviceClass)
        published = view.of(RESOURCE_SLICES, ResourceSlice)
        device_claims = view.of(RESOURCE_CLAIMS, ResourceClaim)
        rules = view.of(DEVICE_TAINT_RULES, DeviceTaintRule)
        is_served = RESOURCE_CLAIMS in view.kinds and RESOURCE_CLAIMS not in view.absent

        def make() -> DeviceInputs:
            devices = claims.device_inputs(
                [classes[name] for name in sorted(classes)],
                [published[name] for name in sorted(published)],
                [device_claims[name] for name in sorted(device_claims)],
                [rules[name] for name in sorted(rules)],
                aside=self._aside,
            )
            return replace(devices, available=is_served)

        return self._devices.get(make, classes, published, device_claims, rules, is_served)

    def _volume_inputs(self, view: StoreView, node_names: frozenset[str]) -> VolumeInputs:
        volume_claims = view.of(PVCS, PersistentVolumeClaim)
        if not volume_claims:
            return _NO_VOLUMES
        persistent_volumes = view.of(PVS, PersistentVolume)
        classes = view.of(STORAGE_CLASSES, StorageClass)
        drivers = view.of(CSI_DRIVERS, CSIDriver)
        capacities = view.of(CSI_STORAGE_CAPACITIES, CSIStorageCapacity)
        return self._volumes.get(
            lambda: volumes.volume_inputs(
                volume_claims.values(),
                persistent_volumes,
                classes,
                drivers,
                capacities.values(),
                self._pods.is_alive,
                self._aside,
                node_names,
            ),
            *(
                volume_claims,
                persistent_volumes,
                classes,
                drivers,
                capacities,
                view.of(PODS, Pod),
                node_names,
            ),
        )

    def _config_map_names(self, view: StoreView) -> frozenset[tuple[str, str]] | None:
        if CONFIGMAPS not in view.kinds:
            return None
        config_maps = view.of(CONFIGMAPS, KubeObject)
        return self._config_maps.get(
            lambda: frozenset(
                (config_map.metadata.namespace, config_map.metadata.name)
                for config_map in config_maps.values()
            ),
            config_maps,
        )

    def _namespace_labels(self, view: StoreView) -> dict[str, dict[str, str]]:
        namespaces = view.of(NAMESPACES, KubeObject)
        return self._namespaces.get(
            lambda: {name: namespace.metadata.labels for name, namespace in namespaces.items()},
            namespaces,
        )


def _topology(topology: Topology) -> TopologyInput:
    levels = tuple(level.node_label for level in topology.spec.levels)
    if len(levels) > MAX_TOPOLOGY_LEVELS or len(set(levels)) < len(levels):
        raise BadValueError(
            f"expected at most {MAX_TOPOLOGY_LEVELS} levels, each with its own label, got {len(levels)}"
        )
    return TopologyInput(name=topology.metadata.name, levels=levels)


def _placed_orphans(tasks: Iterable[TaskInput], node_names: Set[str]) -> list[OtherPod]:
    """Return the pods of an unknown subgroup that occupy a node; they take no part in their group."""
    return [
        OtherPod(task=task)
        for task in tasks
        if ACTIVE_USED[task.status] and task.node in node_names
    ]
