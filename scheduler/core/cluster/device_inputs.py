"""Dynamic resource allocation in the snapshot: what drivers publish, what claims request and what they hold.

Amounts of counters and capacities are exact fractions in native units, because they are added and compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from typing import Any

from scheduler.core.cluster.constraints import NodeTerm, Taint

#: driver, pool, device
DeviceId = tuple[str, str, str]
#: (name, amount) pairs
Quantities = tuple[tuple[str, Fraction], ...]

#: Name in allocations of the claim for a pod's extended resources, which the binder is to create.
EXTENDED_CLAIM = "<extended-resources>"

EXACT_COUNT, ALL = "ExactCount", "All"


# ------------------------------------------------------------------------------------------- devices


class Version(str):
    """The value of a version attribute, which is never equal to that of a string attribute."""

    __slots__ = ()


Attribute = str | int | bool | Version


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceCapacity:
    """One capacity of a device, and which amounts of it a request may consume.

    Attributes
    ----------
    default : what a request consumes that does not name the capacity; None for all of it
    valid_values : the amounts that may be consumed, ascending; empty for any
    minimum, maximum, step : the range of amounts that may be consumed; None where there is no bound
    """

    value: Fraction
    default: Fraction | None = None
    valid_values: tuple[Fraction, ...] = ()
    minimum: Fraction | None = None
    maximum: Fraction | None = None
    step: Fraction | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterSet:
    """In a slice, counters that devices of its pool share; in a device, what it draws from such a set."""

    name: str
    counters: Quantities = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One device of a slice.

    Attributes
    ----------
    attributes : by name, with the domain where that is not the driver's
    draws : what the device takes of the shared counters of its pool
    node, all_nodes, node_terms : where it can be used, if its slice states that per device
    is_shareable : several claims may hold it at the same time, each a part of its capacity
    binds_to_node : an allocation of it is tied to the node it was made for
    binding_conditions : its driver sets them once it is prepared for a claim; pods are bound after that
    binding_failure_conditions : its driver sets one of them if it cannot be prepared
    """

    name: str
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    capacity: Mapping[str, DeviceCapacity] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    draws: tuple[CounterSet, ...] = ()
    node: str = ""
    all_nodes: bool = False
    node_terms: tuple[NodeTerm, ...] | None = None
    is_shareable: bool = False
    binds_to_node: bool = False
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceSlice:
    """Devices published by one driver, usable from `node`, from nodes of `node_terms`, or from all.

    Attributes
    ----------
    generation : counts the changes of the pool; slices of an older one are out of date
    pool_slices : how many slices of its generation the pool has; 0 if not stated
    is_per_device : not the slice but each of its devices states from where it can be used
    counter_sets : what devices of the pool draw from; such a slice has no devices
    """

    driver: str
    pool: str
    node: str = ""
    devices: tuple[Device, ...] = ()
    all_nodes: bool = False
    node_terms: tuple[NodeTerm, ...] | None = None
    generation: int = 0
    pool_slices: int = 0
    is_per_device: bool = False
    counter_sets: tuple[CounterSet, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceClass:
    """A device class: CEL selectors, settings for its drivers, and the extended resource it provides if any."""

    name: str
    selectors: tuple[str, ...] = ()
    extended_resource: str = ""
    created: float = 0.0
    settings: tuple[Mapping[str, Any], ...] = ()


# -------------------------------------------------------------------------------------------- claims


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceToleration:
    """A toleration of device taints. An empty key matches every taint, an empty effect every effect."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    seconds: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRequest:
    """One request of a device claim.

    Attributes
    ----------
    name : of an alternative it is `request/alternative`
    mode : ExactCount | All
    selectors : CEL expressions
    is_admin : it accesses devices beside the claims that hold them
    capacity : what each device must have left, and what is consumed of it if it is shareable
    alternatives : requests of which the first that can be served is served, in place of this one
    """

    name: str = "gpu"
    device_class: str = ""
    count: float = 1
    mode: str = EXACT_COUNT
    selectors: tuple[str, ...] = ()
    is_admin: bool = False
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: Quantities = ()
    alternatives: tuple[DeviceRequest, ...] = ()


class ConstraintKind(StrEnum):
    """What the values of an attribute must be across the devices of a claim."""

    MATCH = "matchAttribute"
    DISTINCT = "distinctAttribute"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceConstraint:
    """The devices of `requests` (of all, if empty) have equal or distinct values of an attribute."""

    kind: ConstraintKind
    attribute: str
    requests: tuple[str, ...] = ()


class ConfigSource(StrEnum):
    """Who wrote a configuration."""

    CLASS = "FromClass"
    CLAIM = "FromClaim"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceConfig:
    """Settings for a driver, which only the driver reads; for all requests if `requests` is empty."""

    settings: Mapping[str, Any]
    requests: tuple[str, ...] = ()
    source: ConfigSource = ConfigSource.CLAIM


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocatedDevice:
    """A device that a claim holds.

    Attributes
    ----------
    request : the request that it serves, `request/alternative` for an alternative
    is_admin : other claims may hold it all the same
    share : identifies the part of a shareable device; empty if the claim holds all of it
    consumed : what the part takes of the device's capacity
    binding_conditions, binding_failure_conditions : those of the device
    """

    driver: str
    pool: str
    device: str
    request: str = ""
    is_admin: bool = False
    tolerations: tuple[DeviceToleration, ...] = ()
    share: str = ""
    consumed: Quantities = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()

    @property
    def id(self) -> DeviceId:
        """Return what identifies the device in the cluster."""
        return (self.driver, self.pool, self.device)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimAllocation:
    """Devices allocated to a claim, as the BindRequest carries them.

    Attributes
    ----------
    node_terms : None if usable from every node
    requests : of a claim that does not exist yet (extended resources), from which the binder creates it
    """

    claim: str
    namespace: str
    devices: tuple[AllocatedDevice, ...] = ()
    node_terms: tuple[NodeTerm, ...] | None = None
    configs: tuple[DeviceConfig, ...] = ()
    requests: tuple[DeviceRequest, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceClaim:
    """A ResourceClaim; `allocation` is None until it has devices.

    Attributes
    ----------
    gpus : how many GPUs it counts for in queues
    reserved_for : uids of the pods that the claim is reserved for
    owner_uid : owner pod of a claim made from a template
    """

    name: str
    namespace: str = ""
    uid: str = ""
    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    configs: tuple[DeviceConfig, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    gpus: float = 0.0
    allocation: ClaimAllocation | None = None
    reserved_for: tuple[str, ...] = ()
    owner_uid: str = ""
    is_extended_resource: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceInputs:
    """Dynamic resource allocation: all its objects.

    Attributes
    ----------
    available : False if the API server does not serve these kinds
    matching : (selector, driver, pool, device) tuples that match; None if no selector was evaluated.
        Whoever builds the snapshot evaluates the CEL selectors
    """

    available: bool = True
    classes: tuple[DeviceClass, ...] = ()
    slices: tuple[DeviceSlice, ...] = ()
    claims: tuple[DeviceClaim, ...] = ()
    matching: frozenset[tuple[str, str, str, str]] | None = None
