"""Which free devices serve the requests of a claim on one node.

Requests may want devices of different kinds that overlap, so first come first served can fail where a
solution exists. Every wanted device is matched to a free one by augmenting paths, which finds a full
assignment if there is one, and keeps the order of the slices where there is a choice.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from scheduler.core.cluster.constraints import Expression, NodeTerm, Operator
from scheduler.core.cluster.inputs import (
    ClaimAllocation,
    DeviceClaim,
    DeviceClass,
    DeviceInputs,
    DeviceRequest,
    DeviceSlice,
    NodeInput,
)
from scheduler.core.cluster.matching import matches_any_term

DeviceId = tuple[str, str, str]  # driver, pool, device
ALL = "All"


class Allocator:
    """Knows the devices of the cluster; stateless about who holds them."""

    def __init__(self, given: DeviceInputs, nodes: Sequence[NodeInput]) -> None:
        self._classes = {one.name: one for one in given.classes}
        self._matching = given.matching
        self._devices: list[list[DeviceId]] = [
            [
                (one.driver, one.pool, device.name)
                for one in given.slices
                if _reaches(one, node)
                for device in one.devices
            ]
            for node in nodes
        ]
        self._names = [node.name for node in nodes]
        self._local: set[DeviceId] = {
            (one.driver, one.pool, device.name)
            for one in given.slices
            if one.node
            for device in one.devices
        }

    def device_class(self, name: str) -> DeviceClass | None:
        """Return a device class by name."""
        return self._classes.get(name)

    def allocate(
        self, claim: DeviceClaim, node: int, taken: Collection[DeviceId]
    ) -> ClaimAllocation | None:
        """Choose devices of a node for all requests of a claim.

        Parameters
        ----------
        taken : devices that other claims hold

        Returns
        -------
        the allocation, None if the node cannot serve the claim
        """
        free = [device for device in self._devices[node] if device not in taken]
        wanted: list[tuple[str, list[int]]] = []
        for request in claim.requests:
            fitting = [place for place, device in enumerate(free) if self._matches(request, device)]
            if request.mode == ALL:
                everything = [d for d in self._devices[node] if self._matches(request, d)]
                if not fitting or len(fitting) != len(everything):
                    return None
                wanted += [(request.name, [place]) for place in fitting]
            elif request.count > len(fitting):
                return None
            else:
                wanted += [(request.name, fitting)] * int(request.count)
        places = _assign([fitting for _, fitting in wanted])
        if places is None:
            return None
        chosen = [free[place] for place in places]
        is_local = any(device in self._local for device in chosen)
        return ClaimAllocation(
            claim=claim.name,
            namespace=claim.namespace,
            devices=tuple(
                (*device, name) for device, (name, _) in zip(chosen, wanted, strict=True)
            ),
            node_terms=(_on_node(self._names[node]),) if is_local else None,
            requests=claim.requests if claim.is_extended_resource else (),
        )

    def _matches(self, request: DeviceRequest, device: DeviceId) -> bool:
        device_class = self._classes.get(request.device_class)
        if device_class is None:
            return False
        selectors = (*device_class.selectors, *request.selectors)
        if not selectors or self._matching is None:
            return True
        return all((text, *device) in self._matching for text in selectors)


def _reaches(one: DeviceSlice, node: NodeInput) -> bool:
    if one.node:
        return one.node == node.name
    return one.all_nodes or (one.node_terms is not None and matches_any_term(node, one.node_terms))


def _on_node(name: str) -> NodeTerm:
    return NodeTerm(fields=(Expression("metadata.name", Operator.IN, (name,)),))


def _assign(wishes: list[list[int]]) -> list[int] | None:
    """Give each wish a place of its own; None if that cannot be."""
    holder: dict[int, int] = {}

    def seat(wish: int, seen: set[int]) -> bool:
        for place in wishes[wish]:
            if place not in holder and place not in seen:
                holder[place] = wish
                return True
        for place in wishes[wish]:
            if place in seen:
                continue
            seen.add(place)
            if seat(holder[place], seen):
                holder[place] = wish
                return True
        return False

    if not all(seat(wish, set()) for wish in range(len(wishes))):
        return None
    place_of = {wish: place for place, wish in holder.items()}
    return [place_of[wish] for wish in range(len(wishes))]
