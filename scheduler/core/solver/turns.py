"""Whose turn it is inside a trial: the victims and the evictor, among all pending pod groups.

In a trial, victims that come before the evictor get their place back first. The order is that of the
queues. It depends on every pending pod group, because a queue is compared by what the best pod group
below it would take. Pod groups that do not take part in the trial (bystanders) only use up their turn. A
run of bystanders with equal requests in one leaf queue is skipped in one step, since nothing that the
order depends on changes in between.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from scheduler.core.arrays import Amounts
from scheduler.core.cluster.changes import Cursor
from scheduler.core.cluster.tasks import NOWHERE
from scheduler.core.session.gang import GangView
from scheduler.core.session.policy import Comparable
from scheduler.core.session.session import Session
from scheduler.core.solver.leaves import Entry, LeafTable
from scheduler.core.solver.queue_tree import QueueTree

#: An entry with the view of its pod group.
ViewEntry = tuple[Any, int, GangView]


class PendingTable(LeafTable):
    """The pod groups with pending tasks, by leaf queue."""

    def __init__(self, session: Session) -> None:
        #: By leaf queue.
        self._runs: dict[int, _Runs] = {}
        #: Leaf queues -> those of them and of their ancestors that compete with one another.
        self._contested: dict[frozenset[int], frozenset[int]] = {}
        super().__init__(session)

    def _belongs(self, pod_group: int) -> bool:
        return self._session.state.pod_groups.pending[pod_group] > 0

    def _forget(self, queue: int) -> None:
        self._runs.pop(queue, None)

    def contested(self, leaves: Iterable[int]) -> frozenset[int]:
        """Return the queues, among some leaf queues and their ancestors, that compete with one another."""
        key = frozenset(leaves)
        contested = self._contested.get(key)
        if contested is None:
            ledger = self._session.policy.ledger
            queues = {queue for leaf in key for queue in ledger.paths[leaf]}
            children = Counter(ledger.parents[queue] for queue in queues)
            contested = frozenset(queue for queue in queues if children[ledger.parents[queue]] > 1)
            self._contested[key] = contested
        return contested

    def runs(self, queue: int) -> _Runs:
        """Return the requests of the pending pod groups of a leaf queue, and their runs of equals."""
        runs = self._runs.get(queue)
        if runs is None:
            session = self._session
            runs = self._runs[queue] = _Runs(
                [
                    session.requested_by(session.view(pod_group).next_chunk(include_evicted=True))
                    for _, pod_group in self.entries(queue)
                ]
            )
        return runs


class _Runs:
    """Requests of pending pod groups in order, and where each run of equal requests ends."""

    __slots__ = ("ends", "requests")

    def __init__(self, requests: list[Amounts]) -> None:
        self.requests = requests
        self.ends = [0] * len(requests)
        end = len(requests)
        for position in range(len(requests) - 1, -1, -1):
            if requests[position] != requests[end - 1]:
                end = position + 1
            self.ends[position] = end


class TurnOrder:
    """The order of the participants of one trial (its victims and the evictor).

    Create it after the evictions. A participant may be pushed again for another turn.
    """

    def __init__(self, session: Session, pending: PendingTable, views: Sequence[GangView]) -> None:
        self._session = session
        self._pending = pending
        self._policy = session.policy
        self._paths = session.policy.ledger.paths
        self._participants_left = len(views)
        #: By leaf queue.
        self._leaves: dict[int, _LeafTurns] = {}
        self._cursor = Cursor(session.policy.touched)
        by_queue: dict[int, list[ViewEntry]] = {}
        for view in views:
            entry = (session.pod_group_key(view), view.pod_group, view)
            by_queue.setdefault(view.queue, []).append(entry)
        self._participants = participants = frozenset(view.pod_group for view in views)
        for queue, entries in by_queue.items():
            if len(entries) > 1:
                entries.sort(key=_without_view)
            self._leaves[queue] = _LeafTurns(entries, pending.entries(queue), participants)
        self._contested = pending.contested(by_queue)
        for queue in self._queues_of_bystanders():
            self._leaves[queue] = _LeafTurns([], pending.entries(queue), participants)
        self._tree = QueueTree(self._paths, self._leaves)
        self._children, self._keys = self._tree.children, self._tree.keys

    def pop(self) -> GangView | None:
        """Return the participant whose turn it is; None when all had their turn."""
        while self._participants_left:
            self._follow_policy()
            queue = self._best(NOWHERE)
            while queue not in self._leaves:
                queue = self._best(queue)
            leaf = self._leaves[queue]
            view = leaf.take_participant()
            if view is not None:
                self._participants_left -= 1
            else:
                leaf.skip_run(self._pending.runs(queue).ends)
            self._tree.forget_keys(queue)
            if leaf.is_empty or (leaf.has_no_participants and not self._can_decide(queue)):
                del self._leaves[queue]
                self._tree.remove(queue)
            if view is not None:
                return view
        return None

    def push(self, view: GangView) -> None:
        """Add a participant again, for another turn."""
        leaf = self._leaves.get(view.queue)
        if leaf is None:
            leaf = self._leaves[view.queue] = _LeafTurns(
                [], self._pending.entries(view.queue), self._participants
            )
            self._tree.add(view.queue)
        leaf.put_back((self._session.pod_group_key(view), view.pod_group, view))
        self._participants_left += 1
        self._tree.forget_keys(view.queue)

    # ------------------------------------------------------------------------ which queues count

    def _can_decide(self, leaf: int) -> bool:
        """Return whether a leaf queue without participants can decide a comparison.

        It can if its best pod group may be the best below an ancestor that competes.
        """
        return not self._contested.isdisjoint(self._paths[leaf][1:])

    def _queues_of_bystanders(self) -> list[int]:
        """Return the leaf queues without participants that can decide a comparison."""
        if not self._contested:
            return []
        return [
            leaf
            for leaf in self._pending.leaves
            if leaf not in self._leaves and self._can_decide(leaf)
        ]

    # ----------------------------------------------------------------------------------- keys

    def _best(self, parent: int) -> int:
        children = self._children[parent]
        best = children[0]
        if len(children) == 1:
            return best
        best_key = self._key(best)
        for child in children[1:]:
            key = self._key(child)
            if key < best_key:
                best, best_key = child, key
        return best

    def _key(self, queue: int) -> Comparable:
        key = self._keys.get(queue)
        if key is None:
            leaf = queue
            while leaf not in self._leaves:
                leaf = self._best(leaf)
            key = self._keys[queue] = self._policy.key(queue, self._request(leaf))
        return key

    def _request(self, queue: int) -> Amounts:
        """Return what the first pod group of a leaf queue would take."""
        leaf = self._leaves[queue]
        if leaf.is_bystander_next:
            return self._pending.runs(queue).requests[leaf.next_bystander]
        view = leaf.participants[leaf.next_participant][2]
        return self._session.requested_by(view.next_chunk(include_evicted=True))

    def _follow_policy(self) -> None:
        """Drop the keys of queues that gained or lost something since the last turn."""
        if self._cursor.is_behind():
            for queue in self._cursor.read():
                self._tree.forget_keys(queue)


def goes_first(session: Session, pending: PendingTable, view: GangView, victim: GangView) -> bool:
    """Return whether a pod group has its turn before its only victim; call it after the eviction.

    In the same leaf queue their own order decides, and as long as both are the next of sibling queues, the keys of
    these: the turns of all others change nothing. Only in other cases is the whole order needed.
    """
    entry = (session.pod_group_key(view), view.pod_group)
    victim_entry = (session.pod_group_key(victim), victim.pod_group)
    queue, victim_queue = view.queue, victim.queue
    if queue == victim_queue:
        return entry < victim_entry
    parents, policy = session.policy.ledger.parents, session.policy
    if parents[queue] == parents[victim_queue] and _is_next(pending, entry, queue):
        bystanders = pending.entries(victim_queue)
        if not bystanders or victim_entry < bystanders[0]:
            request = session.requested_by(view.next_chunk(include_evicted=True))
            victim_request = session.requested_by(victim.next_chunk(include_evicted=True))
            return policy.key(queue, request) < policy.key(victim_queue, victim_request)
    return TurnOrder(session, pending, [victim, view]).pop() is view


def _is_next(pending: PendingTable, entry: Entry, queue: int) -> bool:
    """Return whether a pending pod group with this entry comes before all others of its leaf queue."""
    entries = pending.entries(queue)
    return entries[0][1] == entry[1] and (len(entries) == 1 or entry < entries[1])


class _LeafTurns:
    """One leaf queue: participants and bystanders, each sorted, merged as they are read."""

    __slots__ = (
        "all_participants",
        "bystanders",
        "next_bystander",
        "next_participant",
        "participants",
    )

    def __init__(
        self,
        participants: list[ViewEntry],
        bystanders: Sequence[Entry],
        all_participants: frozenset[int],
    ) -> None:
        self.participants = participants
        self.bystanders = bystanders
        self.all_participants = all_participants
        self.next_participant = self.next_bystander = 0
        self._skip_participants()

    @property
    def is_empty(self) -> bool:
        """Return whether no pod group is left."""
        return self.has_no_participants and self.next_bystander == len(self.bystanders)

    @property
    def is_bystander_next(self) -> bool:
        """Return whether the next turn is that of a bystander."""
        if self.next_bystander == len(self.bystanders):
            return False
        if self.next_participant == len(self.participants):
            return True
        participant = self.participants[self.next_participant]
        return bool(self.bystanders[self.next_bystander] < participant[:2])

    @property
    def has_no_participants(self) -> bool:
        """Return whether all participants of this queue had their turn."""
        return self.next_participant == len(self.participants)

    def take_participant(self) -> GangView | None:
        """Take the next pod group out, unless it is a bystander."""
        if self.is_bystander_next:
            return None
        view = self.participants[self.next_participant][2]
        self.next_participant += 1
        return view

    def put_back(self, entry: ViewEntry) -> None:
        """Insert a participant among those that still wait for their turn."""
        insort(self.participants, entry, lo=self.next_participant, key=_without_view)

    def skip_run(self, ends: Sequence[int]) -> None:
        """Skip a run of bystanders with equal requests, up to the next participant."""
        end = ends[self.next_bystander]
        if self.next_participant < len(self.participants):
            participant = self.participants[self.next_participant]
            end = min(end, bisect_left(self.bystanders, participant[:2]))
        self.next_bystander = end
        self._skip_participants()

    def _skip_participants(self) -> None:
        """Move on to the next entry of the pending pod groups that is not a participant."""
        while (
            self.next_bystander < len(self.bystanders)
            and self.bystanders[self.next_bystander][1] in self.all_participants
        ):
            self.next_bystander += 1


def _without_view(entry: ViewEntry) -> Entry:
    return entry[:2]
