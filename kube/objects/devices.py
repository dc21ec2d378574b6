# ruff: noqa: RUF012 - msgspec gives every struct its own copy of an empty default
"""Dynamic resource allocation (resource.k8s.io): claims, classes and slices.

The types also read v1beta1, where the fields of a request stand beside its name (see `DeviceRequest.exact`) and
those of a device under `basic` (see `Device.content`). An allocation in a claim stays a plain dict, because the
scheduler chooses it and the binder writes it as a whole; `AllocationResult` is for those that look into it.
"""

from __future__ import annotations

from typing import Any

from msgspec import field

from kube.objects.meta import Condition, KubeObject, KubeStruct
from kube.objects.pod import NodeSelector, Quantity

# -------------------------------------------------------------------------------------------- claims


class DeviceSelector(KubeStruct, frozen=True, kw_only=True):
    cel: dict[str, str] = {}


class DeviceToleration(KubeStruct, frozen=True, kw_only=True):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class CapacityRequirements(KubeStruct, frozen=True, kw_only=True):
    requests: dict[str, Quantity] = {}


class ExactRequest(KubeStruct, frozen=True, kw_only=True):
    device_class_name: str = ""
    allocation_mode: str = "ExactCount"
    count: int = 0
    selectors: tuple[DeviceSelector, ...] = ()
    admin_access: bool = False
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements = CapacityRequirements()


class SubRequest(ExactRequest, frozen=True, kw_only=True):
    """One alternative of a request."""

    name: str = ""


class DeviceRequest(SubRequest, frozen=True, kw_only=True):
    """A request; its own fields besides the name are those of v1beta1."""

    exactly: ExactRequest | None = None
    first_available: tuple[SubRequest, ...] = ()

    @property
    def exact(self) -> ExactRequest | None:
        """Return what is requested; None if there are alternatives."""
        return self.exactly or (self if self.device_class_name else None)


class DeviceConstraint(KubeStruct, frozen=True, kw_only=True):
    requests: tuple[str, ...] = ()
    match_attribute: str = ""
    distinct_attribute: str = ""


class DeviceConfiguration(KubeStruct, frozen=True, kw_only=True):
    """Settings for a driver, as a class, a claim or an allocation carries them."""

    source: str = ""
    requests: tuple[str, ...] = ()
    opaque: dict[str, Any] | None = None


class DeviceClaim(KubeStruct, frozen=True, kw_only=True):
    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceConfiguration, ...] = ()


class ResourceClaimSpec(KubeStruct, frozen=True, kw_only=True):
    devices: DeviceClaim = DeviceClaim()


class AllocatedDevice(KubeStruct, frozen=True, kw_only=True):
    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool = False
    tolerations: tuple[DeviceToleration, ...] = ()
    share_id: str = field(name="shareID", default="")
    consumed_capacity: dict[str, Quantity] = {}
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()


class AllocatedDevices(KubeStruct, frozen=True, kw_only=True):
    results: tuple[AllocatedDevice, ...] = ()
    config: tuple[DeviceConfiguration, ...] = ()


class AllocationResult(KubeStruct, frozen=True, kw_only=True):
    devices: AllocatedDevices = AllocatedDevices()
    node_selector: NodeSelector | None = None


class ConsumerReference(KubeStruct, frozen=True, kw_only=True):
    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class AllocatedDeviceStatus(KubeStruct, frozen=True, kw_only=True):
    """What the driver reports of a device that a claim holds."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str = field(name="shareID", default="")
    conditions: tuple[Condition, ...] = ()


class ClaimStatus(KubeStruct, frozen=True, kw_only=True):
    allocation: dict[str, Any] | None = None
    reserved_for: tuple[ConsumerReference, ...] = ()
    devices: tuple[AllocatedDeviceStatus, ...] = ()


class ResourceClaim(KubeObject, frozen=True, kw_only=True):
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ClaimStatus = ClaimStatus()


# ------------------------------------------------------------------------------------------- classes


class DeviceClassSpec(KubeStruct, frozen=True, kw_only=True):
    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceConfiguration, ...] = ()
    extended_resource_name: str = ""


class DeviceClass(KubeObject, frozen=True, kw_only=True):
    spec: DeviceClassSpec = DeviceClassSpec()


# ------------------------------------------------------------------------------------------- slices


class Counter(KubeStruct, frozen=True, kw_only=True):
    value: Quantity = 0


class CounterSet(KubeStruct, frozen=True, kw_only=True):
    name: str = ""
    counters: dict[str, Counter] = {}


class CounterConsumption(KubeStruct, frozen=True, kw_only=True):
    counter_set: str = ""
    counters: dict[str, Counter] = {}


class CapacityRange(KubeStruct, frozen=True, kw_only=True):
    min: Quantity | None = None
    max: Quantity | None = None
    step: Quantity | None = None


class CapacityRequestPolicy(KubeStruct, frozen=True, kw_only=True):
    default: Quantity | None = None
    valid_values: tuple[Quantity, ...] = ()
    valid_range: CapacityRange | None = None


class DeviceCapacity(KubeStruct, frozen=True, kw_only=True):
    value: Quantity = 0
    request_policy: CapacityRequestPolicy | None = None


class DeviceTaint(KubeStruct, frozen=True, kw_only=True):
    key: str = ""
    value: str = ""
    effect: str = ""


class DeviceContent(KubeStruct, frozen=True, kw_only=True):
    """Everything about a device but its name; each attribute is a map with one key, the type of its value."""

    attributes: dict[str, dict[str, Any]] = {}
    capacity: dict[str, DeviceCapacity] = {}
    taints: tuple[DeviceTaint, ...] = ()
    consumes_counters: tuple[CounterConsumption, ...] = ()
    node_name: str = ""
    all_nodes: bool = False
    node_selector: NodeSelector | None = None
    binds_to_node: bool = False
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    allow_multiple_allocations: bool = False


class Device(DeviceContent, frozen=True, kw_only=True):
    name: str = ""
    basic: DeviceContent | None = None

    @property
    def content(self) -> DeviceContent:
        """Return everything but the name."""
        return self.basic or self


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
    per_device_node_selection: bool = False
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()


class ResourceSlice(KubeObject, frozen=True, kw_only=True):
    spec: ResourceSliceSpec = ResourceSliceSpec()


# --------------------------------------------------------------------------------------- taint rules


class DeviceTaintSelector(KubeStruct, frozen=True, kw_only=True):
    """Which devices a rule taints; class and selectors exist up to Kubernetes 1.34."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()


class DeviceTaintRuleSpec(KubeStruct, frozen=True, kw_only=True):
    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint = DeviceTaint()


class DeviceTaintRule(KubeObject, frozen=True, kw_only=True):
    spec: DeviceTaintRuleSpec = DeviceTaintRuleSpec()
