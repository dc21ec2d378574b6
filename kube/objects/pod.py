# ruff: noqa: RUF012 - msgspec gives every struct its own copy of an empty default
"""Pods, as far as scheduling, binding and grouping read them."""

from __future__ import annotations

from typing import Any

from msgspec import field

from kube.keys import POD_GROUP
from kube.objects.meta import Condition, KubeObject, KubeStruct, LabelSelector, ObjectMeta

Quantity = str | int | float
#: Of pods that hold nothing any more.
FINISHED_PHASES = ("Succeeded", "Failed")


class ResourceRequirements(KubeStruct, frozen=True, kw_only=True):
    requests: dict[str, Quantity] = {}
    limits: dict[str, Quantity] = {}


class ContainerPort(KubeStruct, frozen=True, kw_only=True):
    container_port: int = 0
    host_port: int = 0
    host_ip: str = field(name="hostIP", default="")
    protocol: str = "TCP"


class KeyRef(KubeStruct, frozen=True, kw_only=True):
    """A reference to a ConfigMap or Secret, whole or by key."""

    name: str = ""
    key: str = ""
    optional: bool = False


class EnvVarSource(KubeStruct, frozen=True, kw_only=True):
    config_map_key_ref: KeyRef | None = None


class EnvVar(KubeStruct, frozen=True, kw_only=True):
    name: str = ""
    value_from: EnvVarSource | None = None


class EnvFromSource(KubeStruct, frozen=True, kw_only=True):
    config_map_ref: KeyRef | None = None


class VolumeMount(KubeStruct, frozen=True, kw_only=True):
    name: str = ""


class Container(KubeStruct, frozen=True, kw_only=True):
    name: str = ""
    restart_policy: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    ports: tuple[ContainerPort, ...] = ()
    env: tuple[EnvVar, ...] = ()
    env_from: tuple[EnvFromSource, ...] = ()
    volume_mounts: tuple[VolumeMount, ...] = ()

    @property
    def is_sidecar(self) -> bool:
        """Return whether an init container is a native sidecar."""
        return self.restart_policy == "Always"


class Toleration(KubeStruct, frozen=True, kw_only=True):
    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class NodeSelectorRequirement(KubeStruct, frozen=True, kw_only=True):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class NodeSelectorTerm(KubeStruct, frozen=True, kw_only=True):
    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(KubeStruct, frozen=True, kw_only=True):
    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class PreferredSchedulingTerm(KubeStruct, frozen=True, kw_only=True):
    weight: int = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(KubeStruct, frozen=True, kw_only=True):
    required: NodeSelector | None = field(
        name="requiredDuringSchedulingIgnoredDuringExecution", default=None
    )
    preferred: tuple[PreferredSchedulingTerm, ...] = field(
        name="preferredDuringSchedulingIgnoredDuringExecution", default=()
    )


class PodAffinityTerm(KubeStruct, frozen=True, kw_only=True):
    label_selector: LabelSelector | None = None
    namespace_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    topology_key: str = ""
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class WeightedPodAffinityTerm(KubeStruct, frozen=True, kw_only=True):
    weight: int = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(KubeStruct, frozen=True, kw_only=True):
    """Serves for affinity and anti-affinity alike."""

    required: tuple[PodAffinityTerm, ...] = field(
        name="requiredDuringSchedulingIgnoredDuringExecution", default=()
    )
    preferred: tuple[WeightedPodAffinityTerm, ...] = field(
        name="preferredDuringSchedulingIgnoredDuringExecution", default=()
    )


class Affinity(KubeStruct, frozen=True, kw_only=True):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class PodResourceClaim(KubeStruct, frozen=True, kw_only=True):
    name: str = ""
    resource_claim_name: str = ""
    resource_claim_template_name: str = ""


class SchedulingGate(KubeStruct, frozen=True, kw_only=True):
    name: str = ""


class PvcSource(KubeStruct, frozen=True, kw_only=True):
    claim_name: str = ""


class ProjectedSource(KubeStruct, frozen=True, kw_only=True):
    config_map: KeyRef | None = None


class ProjectedVolume(KubeStruct, frozen=True, kw_only=True):
    sources: tuple[ProjectedSource, ...] = ()


class EphemeralVolume(KubeStruct, frozen=True, kw_only=True):
    volume_claim_template: dict[str, Any] = {}


class Volume(KubeStruct, frozen=True, kw_only=True):
    name: str = ""
    persistent_volume_claim: PvcSource | None = None
    config_map: KeyRef | None = None
    projected: ProjectedVolume | None = None
    ephemeral: EphemeralVolume | None = None


class TopologySpreadConstraint(KubeStruct, frozen=True, kw_only=True):
    """Not enforced (as in KAI), but part of the scheduling signature."""

    max_skew: int = 1
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None


class WorkloadReference(KubeStruct, frozen=True, kw_only=True):
    """A pod group of a Workload (Kubernetes 1.35); each replica key is a gang of its own."""

    name: str = ""
    pod_group: str = ""
    pod_group_replica_key: str = ""


class SchedulingGroup(KubeStruct, frozen=True, kw_only=True):
    """The PodGroup of `scheduling.k8s.io` that a pod belongs to (Kubernetes 1.36)."""

    pod_group_name: str = ""


class PodSpec(KubeStruct, frozen=True, kw_only=True):
    node_name: str = ""
    scheduler_name: str = ""
    priority_class_name: str = ""
    priority: int | None = None
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    overhead: dict[str, Quantity] = {}
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    scheduling_gates: tuple[SchedulingGate, ...] = ()
    workload_ref: WorkloadReference | None = None
    scheduling_group: SchedulingGroup | None = None
    volumes: tuple[Volume, ...] = ()
    host_network: bool = False
    termination_grace_period_seconds: int | None = None


class ResourceClaimStatus(KubeStruct, frozen=True, kw_only=True):
    name: str = ""
    resource_claim_name: str = ""


class ExtendedClaimStatus(KubeStruct, frozen=True, kw_only=True):
    """Which claim serves the pod's extended resources that device classes provide."""

    resource_claim_name: str = ""
    request_mappings: tuple[dict[str, str], ...] = ()


class PodStatus(KubeStruct, frozen=True, kw_only=True):
    phase: str = ""
    reason: str = ""
    message: str = ""
    nominated_node_name: str = ""
    qos_class: str = ""
    conditions: tuple[Condition, ...] = ()
    resource_claim_statuses: tuple[ResourceClaimStatus, ...] = ()
    extended_resource_claim_status: ExtendedClaimStatus | None = None


class Pod(KubeObject, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    def condition(self, kind: str) -> Condition | None:
        """Return the condition of that type, if the pod has it."""
        return next((item for item in self.status.conditions if item.type == kind), None)

    @property
    def is_finished(self) -> bool:
        return self.status.phase in FINISHED_PHASES

    @property
    def pod_group_key(self) -> str:
        """Return namespace/name of the pod group that the pod names, or "" if it names none."""
        name = self.metadata.annotations.get(POD_GROUP, "")
        return f"{self.metadata.namespace}/{name}" if name else ""
