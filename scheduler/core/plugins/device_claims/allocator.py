"""Which free devices serve the requests of a claim on one node.

Requests may accept overlapping sets of devices, so serving them in turn can fail where a solution exists.
Every requested device is matched to a free one by augmenting paths, which finds a full assignment if there
is one, and keeps the order of the slices where there is a choice.
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
    """Chooses among the devices of the cluster; which of them are held is a parameter."""

    def __init__(self, inputs: DeviceInputs, nodes: Sequence[NodeInput]) -> None:
        self._classes = {device_class.name: device_class for device_class in inputs.classes}
        self._matching = inputs.matching
        self._devices: list[list[DeviceId]] = [
            [
                (part.driver, part.pool, device.name)
                for part in inputs.slices
                if _reaches(part, node)
                for device in part.devices
            ]
            for node in nodes
        ]
        self._names = [node.name for node in nodes]
        self._local: set[DeviceId] = {
            (part.driver, part.pool, device.name)
            for part in inputs.slices
            if part.node
            for device in part.devices
        }

    def device_class(self, name: str) -> DeviceClass | None:
        """Return a device class by name."""
        return self._classes.get(name)

    def allocate(
        self, claim: DeviceClaim, node: int, held: Collection[DeviceId]
    ) -> ClaimAllocation | None:
        """Choose devices of a node for all requests of a claim.

        Parameters
        ----------
        held : devices that other claims hold

        Returns
        -------
        the allocation, None if the node cannot serve the claim
        """
        free = [device for device in self._devices[node] if device not in held]
        wanted: list[tuple[str, list[int]]] = []
        for request in claim.requests:
            fitting = [index for index, device in enumerate(free) if self._matches(request, device)]
            if request.mode == ALL:
                everything = [d for d in self._devices[node] if self._matches(request, d)]
                if not fitting or len(fitting) != len(everything):
                    return None
                wanted += [(request.name, [index]) for index in fitting]
            elif request.count > len(fitting):
                return None
            else:
                wanted += [(request.name, fitting)] * int(request.count)
        indices = _assign([fitting for _, fitting in wanted])
        if indices is None:
            return None
        chosen = [free[index] for index in indices]
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


def _reaches(part: DeviceSlice, node: NodeInput) -> bool:
    """Return whether the devices of a slice can be used on a node."""
    if part.node:
        return part.node == node.name
    terms = part.node_terms
    return part.all_nodes or (terms is not None and matches_any_term(node, terms))


def _on_node(name: str) -> NodeTerm:
    return NodeTerm(fields=(Expression("metadata.name", Operator.IN, (name,)),))


def _assign(options: list[list[int]]) -> list[int] | None:
    """Assign to each request one of its options, no two the same; None if that is impossible."""
    holder: dict[int, int] = {}

    def assign(request: int, visited: set[int]) -> bool:
        for option in options[request]:
            if option not in holder and option not in visited:
                holder[option] = request
                return True
        for option in options[request]:
            if option in visited:
                continue
            visited.add(option)
            if assign(holder[option], visited):
                holder[option] = request
                return True
        return False

    if not all(assign(request, set()) for request in range(len(options))):
        return None
    option_of = {request: option for option, request in holder.items()}
    return [option_of[request] for request in range(len(options))]
