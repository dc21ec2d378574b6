"""Prefer the node where a task leaves the most GPUs that other tasks can use.

This is Fragmentation Gradient Descent (FGD, USENIX ATC 2023). The typical mix is what the tasks of the
snapshot request, running and waiting. Idle devices of a node are fragmented, for a task of the mix, if
it does not fit there or wants no GPU; else only those with less left than it wants. The score of a node is
what the placement takes away from fragmentation, averaged over the mix. As in FGD, memory does not matter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import inf

import numpy as np

from scheduler.core.arrays import TOLERANCE, Bools, Floats, Ints
from scheduler.core.cluster.axis import CPU_ROW, GPU_ROW
from scheduler.core.cluster.changes import Cursor
from scheduler.core.cluster.classes import TaskClass
from scheduler.core.cluster.gpus import joinable_shares
from scheduler.core.cluster.matching import matches_node
from scheduler.core.cluster.state import ClusterState
from scheduler.core.session.hooks import Scope
from scheduler.core.session.nodeset import NodeSet

#: Score of one device more or less that the mix can use. Free room now (1,000) counts for more than all
#: eight devices of a node; a tenth of a device counts for about as much as the fill score (0 to 9).
DEVICE_SCORE = 100.0
#: The mix is made of the commonest requests that make up this part of all tasks, but not more than so many.
TYPICAL_PART, MAX_TYPICAL = 0.95, 64
#: Nodes computed at once, so that the arrays stay in the processor's cache.
BATCH = 256


class FragmentationScore:
    """Scores nodes by the change of fragmentation; keeps the answers per request for untouched nodes."""

    name = "fragmentation"
    scope = Scope.NODE

    def __init__(self, state: ClusterState, *, cpu: bool, gpu: bool) -> None:
        self._cpu_tasks, self._gpu_tasks = cpu, gpu
        self._mix = TypicalMix(state)
        self._devices = DeviceTable(state, self._mix)
        self._known: dict[tuple[float, float, int, int], _Scores] = {}

    def concerns(self, task_class: TaskClass) -> bool:
        """Return whether tasks are placed by this strategy; it knows no MIG slices and no claims."""
        if task_class.is_mig or task_class.is_dra or task_class.is_legacy_mig:
            return False
        return self._cpu_tasks if task_class.is_cpu_only else self._gpu_tasks

    def scores(self, task: int, task_class: TaskClass, nodes: NodeSet) -> Floats:
        """Return the score of each node of a set."""
        del task
        scores: Floats = self._scores_of(task_class).current()[nodes.indices]
        return scores

    def score(self, task: int, task_class: TaskClass, node: int) -> float:
        """Return the score of one node."""
        del task
        return float(self._scores_of(task_class).current()[node])

    def _scores_of(self, task_class: TaskClass) -> _Scores:
        request = task_class.request
        key = (
            request.cpu_milli,
            share_of(task_class),
            request.gpu_memory_mib,
            device_count(task_class),
        )
        scores = self._known.get(key)
        if scores is None:
            scores = self._known[key] = _Scores(self._devices, task_class)
        return scores


def device_count(task_class: TaskClass) -> int:
    """Return how many devices a task takes, whole or in part."""
    return task_class.devices if task_class.is_shared else int(task_class.request.gpus)


def share_of(task_class: TaskClass) -> float:
    """Return the part of each of its devices that a task takes; 0 for a request by memory."""
    if task_class.is_shared:
        return task_class.portion
    return 1.0 if task_class.request.gpus else 0.0


class TypicalMix:
    """The commonest requests of the snapshot and how common each is.

    Attributes
    ----------
    sizes : the distinct parts of a device that requests want
    size_of, cpu, devices, part : per request of the mix; `part` adds up to 1 with tasks without GPU
    allowed : shape (nodes, requests); where selectors and affinity let such a task run
    """

    def __init__(self, state: ClusterState) -> None:
        chosen = _commonest(state)
        total = sum(count for _, count in chosen)
        gpu = [(task_class, count) for task_class, count in chosen if device_count(task_class)]
        shares = [_typical_share(state, task_class) for task_class, _ in gpu]
        sizes, positions = np.unique(np.array(shares, dtype=np.float64), return_inverse=True)
        self.sizes: Floats = sizes
        self.size_of: Ints = positions.astype(np.int64)
        self.cpu: Floats = np.array([task_class.request.cpu_milli for task_class, _ in gpu])
        self.devices: Ints = np.array([device_count(c) for c, _ in gpu], dtype=np.int64)
        self.part: Floats = np.array([count / total for _, count in gpu])
        self.allowed: Bools = np.ones((len(state.nodes), len(gpu)), dtype=np.bool_)
        for column, (task_class, _) in enumerate(gpu):
            if task_class.constraints.node_affinity or task_class.constraints.node_selector:
                self.allowed[:, column] = [
                    matches_node(node, task_class.constraints) for node in state.nodes.inputs
                ]

    def usable(self, nodes: Ints, cpu: Floats, left: Floats) -> Floats:
        """Return how much of the devices of nodes the mix can use on average.

        Parameters
        ----------
        cpu : shape (nodes,); free CPU
        left : shape (nodes, devices); what is free of each device
        """
        usable: Floats = np.zeros(len(nodes))
        if not len(self.part):
            return usable
        for start in range(0, len(nodes), BATCH):
            rows = slice(start, start + BATCH)
            of_rows = left[rows, np.newaxis, :]
            large = of_rows >= self.sizes[:, np.newaxis] - TOLERANCE
            useful = np.where(large, of_rows, 0.0).sum(axis=2)[:, self.size_of]
            fits = large.sum(axis=2)[:, self.size_of] >= self.devices
            fits &= cpu[rows, np.newaxis] >= self.cpu
            fits &= self.allowed[nodes[rows]]
            usable[rows] = np.where(fits, useful, 0.0) @ self.part
        return usable


def _commonest(state: ClusterState) -> list[tuple[TaskClass, int]]:
    """Return the commonest classes with their number of tasks, without forms that take no plain device."""
    counts = Counter(
        task_class.index
        for task_class in state.tasks.task_class
        if not (task_class.is_mig or task_class.is_dra or task_class.is_legacy_mig)
    )
    class_of = {task_class.index: task_class for task_class in state.tasks.task_class}
    wanted = TYPICAL_PART * counts.total()
    chosen: list[tuple[TaskClass, int]] = []
    for index, count in counts.most_common(MAX_TYPICAL):
        chosen.append((class_of[index], count))
        wanted -= count
        if wanted <= 0:
            break
    return chosen


def _typical_share(state: ClusterState, task_class: TaskClass) -> float:
    """Return the part of a device that a request wants; one by memory is measured on the largest GPU."""
    if not task_class.share_memory_mib:
        return share_of(task_class)
    return min(1.0, task_class.share_memory_mib / max(state.nodes.gpu_memory))


class DeviceTable:
    """What is free, or being freed, of every device and of the CPUs beside it; arrays kept up to date.

    Attributes
    ----------
    left : shape (nodes, devices); parts of a device, 1 for a whole one
    cpu : per node, millicores
    usable : per node, how much of its devices the mix can use now
    """

    def __init__(self, state: ClusterState, mix: TypicalMix) -> None:
        self.nodes = state.nodes
        self.mix = mix
        self._cursor = Cursor(self.nodes.touched)
        count = len(self.nodes)
        widest = max((int(devices) for devices in self.nodes.allocatable_rows[GPU_ROW]), default=0)
        self.left: Floats = np.zeros((count, max(widest, 1)))
        self.cpu: Floats = np.zeros(count)
        self.usable: Floats = np.zeros(count)
        self._update(range(count))

    def catch_up(self) -> None:
        """Read the nodes touched since the last call."""
        if self._cursor.is_behind():
            changed = dict.fromkeys(self._cursor.unread())
            self._cursor.catch_up()
            self._update(changed)

    def _update(self, changed: Iterable[int]) -> None:
        nodes, widest = self.nodes, self.left.shape[1]
        idle, releasing = nodes.idle_rows, nodes.releasing_rows
        chosen = list(changed)
        for node in chosen:
            whole = int(idle[GPU_ROW][node] + releasing[GPU_ROW][node] + TOLERANCE)
            shares = [*joinable_shares(nodes, node), *([1.0] * max(whole, 0))][:widest]
            self.left[node] = shares + [0.0] * (widest - len(shares))
            self.cpu[node] = idle[CPU_ROW][node] + releasing[CPU_ROW][node]
        rows = np.array(chosen, dtype=np.int64)
        self.usable[rows] = self.mix.usable(rows, self.cpu[rows], self.left[rows])

    def gain(self, task_class: TaskClass, chosen: Ints) -> Floats:
        """Return how much less fragmented each node is after a task of a class, in devices."""
        before = self.left[chosen]
        left = before.copy()
        rows = np.arange(len(chosen))
        shares = self._shares(task_class, chosen)
        for _ in range(device_count(task_class)):
            # The fullest device with room, as devices are chosen when they are packed.
            fitting = np.where(left >= shares[:, np.newaxis] - TOLERANCE, left, inf)
            device = fitting.argmin(axis=1)
            left[rows, device] = np.maximum(left[rows, device] - shares, 0.0)
        cpu = self.cpu[chosen] - task_class.request.cpu_milli
        taken = before.sum(axis=1) - left.sum(axis=1)
        gain: Floats = taken + self.mix.usable(chosen, cpu, left) - self.usable[chosen]
        return gain

    def _shares(self, task_class: TaskClass, chosen: Ints) -> Floats:
        if task_class.share_memory_mib:
            by_memory: Floats = task_class.share_memory_mib / self.nodes.gpu_memory_array[chosen]
            return by_memory
        return np.full(len(chosen), share_of(task_class))


class _Scores:
    """The scores of all nodes for one request; only touched nodes are computed again, all at once."""

    def __init__(self, devices: DeviceTable, task_class: TaskClass) -> None:
        self._devices = devices
        self._task_class = task_class
        self._cursor = Cursor(devices.nodes.touched)
        self._cursor.catch_up()
        self._scores: Floats = np.zeros(len(devices.nodes))
        self._compute(np.arange(len(devices.nodes)))

    def current(self) -> Floats:
        """Return the scores now; read-only."""
        if self._cursor.is_behind():
            changed = dict.fromkeys(self._cursor.unread())
            self._cursor.catch_up()
            self._compute(np.fromiter(changed, dtype=np.int64, count=len(changed)))
        return self._scores

    def _compute(self, nodes: Ints) -> None:
        self._devices.catch_up()
        self._scores[nodes] = DEVICE_SCORE * self._devices.gain(self._task_class, nodes)
