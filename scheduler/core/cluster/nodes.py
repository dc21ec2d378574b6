"""Nodes as rows of numbers, one row per resource, for reading as arrays or number by number.

Questions about all nodes (which fit, which score best) are array operations over `idle[resource, node]`.
Every placement also reads and writes a few numbers of one node, which a Python list does six times faster
than an array. So the lists (`idle_rows`) are authoritative, every change is noted in `touched`, and
reading the array first copies the nodes touched since the last reading.

Nodes are sorted by name, so that "the first best index" and "the best node, ties by name" are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from itertools import pairwise

import numpy as np

from scheduler.core.arrays import Floats
from scheduler.core.cluster.axis import GPU_ROW, ResourceAxis
from scheduler.core.cluster.changes import ChangeLog, Cursor
from scheduler.core.cluster.inputs import NodeInput
from scheduler.core.cluster.memo import Memo
from scheduler.core.errors import InputError


class SharedGpu(list[float]):
    """Ledger of one GPU device that several tasks share; its columns are named below."""

    __slots__ = ()


#: Columns of `SharedGpu`, not to be confused with the statuses of a task: MiB of all tasks; of all but
#: nominated tasks; of leaving tasks less those of nominated ones; and 1 while the whole device counts as
#: releasing on its node.
USED_COLUMN, ALLOCATED_COLUMN, RELEASING_COLUMN, MARKED_COLUMN = 0, 1, 2, 3


class Nodes:
    """All nodes of a snapshot: what each has, what is free, what is being freed, and which tasks are on it.

    Attributes
    ----------
    inputs, names : the nodes and their names, sorted by name; the position is the index of a node
    index_of : name -> index
    allocatable : shape (resources, nodes)
    allocatable_rows, idle_rows, releasing_rows : per resource, one number per node; authoritative
    zero_rows : per node, the resources it has none of; such parts of a request are not charged there
    gpu_memory : per node, MiB of one GPU; `gpu_memory_array` holds the same
    gpu_count : per node, its number of GPUs: the label if it has one, else the allocatable amount
    whole_gpus_used : per node, GPUs held by tasks that take whole devices
    shared_gpus : per node, the shared devices by GPU group id
    sharing : indices of nodes that have had a shared device in this session (a dict as ordered set); never
        undone
    tasks : per node, the tasks on it (a dict as ordered set); also those being evicted from it
    touched : the nodes that changed since the session began, oldest first
    memo : what was computed from the inputs alone; lives on from session to session until an input changes
    """

    __slots__ = (
        "_cursor",
        "_idle",
        "_idle_and_releasing",
        "_releasing",
        "allocatable",
        "allocatable_rows",
        "gpu_count",
        "gpu_memory",
        "gpu_memory_array",
        "idle_rows",
        "index_of",
        "inputs",
        "memo",
        "names",
        "releasing_rows",
        "shared_gpus",
        "sharing",
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
            duplicate = next(name for name, following in pairwise(self.names) if name == following)
            raise InputError(f"node {duplicate!r} is in the snapshot twice")
        shape = (len(axis), len(self.names))
        self.allocatable: Floats = np.zeros(shape)
        for column, node in enumerate(self.inputs):
            for name, amount in node.allocatable.items():
                self.allocatable[axis.row_of[name], column] = amount
        self._idle: Floats = self.allocatable.copy()
        self._releasing: Floats = np.zeros(shape)
        self._idle_and_releasing: Floats = self.allocatable.copy()
        self.allocatable_rows: list[list[float]] = self.allocatable.tolist()
        self.idle_rows: list[list[float]] = self.allocatable.tolist()
        self.releasing_rows: list[list[float]] = self._releasing.tolist()
        zero = self.allocatable == 0
        self.zero_rows = [
            frozenset(np.flatnonzero(zero[:, node]).tolist()) for node in range(shape[1])
        ]
        self.gpu_memory = [node.gpu_memory_mib for node in self.inputs]
        self.gpu_memory_array: Floats = np.array(self.gpu_memory, dtype=np.float64)
        self.gpu_count = [self._count_gpus(node) for node in range(shape[1])]
        self.whole_gpus_used: list[float] = [0.0] * len(self.names)
        self.shared_gpus: list[dict[str, SharedGpu]] = [{} for _ in self.names]
        self.sharing: dict[int, None] = {}
        self.tasks: list[dict[int, None]] = [{} for _ in self.names]
        self.memo = Memo()
        self._begin_log()

    def _begin_log(self) -> None:
        self.touched = ChangeLog()
        self._cursor = Cursor(self.touched)

    def copy(self) -> Nodes:
        """Return the nodes for one session: copies of what sessions change, the rest shared."""
        copied = copy(self)
        copied._idle = self.idle.copy()
        copied._releasing = self.releasing.copy()
        copied._idle_and_releasing = self.idle_and_releasing.copy()
        copied.idle_rows = [row[:] for row in self.idle_rows]
        copied.releasing_rows = [row[:] for row in self.releasing_rows]
        copied.whole_gpus_used = self.whole_gpus_used[:]
        copied.shared_gpus = [{} for _ in self.names]
        for node in self.sharing:
            gpus = self.shared_gpus[node].items()
            copied.shared_gpus[node] = {group: SharedGpu(gpu) for group, gpu in gpus}
        copied.sharing = self.sharing.copy()
        copied.tasks = [tasks.copy() for tasks in self.tasks]
        copied._begin_log()
        return copied

    @property
    def idle(self) -> Floats:
        """Return what is free now, shape (resources, nodes); read-only."""
        if self._cursor.is_behind():
            self._copy_touched()
        return self._idle

    @property
    def releasing(self) -> Floats:
        """Return what is being freed less what nominated tasks will take of it; read-only.

        Shape (resources, nodes).
        """
        if self._cursor.is_behind():
            self._copy_touched()
        return self._releasing

    @property
    def idle_and_releasing(self) -> Floats:
        """Return the sum of `idle` and `releasing`, shape (resources, nodes); read-only."""
        if self._cursor.is_behind():
            self._copy_touched()
        return self._idle_and_releasing

    def change(
        self, changed: Sequence[int], inputs: Sequence[NodeInput], axis: ResourceAxis
    ) -> None:
        """Give some nodes other inputs; what is free on them must be charged anew (`clear`)."""
        self.inputs, self.allocatable = self.inputs[:], self.allocatable.copy()
        self.allocatable_rows = [row[:] for row in self.allocatable_rows]
        self.zero_rows, self.gpu_count = self.zero_rows[:], self.gpu_count[:]
        self.memo = Memo()
        for node, node_input in zip(changed, inputs, strict=True):
            self.inputs[node] = node_input
            self.allocatable[:, node] = 0.0
            for name, amount in node_input.allocatable.items():
                self.allocatable[axis.row_of[name], node] = amount
            for row, amount in enumerate(self.allocatable[:, node].tolist()):
                self.allocatable_rows[row][node] = amount
            self.zero_rows[node] = frozenset(
                np.flatnonzero(self.allocatable[:, node] == 0).tolist()
            )
            self.gpu_count[node] = self._count_gpus(node)

    def clear(self, node: int) -> None:
        """Take everything off a node, so that it can be charged anew."""
        for allocatable, idle, releasing in zip(
            self.allocatable_rows, self.idle_rows, self.releasing_rows, strict=True
        ):
            idle[node], releasing[node] = allocatable[node], 0.0
        self.whole_gpus_used[node] = 0.0
        self.shared_gpus[node] = {}
        self.sharing.pop(node, None)
        self.touched.append(node)

    def settle(self) -> None:
        """Bring the arrays up to date and begin a new log of changes."""
        if self._cursor.is_behind():
            self._copy_touched()
        self._begin_log()

    def _count_gpus(self, node: int) -> float:
        label = self.inputs[node].gpu_count_label
        return float(self.allocatable[GPU_ROW, node] if label is None else label)

    def copy_rows(self) -> None:
        """Copy all rows into the arrays, after a change of many nodes that `touched` does not list."""
        self._idle[:] = self.idle_rows
        self._releasing[:] = self.releasing_rows
        np.add(self._idle, self._releasing, out=self._idle_and_releasing)
        self._cursor.catch_up()

    def _copy_touched(self) -> None:
        changed = set(self._cursor.unread())
        # When many nodes changed, one copy of all rows is faster than single numbers.
        if len(changed) * 4 > len(self.names):
            self.copy_rows()
            return
        for row, (idle, releasing) in enumerate(
            zip(self.idle_rows, self.releasing_rows, strict=True)
        ):
            for node in changed:
                self._idle[row, node] = idle[node]
                self._releasing[row, node] = releasing[node]
                self._idle_and_releasing[row, node] = idle[node] + releasing[node]
        self._cursor.catch_up()

    def __len__(self) -> int:
        return len(self.names)
