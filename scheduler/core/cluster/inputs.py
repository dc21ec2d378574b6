"""The snapshot in words the core understands; the one door through which a cluster enters it.

Three producers fill these values: the snapshot builder (Kubernetes objects), the conformance loader and
the benchmark loader. Units: CPU in millicores, memory and storage in bytes, GPUs in devices, GPU memory
in MiB, other resources in thousandths as Kubernetes counts them. Times are seconds relative to the start
of the cycle (negative: past). "Unlimited" is infinity; -1 stays at the border.

Producers should share equal `TaskRequest` and `TaskConstraints` objects between tasks: classes of equal
tasks are then found by identity, which keeps opening a session cheap.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf

from scheduler.core.cluster.constraints import NO_CONSTRAINTS, NodeTerm, Taint, TaskConstraints
from scheduler.core.cluster.status import TaskStatus

CPU, MEMORY, GPU, PODS = "cpu", "memory", "gpu", "pods"
DEFAULT_SUBGROUP = "default"
#: Memory of one GPU where the node does not say: shares then work as percentages.
UNKNOWN_GPU_MEMORY_MIB = 100


# --------------------------------------------------------------------------------------------- tasks


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRequest:
    """What one task asks for; at most one of the GPU forms is used (DRA may join whole devices).

    Attributes
    ----------
    gpus : whole devices through a device plugin
    gpu_fraction : part of a device, (0, 1], of each of `gpu_devices` devices
    gpu_memory_mib : memory of a device, of each of `gpu_devices` devices; excludes `gpu_fraction`
    mig : resource name -> count, e.g. ("nvidia.com/mig-1g.5gb", 2)
    device_classes : GPU device class -> devices asked through claims (non-GPU classes left out)
    other : resource name -> amount for everything else (extended, hugepages, ephemeral storage)
    legacy_mig : the old unaccounted MIG annotation; such a task fits nowhere
    overhead : the part of the amounts that is pod overhead
    overhead_text : the same as people wrote it, for messages: ` cpu: 250m memory: 120Mi`
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


#: Name, in allocations, of the claim made up for a pod's extended resources; the binder creates the real one.
EXTENDED_CLAIM = "<extended-resources>"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimAllocation:
    """Devices given to a claim, as they go into a BindRequest."""

    claim: str
    namespace: str
    #: (driver, pool, device, request name)
    devices: tuple[tuple[str, str, str, str], ...] = ()
    #: None: usable from every node.
    node_terms: tuple[NodeTerm, ...] | None = None
    #: What was asked, for a claim that nobody wrote (extended resources); the binder writes it.
    requests: tuple[DeviceRequest, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskInput:
    """One pod. `node` is where it sits, or the selected node of its live bind request."""

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
    #: Ids of the shared devices it holds; meaningful per node.
    gpu_groups: tuple[str, ...] = ()
    #: status.nominatedNodeName, read for scoring only.
    nominated_node: str = ""
    #: From the bind request or the pod's annotations, newest first choice made by the producer.
    numa: tuple[NumaShare, ...] = ()
    claim_allocations: tuple[ClaimAllocation, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherPod:
    """A pod on a node that belongs to no pod group of this shard."""

    task: TaskInput
    #: Another scheduler placed it: its request leaves the total that queues share.
    is_foreign: bool = False
    #: Holds a shared device for others: charged CPU, memory and slot, never the device.
    is_reservation: bool = False


# ---------------------------------------------------------------------------------------- pod groups


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyConstraint:
    """Levels are node label keys (aliases already replaced); empty means not asked."""

    topology: str
    required_level: str = ""
    preferred_level: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSetInput:
    """A leaf of the subgroup tree; the only place tasks attach to."""

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
    """A gang. Its identity is namespace and name; `uid` breaks ties of age."""

    name: str
    namespace: str = ""
    uid: str = ""
    queue: str
    priority: int = 50
    preemptible: bool = True
    created: float = 0.0
    root: SubGroupInput = SINGLE_TASK
    tasks: tuple[TaskInput, ...] = ()
    #: Tasks that name a subgroup the tree does not have; they take no part in anything.
    invalid_subgroup_tasks: tuple[TaskInput, ...] = ()
    last_start: float | None = None
    last_eviction: float | None = None
    stale_since: float | None = None
    #: None: the shard's default; negative: never evicted for being stale.
    staleness_grace_s: float | None = None
    preemption_delay_s: float = 0.0


# -------------------------------------------------------------------------------------------- queues


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueAmounts:
    """One resource of a queue: millicores, bytes or devices; infinity is unlimited."""

    quota: float = 0.0
    limit: float = 0.0
    over_quota_weight: float = 0.0
    #: Consumption in the past as a fraction of the cluster.
    usage: float = 0.0


UNLIMITED_AMOUNTS = QueueAmounts(quota=inf, limit=inf, over_quota_weight=1.0)


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


# --------------------------------------------------------------------------------------------- nodes


@dataclass(frozen=True, slots=True, kw_only=True)
class NumaZone:
    """A NUMA zone: what it has and what is free, by resource name."""

    zone: str
    allocatable: Mapping[str, float]
    available: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class NumaTopology:
    """policy: none | best-effort | restricted | single-numa-node; scope: container | pod."""

    policy: str = "none"
    scope: str = "container"
    zones: tuple[NumaZone, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeInput:
    """One node. `allocatable` is keyed by cpu, memory, gpu, pods and other resource names.

    Attributes
    ----------
    allocatable : "gpu" includes the devices published through resource slices (`dra_gpus` of them)
    gpu_memory_mib : memory of one device, already floored to a multiple of 100
    gpu_memory_known : False where the label is missing; GPU-memory requests are refused there
    gpu_count_label : nvidia.com/gpu.count if it is a number
    mig_strategy : single | mixed | none
    pressures : names of the pressure and network conditions that are set
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
    """Levels are node label keys, coarsest first."""

    name: str
    levels: tuple[str, ...]


# ------------------------------------------------------------------------------- devices and volumes


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRequest:
    """One request of a claim; `mode` ExactCount | All; only the first available of alternatives."""

    name: str = "gpu"
    device_class: str = ""
    count: float = 1
    mode: str = "ExactCount"
    selectors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceClaim:
    """A ResourceClaim as far as it is known; `allocation` None: nothing given yet."""

    name: str
    namespace: str = ""
    requests: tuple[DeviceRequest, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    allocation: ClaimAllocation | None = None
    #: uids of the pods that hold a reservation.
    reserved_for: tuple[str, ...] = ()
    #: Owner pod (uid) of a claim made from a template.
    owner_uid: str = ""
    is_extended_resource: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One device of a slice with the attributes selectors may read."""

    name: str
    attributes: Mapping[str, str | int | bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceSlice:
    """Devices one driver publishes; an empty `node` means reachable by `node_terms` or from all."""

    driver: str
    pool: str
    node: str = ""
    devices: tuple[Device, ...] = ()
    all_nodes: bool = False
    node_terms: tuple[NodeTerm, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceClass:
    """A device class: CEL selectors and the extended resource it backs."""

    name: str
    selectors: tuple[str, ...] = ()
    extended_resource: str = ""
    created: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceInputs:
    """Dynamic resource allocation of the cluster; `available` False: the API does not serve it."""

    available: bool = True
    classes: tuple[DeviceClass, ...] = ()
    slices: tuple[DeviceSlice, ...] = ()
    claims: tuple[DeviceClaim, ...] = ()
    #: Which text evaluates the CEL selectors is the producer's business; pairs that match.
    matching: frozenset[tuple[str, str, str, str]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeClaim:
    """A persistent volume claim as the volume rules need it.

    Attributes
    ----------
    problem : a verdict that no node can cure (lost, bound to a missing volume ...), empty if none
    volume_terms : node affinity of the bound volume, None if it has none or is not bound
    waits_for_consumer : binding is delayed until a node is chosen
    allowed_terms : topologies where the class can provision, None if everywhere
    roomy_terms : topologies whose storage has room for it, None if everywhere or not known
    is_volume_missing : it names a volume that does not exist
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
    is_volume_missing: bool = False
    owner_uid: str = ""
    is_owner_deleted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageCapacity:
    """What a storage class can still provision on the nodes its topology selects."""

    name: str
    storage_class: str
    capacity_bytes: float
    node_selector: NodeTerm = field(default_factory=NodeTerm)


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeInputs:
    """Volume claims by name, capacities, and the classes that take part in capacity tracking."""

    claims: tuple[VolumeClaim, ...] = ()
    capacities: tuple[StorageCapacity, ...] = ()
    tracked_classes: tuple[str, ...] = ()


# ------------------------------------------------------------------------------------------- cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterInput:
    """Everything one cycle knows."""

    nodes: tuple[NodeInput, ...] = ()
    queues: tuple[QueueInput, ...] = ()
    pod_groups: tuple[PodGroupInput, ...] = ()
    other_pods: tuple[OtherPod, ...] = ()
    topologies: tuple[TopologyInput, ...] = ()
    devices: DeviceInputs = field(default_factory=DeviceInputs)
    volumes: VolumeInputs = field(default_factory=VolumeInputs)
    #: (namespace, name) of the config maps that exist; None: not known, nothing is refused.
    config_maps: frozenset[tuple[str, str]] | None = None
    #: Labels of namespaces, for namespace selectors.
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    #: Name of the node pool in messages.
    node_pool: str = "default"
