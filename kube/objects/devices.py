# ruff: noqa: RUF012 - msgspec gives every struct its own copy of an empty default
"""Dynamic resource allocation (resource.k8s.io/v1): claims, classes and slices.

Allocations stay plain dicts: the scheduler chooses them and the binder writes them as a whole.
"""

from __future__ import annotations

from typing import Any

from msgspec import field

from kube.objects.meta import KubeObject, KubeStruct
from kube.objects.pod import NodeSelector


class DeviceSelector(KubeStruct, frozen=True, kw_only=True):
    cel: dict[str, str] = {}


class ExactRequest(KubeStruct, frozen=True, kw_only=True):
    device_class_name: str = ""
    allocation_mode: str = "ExactCount"
    count: int = 0
    selectors: tuple[DeviceSelector, ...] = ()
    admin_access: bool = False


class DeviceRequest(KubeStruct, frozen=True, kw_only=True):
    name: str = ""
    exactly: ExactRequest | None = None
    first_available: tuple[dict[str, Any], ...] = ()


class DeviceClaim(KubeStruct, frozen=True, kw_only=True):
    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[dict[str, Any], ...] = ()


class ResourceClaimSpec(KubeStruct, frozen=True, kw_only=True):
    devices: DeviceClaim = DeviceClaim()


class AllocatedDevice(KubeStruct, frozen=True, kw_only=True):
    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""


class AllocatedDevices(KubeStruct, frozen=True, kw_only=True):
    results: tuple[AllocatedDevice, ...] = ()


class AllocationResult(KubeStruct, frozen=True, kw_only=True):
    devices: AllocatedDevices = AllocatedDevices()
    node_selector: NodeSelector | None = None


class ConsumerReference(KubeStruct, frozen=True, kw_only=True):
    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class ClaimStatus(KubeStruct, frozen=True, kw_only=True):
    allocation: dict[str, Any] | None = None
    reserved_for: tuple[ConsumerReference, ...] = ()


class ResourceClaim(KubeObject, frozen=True, kw_only=True):
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ClaimStatus = ClaimStatus()


class DeviceClassSpec(KubeStruct, frozen=True, kw_only=True):
    selectors: tuple[DeviceSelector, ...] = ()
    extended_resource_name: str = ""


class DeviceClass(KubeObject, frozen=True, kw_only=True):
    spec: DeviceClassSpec = DeviceClassSpec()


class Device(KubeStruct, frozen=True, kw_only=True):
    name: str = ""
    attributes: dict[str, dict[str, Any]] = {}
    capacity: dict[str, dict[str, Any]] = {}
    taints: tuple[dict[str, Any], ...] = ()


class ResourcePool(KubeStruct, frozen=True, kw_only=True):
    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


class ResourceSliceSpec(KubeStruct, frozen=True, kw_only=True):
    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str = ""
    all_nodes: bool = False
    node_selector: NodeSelector | None = None
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[dict[str, Any], ...] = field(name="sharedCounters", default=())


class ResourceSlice(KubeObject, frozen=True, kw_only=True):
    spec: ResourceSliceSpec = ResourceSliceSpec()
