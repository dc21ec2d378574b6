"""The snapshot of a cluster as the core reads it; there is no other input besides the configuration.

Producers of these values are the snapshot builder (from Kubernetes objects), the loaders of conformance
cases and benchmarks, and the simulator. Units: CPU in millicores, memory and storage in bytes, GPUs in
devices, GPU memory in MiB, other resources in thousandths. Times are seconds on one clock, whose reading at the
start of the cycle is `ClusterInput.now` (`core/times.py`). "Unlimited" is infinity; only producers know of -1.

Producers should share equal `TaskRequest` and `TaskConstraints` objects between tasks. Classes of equal
tasks are then looked up by identity, which keeps opening a session cheap.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf

from scheduler.core.cluster.constraints import NO_CONSTRAINTS, NodeTerm, Taint, TaskConstraints
from scheduler.core.cluster.device_inputs import ClaimAllocation, DeviceInputs
from scheduler.core.cluster.disruption_limits import DisruptionLimit
from scheduler.core.cluster.status import TaskStatus

CPU, MEMORY, GPU, PODS = "cpu", "memory", "gpu", "pods"
DEFAULT_SUBGROUP = "default"
#: Memory of one GPU where the node does not report it, so that a fraction is a percentage.
UNKNOWN_GPU_MEMORY_MIB = 100


# --------------------------------------------------------------------------------------------- tasks


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRequest:
    """What one task requests.

    It uses at most one form of GPU request, except that device claims may come with whole devices.

    Attributes
    ----------
    gpus : whole devices through a device plugin
    gpu_fraction : part of a device, (0, 1], of each of `gpu_devices` devices
    gpu_memory_mib : memory of a device, of each of `gpu_devices` devices; excludes `gpu_fraction`
    mig : resource name -> count, e.g. ("nvidia.com/mig-1g.5gb", 2)
    device_classes : GPU device class -> devices requested by claims (other classes left out)
    other : resource name -> amount for everything else (extended, hugepages, ephemeral storage)
    legacy_mig : it has the old MIG annotation, which is not accounted; such a task fits on no node
    overhead : the part of the amounts that is pod overhead
    overhead_text : the overhead as written in the pod, for messages: ` cpu: 250m memory: 120Mi`
    """

    cpu_milli: float = 0.0
    memory_bytes: float = 0.0
    gpus: float = 0.0
    gpu_fraction: float = 0.0
    gpu_memory_mib: int = 0
    gpu_devices: int = 1
    mig: tuple[tuple[str, float], ...] = ()
    device_classes: tuple[tuple[str, float], ...] = ()
    other: tuple[tuple[str, float], ...] = ()
    legacy_mig: bool = False
    overhead: tuple[tuple[str, float], ...] = ()
    overhead_text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NumaShare:
    """What a task takes from one NUMA zone."""

    zone: str
    amounts: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskInput:
    """One pod. `node` is its node, or the selected node of its pending bind request."""

    name: str
    uid: str
    namespace: str = ""
    status: TaskStatus = TaskStatus.PENDING
    node: str = ""
    subgroup: str = DEFAULT_SUBGROUP
    request: TaskRequest = field(default_factory=TaskRequest)
    constraints: TaskConstraints = NO_CONSTRAINTS
    created: float = 0.0
    labels: Mapping[str, str] = field(default_factory=dict)
    #: GPU group ids of the shared devices it holds; unique on one node only.
    gpu_groups: tuple[str, ...] = ()
    #: `status.nominatedNodeName`: preferred by the scores, and placed there before others (`actions/promises.py`).
    nominated_node: str = ""
    #: From the bind request or, if there is none, from the pod's annotations.
    numa: tuple[NumaShare, ...] = ()
    claim_allocations: tuple[ClaimAllocation, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherPod:
    """A pod on a node that belongs to no pod group of this shard."""

    task: TaskInput
    #: Another scheduler placed it, so its request is subtracted from the total that queues share.
    is_foreign: bool = False
    #: It holds a shared GPU for other pods, so it is charged CPU, memory and a pod slot but no GPU.
    is_reservation: bool = False


# ---------------------------------------------------------------------------------------- pod groups


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyConstraint:
    """Levels are node label keys, not aliases; empty if there is no such constraint."""

    topology: str
    required_level: str = ""
    preferred_level: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSetInput:
    """A leaf of the subgroup tree. Every task belongs to one leaf."""

    name: str = DEFAULT_SUBGROUP
    min_available: int = 1
    topology: TopologyConstraint | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SubGroupInput:
    """An inner node of the subgroup tree; `min_subgroups` None means all direct members."""

    name: str = ""
    min_subgroups: int | None = None
    topology: TopologyConstraint | None = None
    subgroups: tuple[SubGroupInput, ...] = ()
    pod_sets: tuple[PodSetInput, ...] = ()


SINGLE_TASK = SubGroupInput(pod_sets=(PodSetInput(),))


@dataclass(frozen=True, slots=True, kw_only=True)
class PodGroupInput:
    """A gang. Its identity is namespace and name; `uid` breaks ties of age.

    `protects_minimum`: of a preemptible pod group only the tasks above its minimum may be evicted (semi-preemptible).
    """

    name: str
    namespace: str = ""
    uid: str = ""
    queue: str
    priority: int = 50
    preemptible: bool = True
    protects_minimum: bool = False
    created: float = 0.0
    root: SubGroupInput = SINGLE_TASK
    tasks: tuple[TaskInput, ...] = ()
    #: Tasks whose subgroup the tree does not have. They are not scheduled and count nowhere.
    invalid_subgroup_tasks: tuple[TaskInput, ...] = ()
    last_start: float | None = None
    last_eviction: float | None = None
    stale_since: float | None = None
    #: How long it may stay stale; None for the shard's default, negative for ever.
    staleness_grace_s: float | None = None
    preemption_delay_s: float = 0.0
    #: Who submitted it; empty if that is not known.
    user: str = ""
    #: After how long it must have ended, counted from its start; None if it may run for ever.
    max_run_time_s: float | None = None
    #: The moment by which its present run must have ended; None if it does not run, or that is not known.
    ends_by: float | None = None

    @property
    def is_semi_preemptible(self) -> bool:
        """Return whether only the tasks above the minimum may be evicted."""
        return self.protects_minimum and self.preemptible


# -------------------------------------------------------------------------------------------- queues


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueAmounts:
    """One resource of a queue: millicores, bytes or devices; infinity is unlimited."""

    quota: float = 0.0
    limit: float = 0.0
    over_quota_weight: float = 0.0
    #: What it held in the past, as a fraction of the cluster.
    usage: float = 0.0


UNLIMITED_AMOUNTS = QueueAmounts(quota=inf, limit=inf, over_quota_weight=1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuModelBounds:
    """Quota and limit of one GPU model in a queue, in devices; None is no bound."""

    model: str
    quota: float | None = None
    limit: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueInput:
    """A node of the queue tree; `parent` empty means a top queue."""

    name: str
    display_name: str = ""
    parent: str = ""
    priority: int = 100
    created: float = 0.0
    cpu: QueueAmounts = QueueAmounts()
    memory: QueueAmounts = QueueAmounts()
    gpu: QueueAmounts = QueueAmounts()
    preempt_min_runtime_s: float | None = None
    reclaim_min_runtime_s: float | None = None
    #: Whether users who hold less of the queue go first in it.
    user_fairness: bool = False
    gpu_models: tuple[GpuModelBounds, ...] = ()


# --------------------------------------------------------------------------------------------- nodes


@dataclass(frozen=True, slots=True, kw_only=True)
class NumaZone:
    """A NUMA zone: what it has and what is free, by name of the resource."""

    zone: str
    allocatable: Mapping[str, float]
    available: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class NumaTopology:
    """The NUMA zones of a node and its Topology Manager settings.

    Attributes
    ----------
    policy : none | best-effort | restricted | single-numa-node
    scope : container | pod
    """

    policy: str = "none"
    scope: str = "container"
    zones: tuple[NumaZone, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeInput:
    """One node. `allocatable` is keyed by cpu, memory, gpu, pods and other resource names.

    Attributes
    ----------
    allocatable : "gpu" includes the devices published through resource slices (`dra_gpus` of them)
    pressures : names of the pressure and network conditions that are true
    gpu_memory_mib : memory of one device, rounded down to a multiple of 100
    gpu_memory_known : False if the label is missing; requests by GPU memory do not fit then
    gpu_count_label : the label nvidia.com/gpu.count, None if missing or no number
    mig_strategy : single | mixed | none
    """

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    allocatable: Mapping[str, float] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    ready: bool = True
    pressures: tuple[str, ...] = ()
    gpu_memory_mib: int = UNKNOWN_GPU_MEMORY_MIB
    gpu_memory_known: bool = True
    gpu_count_label: int | None = None
    dra_gpus: float = 0.0
    mig_enabled: bool = False
    mig_strategy: str = "none"
    is_gpu_worker: bool = False
    is_cpu_worker: bool = False
    numa: NumaTopology | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyInput:
    """A topology; its levels are node label keys, coarsest first."""

    name: str
    levels: tuple[str, ...]


# ------------------------------------------------------------------------------------------- volumes


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeClaim:
    """A persistent volume claim with what the volume rules read.

    Attributes
    ----------
    problem : why no node can be chosen (lost, bound to a missing volume ...), empty if there is no problem
    volume_terms : node affinity of the bound volume, None if it has none or is not bound
    waits_for_consumer : binding is delayed until a node is chosen
    allowed_terms : topologies where the class can provision, None if everywhere
    roomy_terms : topologies whose storage has room for it, None if everywhere or not known
    static_volumes : the volumes that could serve it, best first; None unless only these can
    is_volume_missing : it names a volume that does not exist
    owner_uid, is_owner_deleted : the pod that owns it (ephemeral volumes), and whether that pod is gone
    """

    name: str
    namespace: str = ""
    storage_class: str = ""
    size_bytes: float = 0.0
    phase: str = "Pending"
    problem: str = ""
    volume_terms: tuple[NodeTerm, ...] | None = None
    waits_for_consumer: bool = False
    allowed_terms: tuple[NodeTerm, ...] | None = None
    roomy_terms: tuple[NodeTerm, ...] | None = None
    static_volumes: tuple[str, ...] | None = None
    is_volume_missing: bool = False
    owner_uid: str = ""
    is_owner_deleted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticVolume:
    """A volume that exists and is bound to no claim; `node_terms` None: any node reaches it."""

    name: str
    node_terms: tuple[NodeTerm, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageCapacity:
    """What a storage class can still provision on the nodes its topology selects."""

    name: str
    storage_class: str
    capacity_bytes: float
    node_selector: NodeTerm = field(default_factory=NodeTerm)


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeInputs:
    """Volume claims by name, capacities, the classes with capacity tracking, volumes that claims may get."""

    claims: tuple[VolumeClaim, ...] = ()
    capacities: tuple[StorageCapacity, ...] = ()
    tracked_classes: tuple[str, ...] = ()
    static_volumes: tuple[StaticVolume, ...] = ()


# ------------------------------------------------------------------------------------------- cluster


@dataclass(frozen=True, slots=True)
class PlainRequest:
    """What a task requests of plain devices, as far as the typical mix of requests is concerned.

    Attributes
    ----------
    cpu_milli, share, devices : what it takes: so many devices, and this part of each
    selection : the node selector and the node affinity; None if it has neither
    """

    cpu_milli: float
    share: float
    devices: int
    selection: TaskConstraints | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterInput:
    """Everything one cycle knows: the snapshot."""

    #: The start of the cycle, on the clock of all its times.
    now: float = 0.0
    nodes: tuple[NodeInput, ...] = ()
    queues: tuple[QueueInput, ...] = ()
    pod_groups: tuple[PodGroupInput, ...] = ()
    other_pods: tuple[OtherPod, ...] = ()
    topologies: tuple[TopologyInput, ...] = ()
    devices: DeviceInputs = field(default_factory=DeviceInputs)
    volumes: VolumeInputs = field(default_factory=VolumeInputs)
    disruption_limits: tuple[DisruptionLimit, ...] = ()
    #: (namespace, name) of the config maps that exist; None if not known, then none counts as missing.
    config_maps: frozenset[tuple[str, str]] | None = None
    #: Labels of namespaces, for namespace selectors.
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    #: Name of the node pool in messages.
    node_pool: str = "default"
    #: What tasks that are gone requested -> how many there were; long ago counts for less.
    past_requests: Mapping[PlainRequest, float] = field(default_factory=dict)
