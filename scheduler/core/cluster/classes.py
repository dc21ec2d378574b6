"""Classes of equal tasks, and every way in which the request of a task is measured.

The eight thousand pods of one job array are one class, so that the filters and scores of nodes are
computed once for all of them. A class also owns the measures of a request. They differ for a request for
GPU memory: in the request of its queue it counts as a share of the smallest GPU of the cluster, in the
capacity gate before placement as a share of the largest one, and on a node as a share of that node's GPU.
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
from scheduler.core.cluster.inputs import UNKNOWN_GPU_MEMORY_MIB, TaskInput, TaskRequest

#: (row of the resource axis, amount) pairs; rows that are not mentioned are 0.
RowAmounts = tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class GpuMemoryRange:
    """Smallest and largest known GPU memory of the cluster in MiB; None if no node reports any."""

    smallest: int | None
    largest: int | None


class TaskClass:
    """Tasks that request the same and may run on the same nodes.

    Attributes
    ----------
    index : position in `ClassTable.classes`
    charge : what such a task takes from its node; the memory of shared GPUs is charged to the devices
        instead (`gpus.py`)
    must_be_free : what a node must have free. CPU, memory, GPUs and pod slots are checked even for a
        request of 0, so that an over-committed node is rejected
    requested : amounts in the request of its queue
    gate_amounts : amounts in the capacity gate before placement
    devices : how many GPUs it shares; 0 for a task that shares none
    portion : the part of each shared GPU, 0 for a request by memory (`share_memory_mib`)
    dra_gpus : GPUs requested through device claims (dynamic resource allocation)
    gpu_amount : GPUs of any form except by memory
    mig_units : MIG slices, counted as GPUs in quota
    vector : shape (resources,); the request over the whole axis
    kind : equal for classes that differ in amounts only; key of verdicts that do not depend on amounts
    """

    __slots__ = (
        "_charged",
        "charge",
        "constraints",
        "devices",
        "dra_gpus",
        "gate_amounts",
        "gpu_amount",
        "index",
        "is_cpu_only",
        "is_dra",
        "is_legacy_mig",
        "is_mig",
        "is_shared",
        "kind",
        "mig_units",
        "must_be_free",
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
        self.kind = (
            id(self.constraints),
            self.is_cpu_only,
            self.is_shared,
            self.is_mig,
            self.is_dra,
            self.is_legacy_mig,
            self.share_memory_mib > 0,
            request.gpus > 0,
        )
        self.gpu_amount = self._gpu_amount()
        self.vector = self._vector(axis)
        positive = tuple((row, float(v)) for row, v in enumerate(self.vector.tolist()) if v > 0)
        self.charge: RowAmounts = tuple(
            pair for pair in positive if not (self.is_shared and pair[0] == GPU_ROW)
        )
        fixed = tuple(
            (row, float(self.vector[row]))
            for row in (CPU_ROW, MEMORY_ROW, GPU_ROW, PODS_ROW)
            if not (self.is_shared and row == GPU_ROW)
        )
        self.must_be_free: RowAmounts = fixed + tuple(
            pair for pair in positive if pair[0] > PODS_ROW
        )
        smallest = gpu_memory.smallest or UNKNOWN_GPU_MEMORY_MIB
        largest = gpu_memory.largest
        memory_total = self.devices * self.share_memory_mib
        gpus = self.gpu_amount + self.mig_units
        self.requested: Amounts = (
            request.cpu_milli,
            request.memory_bytes,
            gpus + memory_total / smallest,
        )
        self.gate_amounts: Amounts = (
            request.cpu_milli,
            request.memory_bytes,
            gpus + (memory_total / largest if largest else 0.0),
        )
        self._charged: dict[int, Amounts] = {}

    def _gpu_amount(self) -> float:
        """Return the GPU row of the request; a request by GPU memory has none."""
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
        """Return the MiB that a sharing task takes of each of its GPUs on a node with such GPUs."""
        if self.share_memory_mib:
            return self.share_memory_mib
        return int(self.portion * node_memory_mib)

    def portion_on(self, node_memory_mib: int) -> float:
        """Return the part that a sharing task takes of each of its GPUs on a node with such GPUs."""
        if self.share_memory_mib:
            return ceil(100 * self.share_memory_mib / node_memory_mib) / 100
        return self.portion

    def charged_on(self, node_memory_mib: int) -> Amounts:
        """Return what the task's queue is charged on a node whose GPUs have this much memory."""
        if not self.share_memory_mib:
            return (self.requested[0], self.requested[1], self.gpu_amount + self.mig_units)
        amounts = self._charged.get(node_memory_mib)
        if amounts is None:
            gpus = self.devices * self.portion_on(node_memory_mib) + self.dra_gpus
            amounts = self._charged[node_memory_mib] = (self.requested[0], self.requested[1], gpus)
        return amounts

    def gate_amounts_on(self, node_memory_mib: int) -> Amounts:
        """Return what the capacity gate measures for a task on a node with this much GPU memory.

        A fraction is measured by the memory it takes there, rounded up to a hundredth of a device.
        KAI counts no GPU for a task that requests them through device claims only; we count them.
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
    """All classes of a cluster. A task is looked up by the identity of its parts, then by value.

    Producers share equal requests and constraints between tasks, so that identity nearly always hits
    and saves hashing them.
    """

    __slots__ = ("_axis", "_by_identity", "_by_value", "_gpu_memory", "_known", "classes")

    def __init__(self, axis: ResourceAxis, gpu_memory: GpuMemoryRange) -> None:
        self._axis = axis
        self._gpu_memory = gpu_memory
        self._by_identity: dict[tuple[int, int, str, str], TaskClass] = {}
        self._by_value: dict[tuple[TaskRequest, TaskConstraints, str, str], TaskClass] = {}
        #: The parts that `_by_identity` knows, held so that no other object gets their identity.
        self._known: list[tuple[TaskRequest, TaskConstraints]] = []
        self.classes: list[TaskClass] = []

    @property
    def lookups(self) -> int:
        """Return how many combinations of parts are known, those of tasks that are gone included."""
        return len(self._by_identity)

    def of(self, task: TaskInput) -> TaskClass:
        """Return the class of a task; the first task of a class creates it."""
        constraints = task.constraints
        identity = (id(task.request), id(constraints), task.namespace, task.nominated_node)
        task_class = self._by_identity.get(identity)
        if task_class is None:
            value = (task.request, constraints, task.namespace, task.nominated_node)
            task_class = self._by_value.get(value)
            if task_class is None:
                task_class = TaskClass(len(self.classes), task, self._axis, self._gpu_memory)
                self.classes.append(task_class)
                self._by_value[value] = task_class
            self._by_identity[identity] = task_class
            self._known.append((task.request, constraints))
        return task_class
