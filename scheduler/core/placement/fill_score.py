"""The score for filling nodes up (or for spreading tasks), and the free amounts that it is measured by.

Filling up depends on the emptiest and the fullest node of the set, so a change of either of the two changes the
scores of all nodes. Filling a cluster changes them a handful of times.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from scheduler.core.arrays import Bools, Floats
from scheduler.core.cluster.axis import CPU_ROW, GPU_ROW
from scheduler.core.cluster.classes import TaskClass
from scheduler.core.session.nodeset import NodeSet
from scheduler.core.session.session import Session

#: Weight of the score.
BINPACK_TOP = 9.0


def buffer(array: Floats) -> Any:
    """View an array as a buffer, which is faster to index; `Any` because its type says ints."""
    return array.data


class FillScore:
    """The fill score of the nodes of a set for one class of tasks; positions are those in the set.

    Attributes
    ----------
    row : the resource that counts, GPUs or for tasks without GPUs CPUs
    is_binpack : whether the fullest node is the best
    is_scored : whether the score counts for this class
    amount_view : what is idle and being freed on each node, as a buffer
    """

    __slots__ = (
        "_amounts",
        "_capacity",
        "_capacity_view",
        "_counted",
        "_high",
        "_is_extent_stale",
        "_low",
        "_nodes",
        "_set",
        "amount_view",
        "is_binpack",
        "is_scored",
        "row",
    )

    def __init__(self, session: Session, task_class: TaskClass, nodes: NodeSet) -> None:
        self._nodes, self._set = session.state.nodes, nodes
        strategy = session.hooks.placement
        self.row = CPU_ROW if task_class.is_cpu_only else GPU_ROW
        self.is_scored = strategy is not None and not (
            strategy.is_scored_otherwise is not None and strategy.is_scored_otherwise(task_class)
        )
        self.is_binpack = (
            strategy is not None
            and self.is_scored
            and (strategy.cpu_binpack if task_class.is_cpu_only else strategy.gpu_binpack)
        )
        self._capacity = self._capacities()
        self._capacity_view = buffer(self._capacity)
        counted = self._capacity != 0
        self._counted: Bools | None = None if counted.all() else counted
        #: The smallest and the largest amount on nodes that have any, and whether they must be measured again.
        self._low = self._high = 0.0
        self._is_extent_stale = True

    def _capacities(self) -> Floats:
        """Return the denominators of the score: allocatable amounts, or for spread the GPU count."""
        if self.row == GPU_ROW and not self.is_binpack:
            values = np.array(self._nodes.gpu_count, dtype=np.float64)
        else:
            values = self._nodes.allocatable[self.row]
        return np.ascontiguousarray(self._set.take(values), dtype=np.float64)

    def read_all(self) -> None:
        """Read the amounts of all nodes."""
        both = self._nodes.idle_and_releasing[self.row]
        self._amounts: Floats = both.copy() if self._set.is_all else both[self._set.indices]
        self.amount_view = buffer(self._amounts)
        self._measure_extent()

    def put(self, position: int, amount: float) -> None:
        """Change the amount of one node."""
        old = self.amount_view[position]
        if old == amount:
            return
        self.amount_view[position] = amount
        low, high = self._low, self._high
        if self._capacity_view[position] != 0 and (
            amount < low or amount > high or old in (low, high)
        ):
            self._is_extent_stale = self.is_binpack

    def has_new_extent(self) -> bool:
        """Return whether the smallest or the largest amount has changed, and with it the scores of all nodes."""
        if not self._is_extent_stale:
            return False
        low, high = self._low, self._high
        self._measure_extent()
        return self._low != low or self._high != high

    def _measure_extent(self) -> None:
        self._is_extent_stale = False
        amounts = self._amounts if self._counted is None else self._amounts[self._counted]
        self._low = float(amounts.min()) if amounts.size else 0.0
        self._high = float(amounts.max()) if amounts.size else 0.0

    def scores(self) -> Floats | float:
        """Return the score of all nodes, one number if it is the same for all."""
        if not self.is_scored:
            return 0.0
        if not self.is_binpack:
            return np.divide(
                self._amounts,
                self._capacity,
                out=np.zeros(len(self._set)),
                where=self._capacity != 0,
            )
        if self._high == 0:
            return 0.0
        scores: Floats | float = BINPACK_TOP
        if self._low != self._high:
            scores = BINPACK_TOP * (1 - (self._amounts - self._low) / (self._high - self._low))
        return scores if self._counted is None else np.where(self._counted, scores, 0.0)

    def score(self, position: int) -> float:
        """Return the score of one node."""
        capacity = self._capacity_view[position]
        if not self.is_scored or capacity == 0:
            return 0.0
        amount = self.amount_view[position]
        if not self.is_binpack:
            return float(amount / capacity)
        if self._high == 0:
            return 0.0
        if self._low == self._high:
            return BINPACK_TOP
        return float(BINPACK_TOP * (1 - (amount - self._low) / (self._high - self._low)))
