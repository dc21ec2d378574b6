"""Classes of equal tasks, and every measure of what a task takes.

Eight thousand pods of one job array are one class: the filters and scores of nodes are worked out once
for all of them. A class also owns the several ways a request is measured, because they differ exactly
where mistakes are made: a request for GPU memory weighs differently in the request of its queue (against
the smallest GPU of the cluster), in the gate before placement (against the largest) and on a node.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor

import numpy as np

from scheduler.core.arrays import Amounts, Floats
from scheduler.core.cluster.axis import (
    CPU_ROW,
    GPU_ROW,
    MEMORY_ROW,
    PODS_ROW,
    ResourceAxis,
    mig_units,
)
from scheduler.core.cluster.constraints import TaskConstraints
from scheduler.core.cluster.inputs import TaskInput, TaskRequest

RowAmounts = tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class GpuMemoryRange:
    """Smallest and largest known device memory of the cluster (MiB); None where no node says."""

    smallest: int | None
    largest: int | None


class TaskClass:
    """Tasks that ask for the same and may go to the same nodes."""

    __slots__ = (
        "accepted",
        "charge",
        "constraints",
        "devices",
        "dra_gpus",
        "fits",
        "gate",
        "gpu_amount",
        "index",
        "is_cpu_only",
        "is_dra",
        "is_legacy_mig",
        "is_mig",
        "is_shared",
        "kind",
        "mig_units",
        "namespace",
        "nominated_node",
        "portion",
        "request",
        "requested",
        "share_memory_mib",
        "vector",
    )

    def __init__(
        self,
        index: int,
        task: TaskInput,
        axis: ResourceAxis,
        gpu_memory: GpuMemoryRange,
    ) -> None:
        request = task.request
        self.index = index
        self.request = request
        self.constraints: TaskConstraints = task.constraints
        self.namespace = task.namespace
        self.nominated_node = task.nominated_node
        self.dra_gpus = float(sum(count for _, count in request.device_classes))
        self.is_shared = request.gpu_fraction > 0 or request.gpu_memory_mib > 0
        self.is_mig = bool(request.mig)
        self.is_legacy_mig = request.legacy_mig
        self.is_dra = self.dra_gpus > 0
        self.mig_units = sum(mig_units(name) * count for name, count in request.mig)
        self.devices = request.gpu_devices if self.is_shared else 0
        self.portion = request.gpu_fraction
        self.share_memory_mib = request.gpu_memory_mib
        self.is_cpu_only = not (
            request.gpus or self.is_shared or self.is_mig or self.is_dra or self.is_legacy_mig
        )
        #: Equal for classes that differ in amounts only, for verdicts that ask no amounts.
        self.kind = (
            id(self.constraints),
            self.is_cpu_only,
            self.is_shared,
            self.is_mig,
            self.is_dra,
            self.is_legacy_mig,
            self.share_memory_mib > 0,
        )
        self.gpu_amount = self._gpu_amount()
        self.vector = self._vector(axis)
        cells = tuple((row, float(v)) for row, v in enumerate(self.vector.tolist()) if v > 0)
        #: What is taken from a node; a shared device is charged through its group instead.
        self.charge: RowAmounts = tuple(
            c for c in cells if not (self.is_shared and c[0] == GPU_ROW)
        )
        #: What must be free: the fixed rows always, since even nothing does not fit into a debt.
        fixed = tuple(
            (row, float(self.vector[row]))
            for row in (CPU_ROW, MEMORY_ROW, GPU_ROW, PODS_ROW)
            if not (self.is_shared and row == GPU_ROW)
        )
        self.fits: RowAmounts = fixed + tuple(c for c in cells if c[0] > PODS_ROW)
        small, large = gpu_memory.smallest or 100, gpu_memory.largest
        memory_total = self.devices * self.share_memory_mib
        gpus = self.gpu_amount + self.mig_units
        self.requested: Amounts = (
            request.cpu_milli,
            request.memory_bytes,
            gpus + memory_total / small,
        )
        self.gate: Amounts = (
            request.cpu_milli,
            request.memory_bytes,
            gpus + (memory_total / large if large else 0.0),
        )
        self.accepted: dict[int, Amounts] = {}

    def _gpu_amount(self) -> float:
        """GPU row of the request: devices of any form except GPU memory, which has none."""
        if self.request.gpu_fraction > 0:
            hundredths = floor(self.request.gpu_fraction * 100 + 0.5)
            return hundredths * self.request.gpu_devices / 100 + self.dra_gpus
        return self.request.gpus + self.dra_gpus

    def _vector(self, axis: ResourceAxis) -> Floats:
        vector = np.zeros(len(axis))
        vector[CPU_ROW] = self.request.cpu_milli
        vector[MEMORY_ROW] = self.request.memory_bytes
        vector[GPU_ROW] = self.gpu_amount
        vector[PODS_ROW] = 1
        for name, amount in self.request.other + self.request.mig:
            vector[axis.row_of[name]] += amount
        return vector

    def memory_on(self, node_memory_mib: int) -> int:
        """Return the MiB of each device a shared task takes on a node with such devices."""
        if self.share_memory_mib:
            return self.share_memory_mib
        return int(self.portion * node_memory_mib)

    def portion_on(self, node_memory_mib: int) -> float:
        """Return the part of each device a shared task takes on a node with such devices."""
        if self.share_memory_mib:
            return ceil(100 * self.share_memory_mib / node_memory_mib) / 100
        return self.portion

    def accepted_on(self, node_memory_mib: int) -> Amounts:
        """Return what the task's queue is charged on a node with such devices."""
        if not self.share_memory_mib:
            return (self.requested[0], self.requested[1], self.gpu_amount + self.mig_units)
        found = self.accepted.get(node_memory_mib)
        if found is None:
            gpus = self.devices * self.portion_on(node_memory_mib) + self.dra_gpus
            found = self.accepted[node_memory_mib] = (self.requested[0], self.requested[1], gpus)
        return found

    def gate_on(self, node_memory_mib: int) -> Amounts:
        """Return what the capacity gate asks for one task on one node.

        A fraction is measured by the memory it takes there, rounded up to a hundredth; KAI sees no
        GPU at all in a task that asks through device claims only, we count its devices.
        """
        if not self.is_shared:
            return (self.requested[0], self.requested[1], self.gpu_amount + self.mig_units)
        share = ceil(100 * self.memory_on(node_memory_mib) / node_memory_mib) / 100
        return (
            self.requested[0],
            self.requested[1],
            self.devices * share + self.dra_gpus + self.mig_units,
        )


class ClassTable:
    """Finds the class of a task: by identity of its parts, then by their value."""

    __slots__ = ("_axis", "_by_identity", "_by_value", "_gpu_memory", "classes")

    def __init__(self, axis: ResourceAxis, gpu_memory: GpuMemoryRange) -> None:
        self._axis = axis
        self._gpu_memory = gpu_memory
        self._by_identity: dict[tuple[int, int, str, str], TaskClass] = {}
        self._by_value: dict[tuple[TaskRequest, TaskConstraints, str, str], TaskClass] = {}
        self.classes: list[TaskClass] = []

    def of(self, task: TaskInput) -> TaskClass:
        """Return the class of a task, making it if this is its first member."""
        constraints = task.constraints
        identity = (id(task.request), id(constraints), task.namespace, task.nominated_node)
        found = self._by_identity.get(identity)
        if found is None:
            value = (task.request, constraints, task.namespace, task.nominated_node)
            found = self._by_value.get(value)
            if found is None:
                found = TaskClass(len(self.classes), task, self._axis, self._gpu_memory)
                self.classes.append(found)
                self._by_value[value] = found
            self._by_identity[identity] = found
        return found
