"""Which pod holds which device of a node, as the device manager of a kubelet would keep it.

Every GPU has a UUID that depends only on node and index, so that it is the same after a restart.
A pod keeps its devices from admission until it has ended or is gone; a pod that asks for more than
is free is refused, which is how a double booking by a scheduler shows.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field

_NAMESPACE = uuid.UUID("6f0f5f0a-5a0e-4c35-9d7c-0b6c3f1b7a11")


class DevicesUnavailableError(Exception):
    """A pod wants more devices of a kind than its node has free."""

    def __init__(self, resource: str, requested: int, available: int) -> None:
        super().__init__(
            f"Allocate failed due to requested number of devices unavailable for {resource}. "
            f"Requested: {requested}, Available: {available}, which is unexpected"
        )
        self.resource = resource


def device_id(node: str, resource: str, index: int) -> str:
    """Return the stable id of one device, in the form the NVIDIA driver uses."""
    return f"GPU-{uuid.uuid5(_NAMESPACE, f'{node}/{resource}/{index}')}"


@dataclass(slots=True)
class DeviceBook:
    """The devices of all nodes and who holds them; not safe to share between threads."""

    _free: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    _held: dict[str, dict[tuple[str, str], list[str]]] = field(default_factory=dict)

    def set_capacity(self, node: str, counts: Mapping[str, int]) -> None:
        """Take over what a node offers; devices that are held stay held."""
        for resource, count in counts.items():
            held = {
                device
                for slots in self._held.values()
                for device in slots.get((node, resource), ())
            }
            ids = [device_id(node, resource, index) for index in range(count)]
            self._free[node, resource] = [device for device in ids if device not in held]

    def forget_node(self, node: str) -> None:
        for slot in [slot for slot in self._free if slot[0] == node]:
            del self._free[slot]

    def holds(self, holder: str) -> bool:
        return holder in self._held

    def take(self, holder: str, node: str, requests: Mapping[str, int]) -> list[str]:
        """Give devices to a pod and return the ids of its GPUs; all or nothing.

        Raises
        ------
        DevicesUnavailableError : not enough of one kind is free; nothing was taken
        """
        for resource, count in requests.items():
            free = self._free.get((node, resource), [])
            if count > len(free):
                raise DevicesUnavailableError(resource, count, len(free))
        taken: dict[tuple[str, str], list[str]] = {}
        for resource, count in requests.items():
            free = self._free[node, resource]
            taken[node, resource] = free[:count]
            del free[:count]
        self._held[holder] = taken
        return [device for devices in taken.values() for device in devices]

    def take_named(self, holder: str, node: str, resource: str, device: str) -> None:
        """Note that a pod holds this very device already (after a restart of the simulator)."""
        free = self._free.get((node, resource), [])
        if device in free:
            free.remove(device)
        self._held[holder] = {(node, resource): [device]}

    def give_back(self, holder: str) -> None:
        """Free what a pod holds; nothing happens when it holds nothing."""
        for slot, devices in self._held.pop(holder, {}).items():
            if slot in self._free:
                self._free[slot] = sorted([*self._free[slot], *devices])
