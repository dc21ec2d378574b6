# ruff: noqa: RUF012 - msgspec gives every struct its own copy of an empty default
"""Volumes as far as binding and storage capacity need them."""

from __future__ import annotations

from msgspec import field

from kube.objects.cluster import ObjectReference
from kube.objects.meta import KubeObject, KubeStruct, LabelSelector
from kube.objects.pod import NodeSelector, Quantity, ResourceRequirements


class PvcSpec(KubeStruct, frozen=True, kw_only=True):
    storage_class_name: str = ""
    volume_name: str = ""
    volume_mode: str = "Filesystem"
    access_modes: tuple[str, ...] = ()
    resources: ResourceRequirements = ResourceRequirements()
    selector: LabelSelector | None = None


class PhaseStatus(KubeStruct, frozen=True, kw_only=True):
    phase: str = ""


class PersistentVolumeClaim(KubeObject, frozen=True, kw_only=True):
    spec: PvcSpec = PvcSpec()
    status: PhaseStatus = PhaseStatus()


class VolumeNodeAffinity(KubeStruct, frozen=True, kw_only=True):
    required: NodeSelector | None = None


class PvSpec(KubeStruct, frozen=True, kw_only=True):
    capacity: dict[str, Quantity] = {}
    storage_class_name: str = ""
    volume_mode: str = "Filesystem"
    access_modes: tuple[str, ...] = ()
    claim_ref: ObjectReference | None = None
    persistent_volume_reclaim_policy: str = "Retain"
    node_affinity: VolumeNodeAffinity | None = None


class PersistentVolume(KubeObject, frozen=True, kw_only=True):
    spec: PvSpec = PvSpec()
    status: PhaseStatus = PhaseStatus()


class TopologyRequirement(KubeStruct, frozen=True, kw_only=True):
    key: str = ""
    values: tuple[str, ...] = ()


class TopologyTerm(KubeStruct, frozen=True, kw_only=True):
    match_label_expressions: tuple[TopologyRequirement, ...] = ()


class StorageClass(KubeObject, frozen=True, kw_only=True):
    provisioner: str = ""
    volume_binding_mode: str = "Immediate"
    allowed_topologies: tuple[TopologyTerm, ...] = ()
    parameters: dict[str, str] = {}


class CsiDriverSpec(KubeStruct, frozen=True, kw_only=True):
    storage_capacity: bool = False


class CSIDriver(KubeObject, frozen=True, kw_only=True):
    spec: CsiDriverSpec = CsiDriverSpec()


class CSIStorageCapacity(KubeObject, frozen=True, kw_only=True):
    storage_class_name: str = ""
    capacity: Quantity = "0"
    maximum_volume_size: Quantity = "0"
    node_topology: LabelSelector | None = field(name="nodeTopology", default=None)
