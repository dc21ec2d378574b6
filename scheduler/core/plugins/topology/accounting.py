"""Whether domains have room for a set of tasks, and how tight it would be.

There are two ways of counting. Tasks that request the same resources are counted: how many of the largest
fit on each node of the domain. Mixed tasks are summed: the sum of the requests against the sum of what is
free. The tightness that orders domains is always the requested sum over the free sum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from scheduler.core.arrays import Floats
from scheduler.core.cluster.axis import CPU_ROW, GPU_ROW, MEMORY_ROW, PODS_ROW
from scheduler.core.cluster.nodes import ALLOCATED_COLUMN, RELEASING_COLUMN, USED_COLUMN, Nodes
from scheduler.core.cluster.state import ClusterState

Sums = Callable[[Floats], Floats]

#: Tightness of a resource that is requested and of which nothing is free.
HOPELESS = 1000.0
FREELY_MIXED = (CPU_ROW, MEMORY_ROW)


class Need:
    """What some tasks request together.

    Attributes
    ----------
    count : number of tasks
    total : resource row -> sum over the tasks
    largest : resource row -> largest single request
    is_uniform : every task requests the same resources (CPU and memory aside)
    """

    __slots__ = ("_device_backed", "count", "is_uniform", "largest", "total")

    def __init__(
        self, state: ClusterState, tasks: Sequence[int], device_backed: frozenset[int]
    ) -> None:
        self.count = len(tasks)
        self._device_backed = device_backed
        self.total: dict[int, float] = {}
        self.largest: dict[int, float] = {}
        requesters: dict[int, int] = {}
        for task in tasks:
            for row, amount in enumerate(state.tasks.task_class[task].vector.tolist()):
                if amount > 0:
                    self.total[row] = self.total.get(row, 0.0) + amount
                    self.largest[row] = max(self.largest.get(row, 0.0), amount)
                    requesters[row] = requesters.get(row, 0) + 1
        self.is_uniform = all(
            number == self.count for row, number in requesters.items() if row not in FREELY_MIXED
        )

    def counted_rows(self) -> list[int]:
        """Return the rows that limit how many of the tasks a node takes."""
        return [row for row in self.largest if row not in self._device_backed]

    def summed_rows(self) -> list[int]:
        """Return the rows whose sums are compared; pod slots are not."""
        return [row for row in self.total if row != PODS_ROW and row not in self._device_backed]


def capacity_of_nodes(nodes: Nodes, need: Need) -> Floats:
    """Return shape (nodes,): how many of the largest task fit on each node, also on releasing room."""
    rows = need.counted_rows()
    if rows == [PODS_ROW]:
        return np.full(len(nodes), float(need.count))
    counts = np.full(len(nodes), np.inf)
    for row in rows:
        free = nodes.idle[row] + nodes.releasing[row]
        if row == GPU_ROW and need.largest[row] < 1:
            free = free + _parts_of_shared_devices(nodes)
        # Tolerates float noise: 0.3 three times is 0.8999999999999999.
        counts = np.minimum(counts, np.floor(free / need.largest[row] + 1e-9))
    capacity: Floats = np.maximum(counts, 0.0)
    return capacity


def _parts_of_shared_devices(nodes: Nodes) -> Floats:
    """Return shape (nodes,): the free parts of shared devices that some task keeps using."""
    parts = np.zeros(len(nodes))
    for node, shared_gpus in enumerate(nodes.shared_gpus):
        memory = nodes.gpu_memory[node]
        for gpu in shared_gpus.values():
            if gpu[USED_COLUMN] > 0 and gpu[ALLOCATED_COLUMN] != gpu[RELEASING_COLUMN]:
                parts[node] += (memory - gpu[ALLOCATED_COLUMN] + gpu[RELEASING_COLUMN]) / memory
    return parts


def tightness(nodes: Nodes, need: Need, sums: Sums) -> Floats:
    """Return shape (domains,): the largest ratio of requested to free among the requested resources."""
    ratios: Floats | None = None
    for row in need.summed_rows():
        free = sums(nodes.idle[row] + nodes.releasing[row])
        ratio = np.full(len(free), HOPELESS)
        np.divide(need.total[row], free, out=ratio, where=free > 0)
        ratios = ratio if ratios is None else np.maximum(ratios, ratio)
    if ratios is None:
        return np.zeros(len(sums(nodes.idle[CPU_ROW])))
    return ratios
