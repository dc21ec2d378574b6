"""What is left of every device, and how much of it a placement takes from the typical mix."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf

import numpy as np

from scheduler.core.arrays import TOLERANCE, Bools, Floats, Ints
from scheduler.core.cluster.axis import CPU_ROW, GPU_ROW
from scheduler.core.cluster.changes import Cursor
from scheduler.core.cluster.classes import TaskClass
from scheduler.core.cluster.gpus import joinable_shares
from scheduler.core.cluster.state import ClusterState
from scheduler.core.plugins.fragmentation.mix import device_count
from scheduler.core.plugins.fragmentation.usable import UsableTable


@dataclass(frozen=True, slots=True)
class Placements:
    """What one task would do to each of the nodes that have room for it.

    Attributes
    ----------
    nodes : their indices
    loss : how much less of its devices the mix can use
    cpu, gpus : what is free afterwards of the CPUs and the devices, as a part of all that the node has
    """

    nodes: Ints
    loss: Floats
    cpu: Floats
    gpus: Floats


class DeviceTable:
    """What is free, or being freed, of every device and of the CPUs beside it; arrays kept up to date.

    Attributes
    ----------
    left : shape (nodes, devices); the free part of each device, 1 if it is free as a whole
    levels : shape (nodes, devices); the `UsableTable.levels` of `left`
    cpu : per node, millicores
    usable : per node, how much of its devices the mix can use now
    """

    def __init__(self, state: ClusterState, table: UsableTable) -> None:
        self.nodes = state.nodes
        self._table = table
        self._cursor = Cursor(self.nodes.touched)
        count = len(self.nodes)
        most_devices = max(
            (int(devices) for devices in self.nodes.allocatable_rows[GPU_ROW]), default=0
        )
        self.left: Floats = np.zeros((count, max(most_devices, 1)))
        self.levels: Ints = np.zeros(self.left.shape, dtype=np.int64)
        self.cpu: Floats = np.zeros(count)
        self.usable: Floats = np.zeros(count)
        #: What each node has in all, at least 1 to divide by.
        self._all_cpu: Floats = np.maximum(self.nodes.allocatable[CPU_ROW], 1.0)
        self._all_gpus: Floats = np.maximum(self.nodes.allocatable[GPU_ROW], 1.0)
        self._update(range(count))

    def catch_up(self) -> None:
        """Read the nodes touched since the last call."""
        if self._cursor.is_behind():
            self._update(dict.fromkeys(self._cursor.read()))

    def _update(self, changed: Iterable[int]) -> None:
        """Read nodes; those with equal devices and CPUs left share one computation."""
        nodes, table, columns = self.nodes, self._table, self.left.shape[1]
        idle, releasing = nodes.idle_rows, nodes.releasing_rows
        #: (kind of node, free CPU, free parts of devices) -> (their levels, how much the mix can use).
        known: dict[tuple[int, float, tuple[float, ...]], tuple[Ints, float]] = {}
        for node in changed:
            whole = int(idle[GPU_ROW][node] + releasing[GPU_ROW][node] + TOLERANCE)
            shares = [*joinable_shares(nodes, node), *([1.0] * max(whole, 0))][:columns]
            left = (*shares, *([0.0] * (columns - len(shares))))
            cpu = idle[CPU_ROW][node] + releasing[CPU_ROW][node]
            key = (int(table.kind_of[node]), cpu, left)
            if key not in known:
                known[key] = (table.levels(np.array(left)), table.usable_on(node, cpu, left))
            self.left[node], self.cpu[node] = left, cpu
            self.levels[node], self.usable[node] = known[key]

    def placements(self, task_class: TaskClass, nodes: Ints) -> Placements:
        """Return what a task would do to those of some nodes that have room for it.

        It takes the fullest devices that have room for it, as placement does when it packs devices.
        """
        cpu = self.cpu[nodes] - task_class.request.cpu_milli
        nodes, cpu = nodes[cpu >= -TOLERANCE], cpu[cpu >= -TOLERANCE]
        left, levels = self.left[nodes], self.levels[nodes]
        count = device_count(task_class)
        if count:
            if task_class.is_shared:
                has_room = self._take_shares(left, levels, self._shares(task_class, nodes), count)
            else:
                has_room = _take_whole(left, levels, count)
            nodes, cpu = nodes[has_room], cpu[has_room]
            left, levels = left[has_room], levels[has_room]
        return Placements(
            nodes=nodes,
            loss=self.usable[nodes] - self._table.usable(nodes, cpu, left, levels),
            cpu=cpu / self._all_cpu[nodes],
            gpus=left.sum(axis=1) / self._all_gpus[nodes],
        )

    def _take_shares(self, left: Floats, levels: Ints, shares: Floats, count: int) -> Bools:
        """Take parts of devices from `left` and `levels`; return which nodes had enough."""
        rows = np.arange(len(left))
        has_room: Bools = np.ones(len(left), dtype=np.bool_)
        taken: Bools = np.zeros(left.shape, dtype=np.bool_)
        for _ in range(count):
            fitting = np.where((left >= shares[:, np.newaxis] - TOLERANCE) & ~taken, left, inf)
            device = fitting.argmin(axis=1)
            has_room &= fitting[rows, device] != inf
            rest = np.maximum(left[rows, device] - shares, 0.0)
            left[rows, device] = rest
            levels[rows, device] = self._table.levels(rest)
            taken[rows, device] = True
        return has_room

    def _shares(self, task_class: TaskClass, nodes: Ints) -> Floats:
        """Return the part that a task takes of each of its devices on each node, in whole MiB as charged."""
        sizes = np.maximum(self.nodes.gpu_memory_array[nodes], 1.0)
        if task_class.share_memory_mib:
            by_memory: Floats = task_class.share_memory_mib / sizes
            return by_memory
        shares: Floats = np.floor(task_class.portion * sizes) / sizes
        return shares


def _take_whole(left: Floats, levels: Ints, count: int) -> Bools:
    """Take whole devices from `left` and `levels`; return which nodes had enough."""
    whole = left >= 1.0 - TOLERANCE
    whole_so_far = whole.cumsum(axis=1)
    taken = whole & (whole_so_far <= count)
    left[taken] = 0.0
    levels[taken] = 0
    has_room: Bools = whole_so_far[:, -1] >= count
    return has_room
