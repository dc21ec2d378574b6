"""The order in which pod groups get their turn: a tree of queues with pod groups at its leaves.

At each level the queue with the smallest key is first. The key depends on what the queue holds now and on
the best pod group below it. Both change only where something happened, so after a turn only the path from
the changed leaf to the root is measured again. KAI keeps heaps whose order may lag behind what queues hold
by now; here the first queue is always first by the present state. The contests inside a trial
(`solver/turns.py`, `solver/victims.py`) work differently, see `solver/queue_tree.py`.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import Any

from scheduler.core.arrays import Amounts
from scheduler.core.cluster.changes import Cursor
from scheduler.core.session.gang import GangView
from scheduler.core.session.policy import Comparable
from scheduler.core.session.session import Session
from scheduler.core.session.user_shares import UserShares

#: Index of the node above the top queues.
TOP = -1
#: Up to so many siblings are compared with each other; more are kept in a heap.
FEW_SIBLINGS = 8

#: (key of the pod group, serial number, view); the serial number decides between equal keys.
TurnEntry = tuple[Any, int, GangView]


class _Node:
    """A queue with pod groups below it.

    Attributes
    ----------
    parent, children : in the tree of queues that have pod groups
    best : the child that is served first; None for a leaf
    key : its key among its siblings; None if it must be measured, or has no sibling
    candidate : what the best pod group below would take next; None before the first measurement
    heap : children by key; entries whose key is no longer that of the child are skipped
    unmeasured : children that are not in the heap with their present key
    initial : entries of a leaf from the start, sorted, the best one last
    pushed : entries of a leaf that were pushed later, as a heap
    """

    __slots__ = (
        "best",
        "candidate",
        "children",
        "heap",
        "initial",
        "key",
        "parent",
        "pushed",
        "queue",
        "unmeasured",
    )

    def __init__(self, queue: int, parent: _Node | None) -> None:
        self.queue = queue
        self.parent = parent
        self.children: dict[_Node, None] = {}
        self.best: _Node | None = None
        self.key: Comparable | None = None
        self.candidate: Amounts | None = None
        self.heap: list[tuple[Comparable, int, _Node]] = []
        self.unmeasured: dict[_Node, None] = {}
        self.initial: list[TurnEntry] = []
        self.pushed: list[TurnEntry] = []

    def first(self) -> TurnEntry:
        """Return the best entry of a leaf."""
        if not self.pushed:
            return self.initial[-1]
        if not self.initial or self.pushed[0] < self.initial[-1]:
            return self.pushed[0]
        return self.initial[-1]

    def take(self) -> GangView:
        """Remove the best entry of a leaf and return its pod group."""
        if self.pushed and self.first() is self.pushed[0]:
            return heapq.heappop(self.pushed)[2]
        return self.initial.pop()[2]

    def fill(self, entries: list[TurnEntry], depth: float) -> int:
        """Add the entries from the start, the best ones up to `depth`; return how many."""
        entries.sort()
        if len(entries) > depth:
            del entries[int(depth) :]
        entries.reverse()
        self.initial = entries
        return len(entries)

    def put(self, entry: TurnEntry) -> None:
        """Add an entry to a leaf."""
        heapq.heappush(self.pushed, entry)

    def is_empty(self) -> bool:
        """Return whether a leaf has no entry."""
        return not self.initial and not self.pushed


class _LeafOfUsers(_Node):
    """A leaf queue in which users who hold less go first; its entries are kept by user.

    What users hold changes with every placement, so the users are compared anew for every turn.
    """

    __slots__ = ("_by_user", "_users")

    def __init__(self, queue: int, parent: _Node | None, users: UserShares) -> None:
        super().__init__(queue, parent)
        self._users = users
        #: User -> the user's entries as a heap; no user without entries.
        self._by_user: dict[int, list[TurnEntry]] = {}

    def first(self) -> TurnEntry:
        """Return the first entry of the user who goes first."""
        return self._by_user[self._first_user()][0]

    def take(self) -> GangView:
        """Remove that entry and return its pod group."""
        user = self._first_user()
        entries = self._by_user[user]
        view = heapq.heappop(entries)[2]
        if not entries:
            del self._by_user[user]
        return view

    def fill(self, entries: list[TurnEntry], depth: float) -> int:
        """Add the entries from the start; users take turns for the first `depth` places."""
        for entry in entries:
            self.put(entry)
        if len(entries) > depth:
            self._shorten(int(depth))
        return sum(map(len, self._by_user.values()))

    def put(self, entry: TurnEntry) -> None:
        """Add an entry to those of its user."""
        key, serial, view = entry
        user_entry = (self._users.own_key(key), serial, view)
        heapq.heappush(
            self._by_user.setdefault(self._users.user_of[view.pod_group], []), user_entry
        )

    def is_empty(self) -> bool:
        """Return whether no user has an entry."""
        return not self._by_user

    def _first_user(self) -> int:
        by_user, key = self._by_user, self._users.key_of_head
        if len(by_user) == 1:
            return next(iter(by_user))
        return min(by_user, key=lambda user: key(*by_user[user][0][::2]))

    def _shorten(self, depth: int) -> None:
        ranked = sorted(
            (position, self._users.use(user), entry[:2], user, entry)
            for user, entries in self._by_user.items()
            for position, entry in enumerate(sorted(entries, key=itemgetter(0, 1)))
        )
        self._by_user.clear()
        for *_, user, entry in ranked[:depth]:
            self._by_user.setdefault(user, []).append(entry)


class GroupOrder:
    """Pod groups of all queues in the order they are served.

    Parameters
    ----------
    session : its hooks sort pod groups, its policy sorts queues
    views : the pod groups; those without a queue are left out
    depth : how many of each leaf queue take part, the best ones
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
        self._users = session.attached(UserShares)
        self._top = _Node(TOP, None)
        #: Queue -> its node in the tree of heaps.
        self._nodes: dict[int, _Node] = {}
        self._cursor = Cursor(session.policy.touched)
        self._serial = 0
        self._count = 0
        #: Nodes to measure again before the next turn.
        self._stale: list[_Node] = []
        self._fill(views, depth)

    # --------------------------------------------------------------------------------- public

    def pop(self) -> GangView | None:
        """Remove and return the pod group whose turn it is; None if none is left."""
        if not self._count:
            return None
        cursor = self._cursor
        if cursor.position != len(cursor.log):
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
        """Add a pod group, for instance for another turn."""
        node = self._node(view.queue)
        node.put(self._entry(view))
        self._count += 1
        self._stale.append(node)

    def __bool__(self) -> bool:
        return self._count > 0

    def drain(self) -> Iterator[GangView]:
        """Pop pod groups until none is left."""
        while (view := self.pop()) is not None:
            yield view

    # -------------------------------------------------------------------------------- measures

    def _entry(self, view: GangView) -> TurnEntry:
        self._serial += 1
        return (self._session.pod_group_key(view), self._serial, view)

    def _candidate_of(self, view: GangView) -> Amounts:
        return self._session.requested_by(view.next_chunk(include_evicted=False))

    # ------------------------------------------------------------------------------ structure

    def _fill(self, views: Iterable[GangView], depth: float) -> None:
        by_queue: dict[int, list[TurnEntry]] = {}
        for view in views:
            queue = view.queue
            if queue >= 0:
                by_queue.setdefault(queue, []).append(self._entry(view))
        for queue, entries in by_queue.items():
            node = self._node(queue)
            self._count += node.fill(entries, depth)
            self._stale.append(node)

    def _node(self, queue: int) -> _Node:
        """Return the node of a queue; if it is missing, add it and its missing ancestors to the tree."""
        node = self._nodes.get(queue)
        if node is None:
            path = self._paths[queue]
            parent = self._node(path[1]) if len(path) > 1 else self._top
            users = self._users
            node = self._nodes[queue] = (
                _Node(queue, parent)
                if users is None or not users.applies_to(queue)
                else _LeafOfUsers(queue, parent, users)
            )
            parent.children[node] = None
            parent.unmeasured[node] = None
        return node

    def _follow_touched(self) -> None:
        """Mark as stale the nearest queues of ours above every leaf whose allocation changed."""
        previous = -1
        for leaf in self._cursor.read():
            if leaf == previous:
                continue
            previous = leaf
            for queue in self._paths[leaf]:
                node = self._nodes.get(queue)
                if node is not None:
                    if not self._stale or self._stale[-1] is not node:
                        self._stale.append(node)
                    break

    def _refresh(self, node: _Node) -> None:
        """Measure a node and its ancestors again, and choose the best child at each; drop empty ones."""
        current: _Node | None = node
        while current is not None:
            parent = current.parent
            if parent is None:
                break
            if current.best is not None:
                current.candidate = current.best.candidate
            elif not current.is_empty():
                current.candidate = self._candidate_of(current.first()[2])
            elif self._nodes.get(current.queue) is current:
                del self._nodes[current.queue]
                del parent.children[current]
                parent.unmeasured.pop(current, None)
                current.candidate = None
            current.key = None
            if current.candidate is not None:
                parent.unmeasured[current] = None
            parent.best = self._best_child(parent)
            current = parent

    def _best_child(self, parent: _Node) -> _Node | None:
        """Return the first of siblings.

        Siblings without a candidate are passed over here; they are stale and will be refreshed. An
        only child is never compared, so it needs no key until it gets a sibling.
        """
        if len(parent.children) == 1:
            return next(iter(parent.children))
        if len(parent.children) <= FEW_SIBLINGS:
            return self._best_of_few(parent.children)
        if parent.unmeasured:
            self._measure_children(parent)
        heap = parent.heap
        while heap and heap[0][2].key is not heap[0][0]:
            heapq.heappop(heap)
        return heap[0][2] if heap else None

    def _best_of_few(self, nodes: Iterable[_Node]) -> _Node | None:
        best, best_key = None, None
        for node in nodes:
            key = node.key
            if key is None:
                if node.candidate is None:
                    continue
                key = node.key = self._policy.key(node.queue, node.candidate)
            if best_key is None or key < best_key:
                best, best_key = node, key
        return best

    def _measure_children(self, parent: _Node) -> None:
        without_candidate: dict[_Node, None] = {}
        for node in parent.unmeasured:
            if node.candidate is None:
                without_candidate[node] = None
                continue
            node.key = self._policy.key(node.queue, node.candidate)
            self._serial += 1
            heapq.heappush(parent.heap, (node.key, self._serial, node))
        parent.unmeasured = without_candidate
