"""Whose turn it is inside a trial: victims and the asking pod group among all that is pending.

In a trial, victims that stand before the asking pod group get their place back first. The order is
that of the queues, and it depends on every pending pod group, because a queue is compared by what the
best pod group below it would take. Pod groups that are neither victim nor asking only take their turn
and do nothing; a run of them with equal requests in one leaf queue is passed in one step, since
nothing that the order looks at changes in between.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from typing import Any

from scheduler.core.arrays import Amounts
from scheduler.core.cluster.changes import Cursor
from scheduler.core.cluster.tasks import NOWHERE
from scheduler.core.session.gang import GangView
from scheduler.core.session.policy import Comparable
from scheduler.core.session.session import Session
from scheduler.core.solver.leaves import Entry, LeafTable


class PendingBoard(LeafTable):
    """Pod groups with pending tasks."""

    def __init__(self, session: Session) -> None:
        self._runs: dict[int, _Runs] = {}
        super().__init__(session)

    def _belongs(self, group: int) -> bool:
        return self._session.state.pod_groups.pending[group] > 0

    def _forget(self, queue: int) -> None:
        self._runs.pop(queue, None)

    def runs(self, queue: int) -> _Runs:
        """Return what the pending pod groups of a leaf queue ask for, and their runs of equals."""
        found = self._runs.get(queue)
        if found is None:
            session = self._session
            found = self._runs[queue] = _Runs(
                [
                    session.requested_by(session.view(group).next_chunk(include_evicted=True))
                    for _, group in self.entries(queue)
                ]
            )
        return found


class _Runs:
    """Requests of pending pod groups in order, and where each run of equal requests ends."""

    __slots__ = ("ends", "requests")

    def __init__(self, requests: list[Amounts]) -> None:
        self.requests = requests
        self.ends = [0] * len(requests)
        end = len(requests)
        for place in range(len(requests) - 1, -1, -1):
            if requests[place] != requests[end - 1]:
                end = place + 1
            self.ends[place] = end


class TurnOrder:
    """The order of victims and the asking pod group in one trial; made after the evictions."""

    def __init__(self, session: Session, board: PendingBoard, views: Sequence[GangView]) -> None:
        self._session = session
        self._board = board
        self._policy = session.policy
        self._paths = session.policy.ledger.paths
        self._left = len(views)
        self._lines: dict[int, _LeafTurns] = {}
        self._keys: dict[int, Comparable] = {}
        self._cursor = Cursor(session.policy.touched)
        own: dict[int, list[tuple[Any, int, GangView]]] = {}
        for view in views:
            entry = (session.pod_group_key(view), view.pod_group, view)
            own.setdefault(view.queue, []).append(entry)
        self._concerned = concerned = frozenset(view.pod_group for view in views)
        for queue, entries in own.items():
            entries.sort(key=_entry_key)
            self._lines[queue] = _LeafTurns(entries, board.entries(queue), concerned)
        self._contested = self._contested_queues(own)
        for queue in self._bystanders(board):
            self._lines[queue] = _LeafTurns([], board.entries(queue), concerned)
        self._children = self._tree()

    def pop(self) -> GangView | None:
        """Return the next pod group of those given, None when all had their turn."""
        while self._left:
            self._note_touched()
            queue = self._best(NOWHERE)
            while queue not in self._lines:
                queue = self._best(queue)
            line = self._lines[queue]
            view = line.take_own()
            if view is not None:
                self._left -= 1
            else:
                line.pass_run(self._board.runs(queue).ends)
            self._forget(queue)
            if line.is_empty or (line.is_own_taken and not self._still_matters(queue)):
                self._remove(queue)
            if view is not None:
                return view
        return None

    def push(self, view: GangView) -> None:
        """Give a pod group that had its turn, and is not whole again, another one."""
        line = self._lines.get(view.queue)
        if line is None:
            line = self._lines[view.queue] = _LeafTurns(
                [], self._board.entries(view.queue), self._concerned
            )
            self._hang(self._children, view.queue)
        line.put_own((self._session.pod_group_key(view), view.pod_group, view))
        self._left += 1
        self._forget(view.queue)

    # ------------------------------------------------------------------------------ structure

    def _contested_queues(self, own: Iterable[int]) -> set[int]:
        """Return the queues whose key is ever compared with that of a concerned sibling."""
        parents = self._policy.ledger.parents
        concerned = {index for queue in own for index in self._paths[queue]}
        by_parent: dict[int, int] = {}
        for index in concerned:
            by_parent[parents[index]] = by_parent.get(parents[index], 0) + 1
        return {index for index in concerned if by_parent[parents[index]] > 1}

    def _still_matters(self, queue: int) -> bool:
        """Tell whether a leaf queue without own pod groups can decide a comparison.

        It does where its best can be the best below an ancestor that competes.
        """
        return any(index in self._contested for index in self._paths[queue][1:])

    def _bystanders(self, board: PendingBoard) -> list[int]:
        """Return leaf queues without a view of their own that matter all the same."""
        if not self._contested:
            return []
        return [
            queue
            for queue in board.leaves
            if queue not in self._lines and self._still_matters(queue)
        ]

    def _tree(self) -> dict[int, list[int]]:
        children: dict[int, list[int]] = {}
        for leaf in self._lines:
            self._hang(children, leaf)
        return children

    def _hang(self, children: dict[int, list[int]], leaf: int) -> None:
        path = self._paths[leaf]
        for below, above in zip(path, (*path[1:], NOWHERE), strict=True):
            siblings = children.setdefault(above, [])
            if below in siblings:
                return
            siblings.append(below)

    def _remove(self, queue: int) -> None:
        del self._lines[queue]
        path = self._paths[queue]
        for below, above in zip(path, (*path[1:], NOWHERE), strict=True):
            siblings = self._children[above]
            siblings.remove(below)
            if siblings or above == NOWHERE:
                return
            del self._children[above]

    # ----------------------------------------------------------------------------------- keys

    def _best(self, above: int) -> int:
        children = self._children[above]
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
        found = self._keys.get(queue)
        if found is None:
            leaf = queue
            while leaf not in self._lines:
                leaf = self._best(leaf)
            found = self._policy.key(queue, self._request(leaf))
            self._keys[queue] = found
        return found

    def _request(self, leaf: int) -> Amounts:
        line = self._lines[leaf]
        if line.is_bystander_next:
            return self._board.runs(leaf).requests[line.next_bystander]
        return self._session.requested_by(
            line.own[line.next_own][2].next_chunk(include_evicted=True)
        )

    def _forget(self, queue: int) -> None:
        for index in self._paths[queue]:
            self._keys.pop(index, None)

    def _note_touched(self) -> None:
        if self._cursor.is_behind():
            for queue in self._cursor.read():
                self._forget(queue)


class _LeafTurns:
    """One leaf queue: own pod groups and bystanders, each sorted, merged as they are read."""

    __slots__ = ("bystanders", "concerned", "next_bystander", "next_own", "own")

    def __init__(
        self,
        own: list[tuple[Any, int, GangView]],
        bystanders: Sequence[Entry],
        concerned: frozenset[int],
    ) -> None:
        self.own = own
        self.bystanders = bystanders
        self.concerned = concerned
        self.next_own = self.next_bystander = 0
        self._skip_concerned()

    @property
    def is_empty(self) -> bool:
        """Tell whether nobody is left."""
        return self.next_own == len(self.own) and self.next_bystander == len(self.bystanders)

    @property
    def is_bystander_next(self) -> bool:
        """Tell whether the next one is neither victim nor asking."""
        if self.next_bystander == len(self.bystanders):
            return False
        if self.next_own == len(self.own):
            return True
        return bool(self.bystanders[self.next_bystander] < self.own[self.next_own][:2])

    @property
    def is_own_taken(self) -> bool:
        """Tell whether all victims and the asking pod group of this queue had their turn."""
        return self.next_own == len(self.own)

    def take_own(self) -> GangView | None:
        """Take the next pod group out if it is a victim or asking."""
        if self.is_bystander_next:
            return None
        view = self.own[self.next_own][2]
        self.next_own += 1
        return view

    def put_own(self, entry: tuple[Any, int, GangView]) -> None:
        """Put one pod group in among those that still wait for their turn."""
        insort(self.own, entry, lo=self.next_own, key=_entry_key)

    def pass_run(self, ends: Sequence[int]) -> None:
        """Let a run of bystanders with equal requests have its turn, up to the next own one."""
        stop = ends[self.next_bystander]
        if self.next_own < len(self.own):
            stop = min(stop, bisect_left(self.bystanders, self.own[self.next_own][:2]))
        self.next_bystander = stop
        self._skip_concerned()

    def _skip_concerned(self) -> None:
        while (
            self.next_bystander < len(self.bystanders)
            and self.bystanders[self.next_bystander][1] in self.concerned
        ):
            self.next_bystander += 1


def _entry_key(entry: tuple[Any, int, GangView]) -> Entry:
    return entry[:2]
