"""Which pod holds which device of a node, as in the device manager of a kubelet.

Every GPU has a UUID that depends only on node and index, so that it is the same after a restart. A pod
holds its devices from admission until it has ended or is deleted. A pod that requests more devices than
are free is refused, so a scheduler that assigns a device twice is noticed.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field

_NAMESPACE = uuid.UUID("6f0f5f0a-5a0e-4c35-9d7c-0b6c3f1b7a11")


class DevicesUnavailableError(Exception):
    """A pod requests more devices of a kind than are free on its node."""

    def __init__(self, resource: str, requested: int, available: int) -> None:
        super().__init__(
            f"Allocate failed due to requested number of devices unavailable for {resource}. "
            f"Requested: {requested}, Available: {available}, which is unexpected"
        )
        self.resource = resource


def device_id(node: str, resource: str, index: int) -> str:
    """Return the id of one device, in the form of the NVIDIA driver; it never changes."""
    return f"GPU-{uuid.uuid5(_NAMESPACE, f'{node}/{resource}/{index}')}"


@dataclass(slots=True)
class DeviceBook:
    """The devices of all nodes and the pods that hold them; not thread-safe."""

    _free_devices: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    _devices_by_holder: dict[str, dict[tuple[str, str], list[str]]] = field(default_factory=dict)

    def set_capacity(self, node: str, counts: Mapping[str, int]) -> None:
        """Set how many devices a node has; pods keep the devices that they hold."""
        for resource, count in counts.items():
            held_devices = {
                device
                for slots in self._devices_by_holder.values()
                for device in slots.get((node, resource), ())
            }
            ids = [device_id(node, resource, index) for index in range(count)]
            self._free_devices[node, resource] = [
                device for device in ids if device not in held_devices
            ]

    def forget_node(self, node: str) -> None:
        for slot in [slot for slot in self._free_devices if slot[0] == node]:
            del self._free_devices[slot]

    def holds(self, holder: str) -> bool:
        return holder in self._devices_by_holder

    def take(self, holder: str, node: str, requests: Mapping[str, int]) -> list[str]:
        """Assign all requested devices to a pod, or none; return their ids.

        Raises
        ------
        DevicesUnavailableError : too few devices of one kind are free; none was assigned
        """
        for resource, count in requests.items():
            free_devices = self._free_devices.get((node, resource), [])
            if count > len(free_devices):
                raise DevicesUnavailableError(resource, count, len(free_devices))
        devices_of: dict[tuple[str, str], list[str]] = {}
        for resource, count in requests.items():
            free_devices = self._free_devices[node, resource]
            devices_of[node, resource] = free_devices[:count]
            del free_devices[:count]
        self._devices_by_holder[holder] = devices_of
        return [device for devices in devices_of.values() for device in devices]

    def take_named(self, holder: str, node: str, resource: str, device: str) -> None:
        """Record that a pod holds a certain device already (after a restart of the simulator)."""
        free_devices = self._free_devices.get((node, resource), [])
        if device in free_devices:
            free_devices.remove(device)
        self._devices_by_holder[holder] = {(node, resource): [device]}

    def give_back(self, holder: str) -> None:
        """Free the devices of a pod, if it holds any."""
        for slot, devices in self._devices_by_holder.pop(holder, {}).items():
            if slot in self._free_devices:
                self._free_devices[slot] = sorted([*self._free_devices[slot], *devices])
