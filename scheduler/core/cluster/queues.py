"""The queue tree of a snapshot: parents, children, paths, and which queues fall away as orphans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from scheduler.core.cluster.inputs import UNLIMITED_AMOUNTS, QueueInput
from scheduler.core.errors import InputError

#: The synthetic root when the hierarchy is flattened.
FLAT_ROOT = "default"


class Queues:
    """Queues in order of age, then name; a queue without its parent is gone with all below it.

    Attributes
    ----------
    inputs, names : the queues that remain
    parent : index of the parent, -1 for a top queue
    children : indices, oldest first
    """

    __slots__ = ("children", "index_of", "inputs", "names", "parent")

    def __init__(self, given: Sequence[QueueInput]) -> None:
        by_name: dict[str, QueueInput] = {}
        for queue in given:
            if queue.name in by_name:
                raise InputError(f"queue {queue.name!r} is in the snapshot twice")
            by_name[queue.name] = queue
        rooted = [queue for queue in given if _is_rooted(queue, by_name)]
        self.inputs = sorted(rooted, key=lambda queue: (queue.created, queue.name))
        self.names = [queue.name for queue in self.inputs]
        self.index_of = {name: index for index, name in enumerate(self.names)}
        self.parent = [self.index_of[queue.parent] if queue.parent else -1 for queue in self.inputs]
        self.children: list[list[int]] = [[] for _ in self.inputs]
        for index, parent in enumerate(self.parent):
            if parent >= 0:
                self.children[parent].append(index)

    def __len__(self) -> int:
        return len(self.inputs)

    def is_leaf(self, queue: int) -> bool:
        """Tell whether pod groups may be in this queue."""
        return not self.children[queue]


def _is_rooted(queue: QueueInput, by_name: dict[str, QueueInput]) -> bool:
    """Follow the parents up; a missing one, or a circle, leaves the queue without a root."""
    seen = {queue.name}
    while queue.parent:
        above = by_name.get(queue.parent)
        if above is None or above.name in seen:
            return False
        seen.add(above.name)
        queue = above
    return True


def flatten(given: Sequence[QueueInput]) -> list[QueueInput]:
    """Put every queue that has a parent directly under one unlimited queue; drop the others."""
    root = QueueInput(
        name=FLAT_ROOT, cpu=UNLIMITED_AMOUNTS, memory=UNLIMITED_AMOUNTS, gpu=UNLIMITED_AMOUNTS
    )
    return [root] + [
        replace(queue, parent=FLAT_ROOT)
        for queue in given
        if queue.parent and queue.name != FLAT_ROOT
    ]
