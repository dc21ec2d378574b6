"""The order in which pod groups get their turn: a tree of queues with pod groups at its leaves.

At each level the queue whose key is smallest goes first, and its key depends on what it holds now and
on the best pod group below it. Both change only where something happened, so keys are kept and only
those on the paths of touched queues are measured again. KAI keeps heaps whose inner order may lag behind
what queues hold; here the best is always the best by the state of the moment.

For victims everything is reversed: the queue (and in it the pod group) to lose first comes first, and
what has been popped already counts as gone from its queue.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from typing import Any

from scheduler.core.cluster.classes import Triple
from scheduler.core.fairshare.shares import NOTHING, plus
from scheduler.core.session.gang import GangView
from scheduler.core.session.policy import Comparable
from scheduler.core.session.session import Session


class _Leaf:
    """Pod groups of one leaf queue, best first."""

    __slots__ = ("entries",)

    def __init__(self) -> None:
        self.entries: list[tuple[Any, int, GangView]] = []


class _Reversed:
    """A key that sorts the other way round."""

    __slots__ = ("key",)

    def __init__(self, key: Any) -> None:
        self.key = key

    def __lt__(self, other: _Reversed) -> bool:
        return bool(other.key < self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Reversed) and bool(self.key == other.key)

    __hash__ = None  # type: ignore[assignment]  # keys are compared, never looked up


class GroupOrder:
    """Pod groups of all queues in the order they are served.

    Parameters
    ----------
    session : its hooks order pod groups, its policy orders queues
    views : the pod groups; those without a leaf queue are left out
    depth : at most this many of each leaf queue, the best ones
    simulated : chunks of simulations (tasks evicted by the open statement want their place back)
    """

    def __init__(
        self,
        session: Session,
        views: Iterable[GangView],
        *,
        depth: float = float("inf"),
        simulated: bool = False,
    ) -> None:
        self._session = session
        self._real = not simulated
        self._policy = session.policy
        self._paths = session.policy.ledger.paths
        self._leaves: dict[int, _Leaf] = {}
        self._children: dict[int, list[int]] = {}
        self._keys: dict[int, Comparable] = {}
        self._best: dict[int, GangView] = {}
        self._dirty: set[int] = set()
        self._read = len(session.policy.touched)
        self._serial = 0
        self._fill(views, depth)

    # --------------------------------------------------------------------------------- public

    def pop(self) -> GangView | None:
        """Take out the pod group whose turn it is, or None if there is none left."""
        if not self._leaves:
            return None
        self._note_touched()
        queue = self._best_child(-1)
        while queue not in self._leaves:
            queue = self._best_child(queue)
        leaf = self._leaves[queue]
        view: GangView = heapq.heappop(leaf.entries)[-1]
        self._taken(view)
        self._mark(queue)
        if not leaf.entries:
            self._remove(queue)
        return view

    def push(self, view: GangView) -> None:
        """Put a pod group (back) in; it competes again from its place."""
        queue = view.queue
        leaf = self._leaves.get(queue)
        if leaf is None:
            leaf = self._leaves[queue] = _Leaf()
            self._insert(queue)
        heapq.heappush(leaf.entries, self._entry(view))
        self._mark(queue)

    def __bool__(self) -> bool:
        return bool(self._leaves)

    def drain(self) -> Iterator[GangView]:
        """Pop until nothing is left."""
        while (view := self.pop()) is not None:
            yield view

    # ------------------------------------------------------------------ what victims do otherwise

    def _entry(self, view: GangView) -> tuple[Any, int, GangView]:
        self._serial += 1
        return (self._session.group_key(view), self._serial, view)

    def _measure(self, queue: int, view: GangView) -> Comparable:
        chunk = view.next_chunk(real=self._real)
        return self._policy.key(queue, self._session.requested_by(chunk))

    def _taken(self, view: GangView) -> None:
        """Note what a popped pod group leaves behind; nothing, unless victims are ordered."""

    # ------------------------------------------------------------------------------ structure

    def _fill(self, views: Iterable[GangView], depth: float) -> None:
        by_queue: dict[int, list[tuple[Any, int, GangView]]] = {}
        for view in views:
            queue = view.queue
            if queue >= 0:
                entry = self._entry(view)
                found = by_queue.get(queue)
                if found is None:
                    by_queue[queue] = [entry]
                else:
                    found.append(entry)
        for queue, entries in by_queue.items():
            entries.sort()
            if len(entries) > depth:
                del entries[int(depth) :]
            leaf = self._leaves[queue] = _Leaf()
            leaf.entries = entries
            self._insert(queue)
            self._mark(queue)

    def _insert(self, queue: int) -> None:
        """Hang a leaf queue and its ancestors into the tree."""
        path = self._paths[queue]
        for below, above in zip(path, (*path[1:], -1), strict=True):
            siblings = self._children.setdefault(above, [])
            if below in siblings:
                return
            siblings.append(below)

    def _remove(self, queue: int) -> None:
        """Take an empty leaf queue, and ancestors that became empty, out of the tree."""
        del self._leaves[queue]
        path = self._paths[queue]
        for below, above in zip(path, (*path[1:], -1), strict=True):
            siblings = self._children[above]
            siblings.remove(below)
            self._keys.pop(below, None)
            if siblings or above < 0:
                return
            del self._children[above]

    def _mark(self, queue: int) -> None:
        self._dirty.update(self._paths[queue])

    def _note_touched(self) -> None:
        touched = self._policy.touched
        if self._read < len(touched):
            for queue in touched[self._read :]:
                if queue in self._leaves or len(self._paths[queue]) > 1:
                    self._dirty.update(self._paths[queue])
            self._read = len(touched)

    def _best_child(self, above: int) -> int:
        children = self._children[above]
        if len(children) == 1:
            return children[0]
        best = children[0]
        best_key = self._key(best)
        for child in children[1:]:
            key = self._key(child)
            if self._precedes(key, best_key):
                best, best_key = child, key
        return best

    def _precedes(self, key: Comparable, best: Comparable) -> bool:
        return key < best

    def _key(self, queue: int) -> Comparable:
        if queue in self._dirty or queue not in self._keys:
            self._dirty.discard(queue)
            self._keys[queue] = self._measure(queue, self._best_below(queue))
        return self._keys[queue]

    def _best_below(self, queue: int) -> GangView:
        while queue not in self._leaves:
            queue = self._best_child(queue)
        return self._leaves[queue].entries[0][-1]


class VictimOrder(GroupOrder):
    """Pod groups in the order they lose their place."""

    def __init__(self, session: Session, views: Iterable[GangView]) -> None:
        self._popped: dict[int, Triple] = {}
        super().__init__(session, views)

    def _entry(self, view: GangView) -> tuple[Any, int, GangView]:
        self._serial += 1
        return (_Reversed(self._session.group_key(view)), self._serial, view)

    def _measure(self, queue: int, view: GangView) -> Comparable:
        gone = plus(self._popped.get(queue, NOTHING), self._held(view))
        return self._policy.key(queue, NOTHING, gone)

    def _precedes(self, key: Comparable, best: Comparable) -> bool:
        return best < key

    def _taken(self, view: GangView) -> None:
        held = self._held(view)
        for queue in self._paths[view.queue]:
            self._popped[queue] = plus(self._popped.get(queue, NOTHING), held)

    def _held(self, view: GangView) -> Triple:
        return self._session.requested_by(view.all_active_tasks())
