"""Prefer the node where a task leaves the most GPUs that other tasks can use.

This follows Fragmentation Gradient Descent (FGD, USENIX ATC 2023): the loss of a node is how much less of its
devices the typical mix can use once the task is there, and a smaller loss gives a higher score. As in FGD, memory
does not matter, and small differences do not count: if they did, tasks would be spread over many untouched nodes
for tiny advantages. Of nodes with the same loss, a task with GPU prefers a node that keeps CPUs in proportion to
its devices, then the node with the fewest devices, then the first by name. So whole nodes with many devices stay
free for the tasks that need many, and equal nodes are filled one after the other.
"""

from __future__ import annotations

import numpy as np

from scheduler.core.arrays import Floats, Ints
from scheduler.core.cluster.axis import GPU_ROW
from scheduler.core.cluster.changes import Cursor
from scheduler.core.cluster.classes import TaskClass
from scheduler.core.cluster.state import ClusterState
from scheduler.core.plugins.fragmentation.devices import DeviceTable
from scheduler.core.plugins.fragmentation.mix import (
    device_count,
    takes_plain_devices,
    typical_requests,
)
from scheduler.core.plugins.fragmentation.usable import UsableTable
from scheduler.core.session.hooks import Scope
from scheduler.core.session.nodeset import NodeSet

#: Losses of usable devices are rounded to multiples of this.
STEP_DEVICES = 0.05
#: What the score loses for each step. The bonus of a node where the task fits now (1,000) exceeds all losses.
STEP_SCORE = 1.0
#: A node is balanced if its free part of CPUs, over its free part of devices, is at least this ratio afterwards.
BALANCE = 0.8
#: Score of a balanced node.
BALANCE_SCORE = STEP_SCORE / 2
#: What the score loses for each device of the node; so small that it only decides between equal scores.
DEVICE_SCORE = STEP_SCORE / 256
#: Subtracted before comparisons, so that float noise decides none of them.
_NOISE = 1e-6


class FragmentationScore:
    """Scores nodes by what the typical mix loses; keeps the scores of each request until a node changes."""

    name = "fragmentation"
    scope = Scope.NODE

    def __init__(self, state: ClusterState, *, for_cpu_tasks: bool, for_gpu_tasks: bool) -> None:
        self._for_cpu_tasks, self._for_gpu_tasks = for_cpu_tasks, for_gpu_tasks
        self._devices = DeviceTable(state, UsableTable(typical_requests(state), len(state.nodes)))
        self._tie_break: Floats = -DEVICE_SCORE * state.nodes.allocatable[GPU_ROW]
        #: (CPU millicores, part of a device, GPU memory in MiB, devices) of a request -> its scores.
        self._scores_by_request: dict[tuple[float, float, int, int], _Scores] = {}

    def concerns(self, task_class: TaskClass) -> bool:
        """Return whether this score applies to tasks; it never applies to tasks with MIG slices or device claims."""
        if not takes_plain_devices(task_class):
            return False
        return self._for_cpu_tasks if task_class.is_cpu_only else self._for_gpu_tasks

    def scores(self, task: int, task_class: TaskClass, nodes: NodeSet) -> Floats:
        """Return the score of each node of a set; the score of a node without room has no meaning."""
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
            task_class.portion,
            request.gpu_memory_mib,
            device_count(task_class),
        )
        scores = self._scores_by_request.get(key)
        if scores is None:
            scores = self._scores_by_request[key] = _Scores(
                self._devices, self._tie_break, task_class
            )
        return scores


class _Scores:
    """The scores of all nodes for one request; they are computed again only for nodes that changed."""

    def __init__(self, devices: DeviceTable, tie_break: Floats, task_class: TaskClass) -> None:
        self._devices = devices
        self._tie_break = tie_break
        self._task_class = task_class
        self._cursor = Cursor(devices.nodes.touched)
        self._scores: Floats = np.zeros(len(devices.nodes))
        self._compute(np.arange(len(devices.nodes)))

    def current(self) -> Floats:
        """Return the scores of all nodes as they are now; callers must not write to the array."""
        if self._cursor.is_behind():
            changed_nodes = dict.fromkeys(self._cursor.read())
            self._compute(np.fromiter(changed_nodes, dtype=np.int64, count=len(changed_nodes)))
        return self._scores

    def _compute(self, nodes: Ints) -> None:
        self._devices.catch_up()
        placements = self._devices.placements(self._task_class, nodes)
        steps = np.rint(placements.loss / STEP_DEVICES - _NOISE)
        scores = self._tie_break[placements.nodes] - STEP_SCORE * steps
        if not self._task_class.is_cpu_only:
            is_balanced = placements.cpu >= BALANCE * placements.gpus - _NOISE
            scores += BALANCE_SCORE * is_balanced
        self._scores[nodes] = 0.0
        self._scores[placements.nodes] = scores
