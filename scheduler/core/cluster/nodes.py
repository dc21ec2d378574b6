"""Nodes as arrays, one row per resource, with cell access that costs no array arithmetic.

Questions about all nodes (which fit, which score best) are array operations over `idle[resource, node]`.
Questions about one node, which are asked at every placement, go through memory views of the very same
cells: reading and writing one float that way costs a third of indexing the array.

Nodes are kept in order of name, so "the first best index" and "the best node, ties by name" are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scheduler.core.cluster.axis import GPU_ROW, ResourceAxis
from scheduler.core.cluster.inputs import NodeInput
from scheduler.core.errors import InputError

Floats = NDArray[np.float64]


class GpuGroup(list[float]):
    """Ledger of one shared device, in MiB: used, allocated, releasing; then the releasing mark."""

    __slots__ = ()


USED, ALLOCATED, RELEASING, MARKED = 0, 1, 2, 3


class Nodes:
    """What nodes have and what is left of it.

    Attributes
    ----------
    allocatable, idle, releasing : shape (resources, nodes)
    *_rows : the same cells as one memory view per resource
    whole_gpus_used : GPUs held by tasks that take whole devices
    groups : per node, the shared devices by group id
    tasks : per node, the tasks on it (a dict for its order); also those being evicted from it
    touched : every change of a node appends its index; readers remember how far they have read
    """

    __slots__ = (
        "allocatable",
        "allocatable_rows",
        "gpu_count",
        "gpu_memory",
        "groups",
        "has_negative",
        "idle",
        "idle_rows",
        "index_of",
        "inputs",
        "names",
        "releasing",
        "releasing_rows",
        "tasks",
        "touched",
        "whole_gpus_used",
        "zero_rows",
    )

    def __init__(self, inputs: Sequence[NodeInput], axis: ResourceAxis) -> None:
        self.inputs = sorted(inputs, key=lambda node: node.name)
        self.names = [node.name for node in self.inputs]
        self.index_of = {name: index for index, name in enumerate(self.names)}
        if len(self.index_of) != len(self.names):
            twice = next(a for a, b in zip(self.names, self.names[1:], strict=False) if a == b)
            raise InputError(f"node {twice!r} is in the snapshot twice")
        shape = (len(axis), len(self.names))
        self.allocatable: Floats = np.zeros(shape)
        for column, node in enumerate(self.inputs):
            for name, amount in node.allocatable.items():
                self.allocatable[axis.row_of[name], column] = amount
        self.idle: Floats = self.allocatable.copy()
        self.releasing: Floats = np.zeros(shape)
        self.allocatable_rows = _rows(self.allocatable)
        self.idle_rows = _rows(self.idle)
        self.releasing_rows = _rows(self.releasing)
        zero = self.allocatable == 0
        #: Rows a node has nothing of; such parts of a request are not charged there.
        self.zero_rows = [frozenset(np.flatnonzero(zero[:, n]).tolist()) for n in range(shape[1])]
        self.gpu_memory = [node.gpu_memory_mib for node in self.inputs]
        self.gpu_count = [
            float(node.gpu_count_label)
            if node.gpu_count_label is not None
            else float(self.allocatable[GPU_ROW, column])
            for column, node in enumerate(self.inputs)
        ]
        self.whole_gpus_used: list[float] = [0.0] * len(self.names)
        self.groups: list[dict[str, GpuGroup]] = [{} for _ in self.names]
        self.tasks: list[dict[int, None]] = [{} for _ in self.names]
        self.touched: list[int] = []

    def __len__(self) -> int:
        return len(self.names)


def _rows(array: Floats) -> list[Any]:
    """One writable view per resource; `Any` because a view of floats is typed as one of ints."""
    return [memoryview(array[row]) for row in range(array.shape[0])]
