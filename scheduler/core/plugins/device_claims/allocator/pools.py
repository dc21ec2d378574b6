"""Which devices can be used on a node.

A driver publishes a pool of devices in several slices and replaces them one by one; the generation of the pool
tells new slices from old ones. Only the newest generation counts, and nothing is taken from a pool of which
slices are missing, or which contradicts itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from scheduler.core.cluster.constraints import NodeTerm
from scheduler.core.cluster.device_inputs import Device, DeviceId, DeviceSlice
from scheduler.core.cluster.inputs import NodeInput
from scheduler.core.cluster.matching import matches_any_term


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A device that can be used on a node.

    Attributes
    ----------
    node, node_terms : as its slice or, if that leaves it to its devices, the device itself states it
    """

    id: DeviceId
    device: Device
    pool: Pool
    node: str
    node_terms: tuple[NodeTerm, ...] | None


class Pool:
    """The newest generation of one pool.

    Attributes
    ----------
    is_incomplete : not all of its slices are there yet
    problem : how it contradicts itself, "" if it does not
    counters : (counter set, counter) -> amount that its devices share
    drawing : all devices of the pool that draw from the counters
    """

    __slots__ = ("_slices", "counters", "drawing", "is_incomplete", "name", "problem")

    def __init__(self, name: tuple[str, str], slices: Sequence[DeviceSlice]) -> None:
        generation = max(part.generation for part in slices)
        self._slices = [part for part in slices if part.generation == generation]
        self.name = "/".join(name)
        expected = self._slices[0].pool_slices
        self.is_incomplete = bool(expected) and len(self._slices) != expected
        counter_sets = [item for part in self._slices for item in part.counter_sets]
        self.counters: dict[tuple[str, str], Fraction] = {
            (item.name, counter): amount
            for item in counter_sets
            for counter, amount in item.counters
        }
        self.drawing = [
            candidate
            for part in self._slices
            for candidate in self._candidates(part)
            if candidate.device.draws
        ]
        self.problem = self._problem([item.name for item in counter_sets])

    def nodes(self) -> set[str] | None:
        """Return the names of the nodes that can use the pool; None if each node must be checked."""
        if any(not part.node for part in self._slices):
            return None
        return {part.node for part in self._slices}

    def candidates_on(self, node: NodeInput) -> list[Candidate] | None:
        """Return the devices that a node can use, in the order of the slices.

        None if no slice of the pool concerns the node.
        """
        usable: list[Candidate] = []
        concerns_node = False
        for part in self._slices:
            if part.counter_sets:
                concerns_node = True
            elif part.is_per_device or _reaches(node, part.node, part.node_terms, part.all_nodes):
                usable += [
                    candidate
                    for candidate in self._candidates(part)
                    if not part.is_per_device
                    or _reaches(
                        node, candidate.node, candidate.node_terms, candidate.device.all_nodes
                    )
                ]
                concerns_node = concerns_node or not part.is_per_device
        return usable if usable or concerns_node else None

    def _candidates(self, part: DeviceSlice) -> Iterable[Candidate]:
        for device in part.devices:
            place = device if part.is_per_device else part
            identity = (part.driver, part.pool, device.name)
            yield Candidate(identity, device, self, place.node, place.node_terms)

    def _problem(self, counter_set_names: list[str]) -> str:
        """Return how the pool contradicts itself, "" if it does not."""
        duplicate = _duplicate(counter_set_names)
        if duplicate:
            return f"duplicate counter set name {duplicate}"
        for candidate in self.drawing:
            for drawn in candidate.device.draws:
                for counter, _ in drawn.counters:
                    if (drawn.name, counter) not in self.counters:
                        return f"counter {counter} not found in counter set {drawn.name}"
        return ""


@dataclass(frozen=True, slots=True, eq=False)
class NodePool:
    """The part of a pool that one node can use; without candidates if nothing may be taken from it."""

    pool: Pool
    candidates: tuple[Candidate, ...]
    problem: str


class PoolTable:
    """All pools, and which of them each node can use; computed for a node when it is first needed."""

    def __init__(self, slices: Iterable[DeviceSlice], nodes: Sequence[NodeInput]) -> None:
        by_pool: dict[tuple[str, str], list[DeviceSlice]] = {}
        for part in slices:
            by_pool.setdefault((part.driver, part.pool), []).append(part)
        self._nodes = nodes
        self._pools = [Pool(name, parts) for name, parts in by_pool.items()]
        #: Indices of pools: those to check for every node, and by node name those of one node.
        self._to_check: list[int] = []
        #: Node name -> indices of the pools that name it.
        self._on_node: dict[str, list[int]] = {}
        for index, pool in enumerate(self._pools):
            names = pool.nodes()
            if names is None:
                self._to_check.append(index)
            for name in names or ():
                self._on_node.setdefault(name, []).append(index)
        #: Node -> the parts of pools that it can use.
        self._usable: dict[int, tuple[NodePool, ...]] = {}

    def on(self, node: int) -> tuple[NodePool, ...]:
        """Return the pools that a node can use."""
        usable = self._usable.get(node)
        if usable is None:
            node_input = self._nodes[node]
            indices = sorted([*self._on_node.get(node_input.name, ()), *self._to_check])
            parts = [_part_for(self._pools[index], node_input) for index in indices]
            usable = self._usable[node] = tuple(part for part in parts if part is not None)
        return usable

    def candidate(self, node: int, device: DeviceId) -> Candidate | None:
        """Return a device that a node can use."""
        return next(
            (item for part in self.on(node) for item in part.candidates if item.id == device), None
        )


def _part_for(pool: Pool, node: NodeInput) -> NodePool | None:
    """Return the part of a pool that a node can use; None if the pool does not concern the node."""
    candidates = pool.candidates_on(node)
    if candidates is None:
        return None
    duplicate = _duplicate([candidate.device.name for candidate in candidates])
    problem = pool.problem or (f"duplicate device name {duplicate}" if duplicate else "")
    if pool.is_incomplete or problem:
        candidates = []
    return NodePool(pool, tuple(candidates), problem)


def _duplicate(names: list[str]) -> str:
    """Return a name that occurs twice, "" if none does."""
    return next((name for name, count in Counter(names).items() if count > 1), "")


def _reaches(
    node: NodeInput, name: str, terms: tuple[NodeTerm, ...] | None, all_nodes: bool
) -> bool:
    """Return whether devices that are usable from these nodes can be used on a node."""
    if name:
        return name == node.name
    return all_nodes or (terms is not None and matches_any_term(node, terms))
