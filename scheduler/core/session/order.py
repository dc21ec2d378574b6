"""The order in which pod groups get their turn: a tree of queues with pod groups at its leaves.

At each level the queue whose key is smallest goes first, and its key depends on what it holds now and
on the best pod group below it. Both change only where something happened: after a turn only the path
from the touched leaf to the root is measured again. KAI keeps heaps whose inner order may lag behind
what queues hold; here the best is always the best by the state of the moment.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from typing import Any

from scheduler.core.arrays import Amounts
from scheduler.core.cluster.changes import Cursor
from scheduler.core.session.gang import GangView
from scheduler.core.session.policy import Comparable
from scheduler.core.session.session import Session

#: Index of the node above the top queues.
TOP = -1
#: Up to so many siblings are compared one by one.
FEW = 8

Entry = tuple[Any, int, GangView]


class _Node:
    """A queue that has pod groups below it. Leaves hold entries, inner nodes their best child."""

    __slots__ = (
        "above",
        "below",
        "best",
        "heap",
        "key",
        "listed",
        "pushed",
        "queue",
        "unmeasured",
        "wanted",
    )

    def __init__(self, queue: int, above: _Node | None) -> None:
        self.queue = queue
        self.above = above
        self.below: dict[_Node, None] = {}
        self.best: _Node | None = None
        self.key: Comparable | None = None
        #: Children by key; an entry whose key is no longer that of its child is passed over.
        self.heap: list[tuple[Comparable, int, _Node]] = []
        #: Children that are not in the heap by their present key.
        self.unmeasured: dict[_Node, None] = {}
        #: Entries from the start, best last; and those pushed later, as a heap.
        self.listed: list[Entry] = []
        self.pushed: list[Entry] = []
        #: What the best pod group below would take next; None until measured for the first time.
        self.wanted: Amounts | None = None

    def first(self) -> Entry:
        """Return the best entry of a leaf."""
        if not self.pushed:
            return self.listed[-1]
        if not self.listed or self.pushed[0] < self.listed[-1]:
            return self.pushed[0]
        return self.listed[-1]

    def take(self) -> GangView:
        """Remove the best entry of a leaf and return its pod group."""
        if self.pushed and self.first() is self.pushed[0]:
            return heapq.heappop(self.pushed)[2]
        return self.listed.pop()[2]


class GroupOrder:
    """Pod groups of all queues in the order they are served.

    Parameters
    ----------
    session : its hooks order pod groups, its policy orders queues
    views : the pod groups; those without a leaf queue are left out
    depth : at most this many of each leaf queue, the best ones
    """

    def __init__(
        self,
        session: Session,
        views: Iterable[GangView],
        *,
        depth: float = float("inf"),
    ) -> None:
        self._session = session
        self._policy = session.policy
        self._paths = session.policy.ledger.paths
        self._top = _Node(TOP, None)
        self._nodes: dict[int, _Node] = {}
        self._cursor = Cursor(session.policy.touched)
        self._serial = 0
        self._count = 0
        #: Nodes to measure again before the next turn.
        self._stale: list[_Node] = []
        self._fill(views, depth)

    # --------------------------------------------------------------------------------- public

    def pop(self) -> GangView | None:
        """Take out the pod group whose turn it is, or None if there is none left."""
        if not self._count:
            return None
        if self._cursor.is_behind():
            self._follow_touched()
        if self._stale:
            for node in self._stale if len(self._stale) == 1 else dict.fromkeys(self._stale):
                self._refresh(node)
            self._stale.clear()
        node = self._top
        while node.best is not None:
            node = node.best
        view = node.take()
        self._count -= 1
        self._stale.append(node)
        return view

    def push(self, view: GangView) -> None:
        """Put a pod group (back) in; it competes again from its place."""
        node = self._node(view.queue)
        heapq.heappush(node.pushed, self._entry(view))
        self._count += 1
        self._stale.append(node)

    def __bool__(self) -> bool:
        return self._count > 0

    def drain(self) -> Iterator[GangView]:
        """Pop until nothing is left."""
        while (view := self.pop()) is not None:
            yield view

    # -------------------------------------------------------------------------------- measures

    def _entry(self, view: GangView) -> Entry:
        self._serial += 1
        return (self._session.pod_group_key(view), self._serial, view)

    def _wanted_by(self, view: GangView) -> Amounts:
        return self._session.requested_by(view.next_chunk(include_evicted=False))

    # ------------------------------------------------------------------------------ structure

    def _fill(self, views: Iterable[GangView], depth: float) -> None:
        by_queue: dict[int, list[Entry]] = {}
        for view in views:
            queue = view.queue
            if queue >= 0:
                by_queue.setdefault(queue, []).append(self._entry(view))
        for queue, entries in by_queue.items():
            entries.sort()
            if len(entries) > depth:
                del entries[int(depth) :]
            entries.reverse()
            node = self._node(queue)
            node.listed = entries
            self._count += len(entries)
            self._stale.append(node)

    def _node(self, queue: int) -> _Node:
        """Return the node of a queue, hanging it and its ancestors into the tree if need be."""
        found = self._nodes.get(queue)
        if found is None:
            path = self._paths[queue]
            above = self._node(path[1]) if len(path) > 1 else self._top
            found = self._nodes[queue] = _Node(queue, above)
            above.below[found] = None
            above.unmeasured[found] = None
        return found

    def _follow_touched(self) -> None:
        """Measure again where queues gained or lost something outside of our own turns."""
        last = -1
        for leaf in self._cursor.read():
            if leaf == last:
                continue
            last = leaf
            for queue in self._paths[leaf]:
                node = self._nodes.get(queue)
                if node is not None:
                    if not self._stale or self._stale[-1] is not node:
                        self._stale.append(node)
                    break

    def _refresh(self, node: _Node) -> None:
        """Measure a node and its ancestors again, and choose the best child at each."""
        current: _Node | None = node
        while current is not None:
            above = current.above
            if above is None:
                break
            if current.best is not None:
                current.wanted = current.best.wanted
            elif current.listed or current.pushed:
                current.wanted = self._wanted_by(current.first()[2])
            elif self._nodes.get(current.queue) is current:
                del self._nodes[current.queue]
                del above.below[current]
                above.unmeasured.pop(current, None)
                current.wanted = None
            current.key = None
            if current.wanted is not None:
                above.unmeasured[current] = None
            above.best = self._best_child(above)
            current = above

    def _best_child(self, above: _Node) -> _Node | None:
        """Choose the first of siblings; one not measured yet is still stale and has its turn.

        An only child is never compared, so it gets no key until a sibling appears. A few are
        compared one by one, many are kept in a heap.
        """
        if len(above.below) == 1:
            return next(iter(above.below))
        if len(above.below) <= FEW:
            return self._best_of_few(above.below)
        if above.unmeasured:
            self._measure_children(above)
        heap = above.heap
        while heap and heap[0][2].key is not heap[0][0]:
            heapq.heappop(heap)
        return heap[0][2] if heap else None

    def _best_of_few(self, nodes: Iterable[_Node]) -> _Node | None:
        best, best_key = None, None
        for node in nodes:
            key = node.key
            if key is None:
                if node.wanted is None:
                    continue
                key = node.key = self._policy.key(node.queue, node.wanted)
            if best_key is None or key < best_key:
                best, best_key = node, key
        return best

    def _measure_children(self, above: _Node) -> None:
        waiting: dict[_Node, None] = {}
        for node in above.unmeasured:
            if node.wanted is None:
                waiting[node] = None
                continue
            node.key = self._policy.key(node.queue, node.wanted)
            self._serial += 1
            heapq.heappush(above.heap, (node.key, self._serial, node))
        above.unmeasured = waiting
