"""The queues whose pod groups compete for a place, as a tree, with the keys by which the queues are compared.

`turns.py` (who gets a place next: the smallest key) and `victims.py` (who loses its place next: the
largest key) add the leaf queues that have entries to such a tree and walk it from the top. How a key
is computed, and what happens when a leaf has no entry left, differs between the two, and these walks are
the hottest loops of a search, so only the tree is shared. `session/order.py` works differently: it
keeps the best child of every queue up to date, since it serves thousands of pod groups in one pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from scheduler.core.cluster.tasks import NOWHERE
from scheduler.core.session.policy import Comparable


class QueueTree:
    """Leaf queues and their ancestors.

    The argument `paths` has for each queue its path to the top queue, which begins with the queue itself.

    Attributes
    ----------
    children : queue -> its children in this tree; those of NOWHERE are the top queues
    keys : queue -> the key it is compared by; absent until computed
    """

    __slots__ = ("_paths", "children", "keys")

    def __init__(self, paths: Sequence[Sequence[int]], leaves: Iterable[int]) -> None:
        self._paths = paths
        self.children: dict[int, list[int]] = {}
        self.keys: dict[int, Comparable] = {}
        for leaf in leaves:
            self.add(leaf)

    def add(self, leaf: int) -> None:
        """Add a leaf queue and the ancestors that are missing."""
        path = self._paths[leaf]
        for queue, parent in zip(path, (*path[1:], NOWHERE), strict=True):
            siblings = self.children.setdefault(parent, [])
            if queue in siblings:
                return
            siblings.append(queue)

    def remove(self, leaf: int) -> None:
        """Remove a leaf queue, and the ancestors that have no children left."""
        path = self._paths[leaf]
        for queue, parent in zip(path, (*path[1:], NOWHERE), strict=True):
            siblings = self.children[parent]
            siblings.remove(queue)
            if siblings or parent == NOWHERE:
                return
            del self.children[parent]

    def forget_keys(self, leaf: int) -> None:
        """Drop the keys of a leaf queue and its ancestors; they are computed again when needed."""
        for queue in self._paths[leaf]:
            self.keys.pop(queue, None)
