"""Objects of resource.k8s.io for the tests of the allocator, and one call that allocates claims."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from scheduler.core.cluster.device_inputs import (
    ClaimAllocation,
    ConstraintKind,
    Device,
    DeviceCapacity,
    DeviceClaim,
    DeviceClass,
    DeviceConstraint,
    DeviceInputs,
    DeviceRequest,
    DeviceSlice,
)
from scheduler.core.cluster.inputs import NodeInput
from scheduler.core.cluster.journal import Journal
from scheduler.core.plugins.device_claims.allocator.allocator import Allocator, Refusal
from scheduler.core.plugins.device_claims.ledger import ClaimLedger

DRIVER = "gpu.test"
GPU = DeviceClass(name="gpu")
NODE = NodeInput(name="n0", labels={"zone": "east"})


def device(name: str, **options: object) -> Device:
    return Device(name=name, **options)  # type: ignore[arg-type]


def pool(*devices: Device, **options: object) -> DeviceSlice:
    """Return a slice of the devices of node n0, or of those that the options name."""
    place = (
        {}
        if {"node", "all_nodes", "node_terms", "is_per_device"} & options.keys()
        else {"node": "n0"}
    )
    return DeviceSlice(driver=DRIVER, devices=devices, **({"pool": "p"} | place | options))  # type: ignore[arg-type]


def claim(*requests: DeviceRequest, name: str = "c", **options: object) -> DeviceClaim:
    return DeviceClaim(name=name, namespace="ns", requests=requests, **options)  # type: ignore[arg-type]


def request(name: str = "r", count: float = 1, **options: object) -> DeviceRequest:
    return DeviceRequest(name=name, device_class="gpu", count=count, **options)  # type: ignore[arg-type]


def same(attribute: str, *requests: str) -> DeviceConstraint:
    return DeviceConstraint(kind=ConstraintKind.MATCH, attribute=attribute, requests=requests)


def distinct(attribute: str, *requests: str) -> DeviceConstraint:
    return DeviceConstraint(kind=ConstraintKind.DISTINCT, attribute=attribute, requests=requests)


def gib(amount: int) -> DeviceCapacity:
    return DeviceCapacity(value=Fraction(amount))


@dataclass
class Cluster:
    """One node with devices, and the claims that hold some of them."""

    slices: Sequence[DeviceSlice]
    classes: Sequence[DeviceClass] = (GPU,)
    held: list[DeviceClaim] = field(default_factory=list)

    def ask(self, *claims: DeviceClaim) -> list[ClaimAllocation] | Refusal:
        """Return what the claims get, without keeping it."""
        inputs = DeviceInputs(classes=tuple(self.classes), slices=tuple(self.slices))
        ledger = ClaimLedger(self.held, Journal())
        return Allocator(inputs, [NODE]).allocate(claims, 0, ledger)

    def give(self, *claims: DeviceClaim) -> list[ClaimAllocation]:
        """Return what the claims get, and let them hold it."""
        allocations = self.ask(*claims)
        assert not isinstance(allocations, Refusal), allocations
        for item, allocation in zip(claims, allocations, strict=True):
            self.held.append(
                DeviceClaim(
                    name=f"{item.name}-{len(self.held)}", namespace="ns", allocation=allocation
                )
            )
        return allocations

    def names(self, *claims: DeviceClaim) -> list[str] | None:
        """Return the names of the devices that the claims get, None if they get none."""
        allocations = self.ask(*claims)
        if isinstance(allocations, Refusal):
            return None
        return [item.device for allocation in allocations for item in allocation.devices]
