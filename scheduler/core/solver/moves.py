"""Whether pods that must all have a place can have one, by the sizes of what they request.

For actions that may only move pods. A place of size k is room for a request of k: a node with C free has ⌊C/k⌋ of
them, and a request of s takes at least ⌊s/k⌋. So whatever k is, the requests on a node never take more places than
the node has. With the smallest size above half of a node as k, this says that no node takes two such
pods; with the size of a free GPU it says that no more GPUs can be taken than there are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from scheduler.core.arrays import Bools, Floats
from scheduler.core.cluster.axis import CPU_ROW, GPU_ROW, MEMORY_ROW
from scheduler.core.placement.rules import ClassRules
from scheduler.core.session.session import Session
from scheduler.core.solver.demand import ProbeDemand

#: Relative tolerance for float noise.
SLACK = 1e-6
#: Sizes are tried that fit at most 1, 2, ... so many times on the largest node.
MOST_PER_NODE = 8

_ROWS = (CPU_ROW, MEMORY_ROW, GPU_ROW)


class MovingRoom:
    """The room for one demand and the victims that must move for it; holds until the session changes.

    Attributes
    ----------
    is_known : False where what a pod takes of a node is not the same on all nodes
    """

    __slots__ = ("_demand", "_room", "_rules_of", "_sizes_of", "_state", "is_known")

    def __init__(
        self, session: Session, rules_of: Callable[[int], ClassRules], demand: ProbeDemand
    ) -> None:
        state = self._state = session.state
        self._rules_of, self._demand = rules_of, demand
        self.is_known = not state.charge_rules and not any(
            rules_of(task).fit_rules for task in demand.tasks
        )
        #: Class index -> what a victim takes of each row; 0 where it may take less on some node.
        self._sizes_of: dict[int, tuple[float, ...]] = {}
        self._room = {row: self._free(row) for row in _ROWS}

    def may_hold(self, victims: Sequence[int]) -> bool:
        """Return whether the demand and these victims could all have a place, if only they move."""
        if not self.is_known:
            return True
        allowed = self._allowed_nodes((*self._demand.tasks, *victims))
        node_of = self._state.tasks.node
        nodes = np.array([node_of[task] for task in victims], dtype=np.int64)
        wanted = np.array([self._sizes(task) for task in self._demand.tasks])
        held = np.array([self._sizes(task) for task in victims]).reshape(-1, len(_ROWS))
        for index, row in enumerate(_ROWS):
            room = self._room[row].copy()
            is_somewhere = nodes >= 0
            np.add.at(room, nodes[is_somewhere], held[is_somewhere, index])
            sizes = np.concatenate([wanted[:, index], held[:, index]])
            if not _have_places(sizes, room[allowed]):
                return False
        return True

    def _free(self, row: int) -> Floats:
        """Return shape (nodes,): what is idle or being freed; all of the GPUs where devices are shared."""
        nodes = self._state.nodes
        free = np.array(nodes.idle_rows[row]) + np.array(nodes.releasing_rows[row])
        if row == GPU_ROW and any(nodes.shared_gpus):
            has_shared = np.array([bool(groups) for groups in nodes.shared_gpus])
            free = np.where(has_shared, np.array(nodes.allocatable[row]), free)
        room: Floats = np.maximum(free, 0.0)
        return room

    def _sizes(self, task: int) -> tuple[float, ...]:
        task_class = self._state.tasks.task_class[task]
        sizes = self._sizes_of.get(task_class.index)
        if sizes is None:
            charge = dict(task_class.charge)
            is_fixed = not self._rules_of(task).fit_rules
            sizes = tuple(charge.get(row, 0.0) if is_fixed else 0.0 for row in _ROWS)
            self._sizes_of[task_class.index] = sizes
        return sizes

    def _allowed_nodes(self, tasks: Sequence[int]) -> Bools:
        """Return shape (nodes,): which nodes the rules allow for any of these tasks."""
        masks = {id(mask): mask for mask in (self._rules_of(task).static_mask for task in tasks)}
        allowed: Bools = np.logical_or.reduce(list(masks.values()))
        return allowed


def _have_places(sizes: Floats, room: Floats) -> bool:
    """Return whether requests of these sizes could fit onto nodes with this room, for each size of place that is tried."""
    largest = float(room.max(initial=0.0)) * (1 + SLACK)
    for count in range(1, MOST_PER_NODE + 1):
        large = sizes[sizes > largest / (count + 1)]
        if not large.size:
            continue
        place = float(large.min())
        if np.floor(sizes / place).sum() > np.floor(room * (1 + SLACK) / place).sum():
            return False
    return True
