"""The room that nodes had when the cycle began: what is free at its end plus what the cycle placed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from scheduler.core.cluster.classes import TaskClass
from scheduler.core.cluster.status import ALLOCATED, BINDING, NOMINATED, PENDING, RELEASING
from scheduler.core.placement.place import Placer
from scheduler.core.session.session import Session

#: States a pending task can have come to within a cycle.
_PLACED = (ALLOCATED, NOMINATED, BINDING)


class OpeningRoom:
    """The room of all nodes at the opening of a finished session, and who took it.

    Shared devices are left out: for them it cannot be computed reliably who took the room.
    """

    def __init__(self, session: Session, placer: Placer) -> None:
        self._session = session
        self._placer = placer
        state = session.state
        #: Node -> tasks placed on it in this cycle.
        self._placed: dict[int, list[int]] = {}
        room = state.nodes.idle_and_releasing.copy()
        for task, status in enumerate(state.tasks.status):
            if status in _PLACED and state.tasks.inputs[task].status == PENDING:
                node = state.tasks.node[task]
                self._placed.setdefault(node, []).append(task)
                self._give(room, task, node, 1.0)
        if self._placed:
            for node in self._placed:
                for task in state.nodes.tasks[node]:
                    was = state.tasks.inputs[task].status
                    if state.tasks.status[task] == RELEASING and was != RELEASING:
                        self._give(room, task, node, -1.0)
        self._room = room
        #: (task class, how many, queue if nodes are refused by queue, else -1) -> the takers.
        self._known: dict[tuple[int, int, int], list[int]] = {}

    def takers(self, chunk: Sequence[int]) -> list[int]:
        """Return the pod groups that took the room of these tasks, or an empty list if there was none."""
        if not self._placed or not chunk:
            return []
        tasks = self._session.state.tasks
        counts = Counter(tasks.task_class[task].index for task in chunk)
        all_takers: dict[int, None] = {}
        for task in {tasks.task_class[member].index: member for member in chunk}.values():
            task_class = tasks.task_class[task]
            takers = self._takers(task_class, task, counts[task_class.index])
            if not takers:
                return []
            all_takers.update(dict.fromkeys(takers))
        return list(all_takers)

    def _takers(self, task_class: TaskClass, task: int, needed: int) -> list[int]:
        state = self._session.state
        is_by_queue = bool(self._placer.rules(task_class, task).cluster_filters)
        queue = state.pod_groups.queue[state.tasks.pod_group[task]] if is_by_queue else -1
        key = (task_class.index, needed, queue)
        takers = self._known.get(key)
        if takers is None:
            takers = self._known[key] = self._look(task_class, task, needed)
        return takers

    def _look(self, task_class: TaskClass, task: int, needed: int) -> list[int]:
        if task_class.is_shared or task_class.is_dra:
            return []
        rules = self._placer.rules(task_class, task)
        before = _places(self._room, task_class) * rules.static_mask
        if before.sum() < needed or not any(before[node] for node in self._placed):
            return []
        takers: dict[int, None] = {}
        places = 0
        for node in np.flatnonzero(before).tolist():
            if not all(node_filter.passes(task, task_class, node) for node_filter in rules.filters):
                continue
            places += int(before[node])
            for other in self._placed.get(node, ()):
                takers[self._session.state.tasks.pod_group[other]] = None
            if places >= needed and takers:
                return list(takers)
        return []

    def _give(self, room: NDArray[np.float64], task: int, node: int, sign: float) -> None:
        for row, amount in self._session.state.charge_amounts(task, node):
            room[row, node] += sign * amount


def _places(room: NDArray[np.float64], task_class: TaskClass) -> NDArray[np.float64]:
    """Return how many tasks of a class each node has room for, shape (nodes,)."""
    rows = [row for row, amount in task_class.must_be_free if amount > 0]
    need = np.array([amount for _, amount in task_class.must_be_free if amount > 0])[:, None]
    places: NDArray[np.float64] = np.floor(room[rows] / need).min(axis=0)
    return np.maximum(places, 0)
