"""The queue tree of a snapshot: parents and children, or two levels if the hierarchy is flattened."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from scheduler.core.arrays import Ints
from scheduler.core.cluster.inputs import UNLIMITED_AMOUNTS, QueueInput
from scheduler.core.cluster.memo import Memo
from scheduler.core.errors import InputError

#: The synthetic root when the hierarchy is flattened.
FLAT_ROOT = "default"


class Queues:
    """The queues whose chain of parents ends at a root, oldest first, then by name; the others are left out.

    Attributes
    ----------
    inputs, names : the queues of the tree, in this order
    index_of : name of a queue -> its index
    parent : index of the parent, -1 for a root
    children : per queue, the indices of its children, oldest first
    memo : what was computed from the inputs alone; sessions share it until a queue changes
    """

    __slots__ = ("children", "index_of", "inputs", "memo", "names", "parent")

    def __init__(self, inputs: Sequence[QueueInput]) -> None:
        by_name: dict[str, QueueInput] = {}
        for queue in inputs:
            if queue.name in by_name:
                raise InputError(f"queue {queue.name!r} is in the snapshot twice")
            by_name[queue.name] = queue
        rooted = [queue for queue in inputs if _is_rooted(queue, by_name)]
        self.inputs = sorted(rooted, key=lambda queue: (queue.created, queue.name))
        self.names = [queue.name for queue in self.inputs]
        self.index_of = {name: index for index, name in enumerate(self.names)}
        self.parent = [self.index_of[queue.parent] if queue.parent else -1 for queue in self.inputs]
        self.children: list[list[int]] = [[] for _ in self.inputs]
        for index, parent in enumerate(self.parent):
            if parent >= 0:
                self.children[parent].append(index)
        self.memo = Memo()

    def paths(self) -> list[tuple[int, ...]]:
        """Return for each queue its own index and those of its ancestors, leaf to root."""
        return self.memo.remember(
            "paths", lambda: [self._path(queue) for queue in range(len(self))]
        )

    def shown_names(self) -> list[str]:
        """Return the name of each queue in messages."""
        return self.memo.remember("shown", lambda: [q.display_name or q.name for q in self.inputs])

    def priorities(self) -> list[int]:
        """Return the priority of each queue."""
        return self.memo.remember("priorities", lambda: [queue.priority for queue in self.inputs])

    def levels(self) -> list[Ints]:
        """Return the queues of each depth, top queues first."""
        return self.memo.remember("levels", self._levels)

    def _levels(self) -> list[Ints]:
        depth = np.array([len(path) for path in self.paths()], dtype=np.int64)
        return [np.flatnonzero(depth == level) for level in range(1, depth.max(initial=0) + 1)]

    def _path(self, queue: int) -> tuple[int, ...]:
        path = []
        while queue >= 0:
            path.append(queue)
            queue = self.parent[queue]
        return tuple(path)

    def __len__(self) -> int:
        return len(self.inputs)

    def is_leaf(self, queue: int) -> bool:
        """Return whether the queue has no children, so that pod groups may be in it."""
        return not self.children[queue]


def _is_rooted(queue: QueueInput, by_name: dict[str, QueueInput]) -> bool:
    """Return whether the chain of parents ends at a root, not at a missing parent or in a circle."""
    visited = {queue.name}
    while queue.parent:
        parent = by_name.get(queue.parent)
        if parent is None or parent.name in visited:
            return False
        visited.add(parent.name)
        queue = parent
    return True


def flatten(inputs: Sequence[QueueInput]) -> list[QueueInput]:
    """Return a tree of two levels: every queue that had a parent, directly below one unlimited root.

    The old roots are dropped, and so is a queue named FLAT_ROOT: the new root has that name.
    """
    root = QueueInput(
        name=FLAT_ROOT, cpu=UNLIMITED_AMOUNTS, memory=UNLIMITED_AMOUNTS, gpu=UNLIMITED_AMOUNTS
    )
    return [root] + [
        replace(queue, parent=FLAT_ROOT)
        for queue in inputs
        if queue.parent and queue.name != FLAT_ROOT
    ]
