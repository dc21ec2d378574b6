"""Who could be evicted, in the order in which they would lose their place.

The most over-served queue loses first, inside it the lowest priority, then the most elastic, then the
newest. A pod group loses in batches (one surplus task, a surplus subgroup, or all that is left), and
what is left competes again. Candidates are found once per action and kept sorted per leaf queue; a
search reads them through a `VictimSequence`, which is extended only as far as some probe has looked and
is shared by all probes of the search.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from scheduler.core.arrays import NO_AMOUNTS, Amounts
from scheduler.core.cluster.status import NOMINATED
from scheduler.core.cluster.tasks import NOWHERE
from scheduler.core.fairshare.shares import plus
from scheduler.core.session.gang import GangView
from scheduler.core.session.policy import Comparable
from scheduler.core.session.session import Session
from scheduler.core.solver.leaves import Entry, LeafTable


@dataclass(frozen=True, slots=True)
class Batch:
    """Tasks of one pod group that are evicted together or not at all.

    Attributes
    ----------
    group : index of the pod group
    tasks, nodes, gpus : the tasks, where they are, and how many GPUs each frees there
    is_rest : nothing of the pod group is left after it
    """

    group: int
    tasks: tuple[int, ...]
    nodes: tuple[int, ...]
    gpus: tuple[float, ...]
    is_rest: bool


class VictimPool(LeafTable):
    """Preemptible pod groups that hold room."""

    def __init__(self, session: Session) -> None:
        self._lowest: dict[int, float] = {}
        super().__init__(session)

    def _belongs(self, group: int) -> bool:
        groups = self._session.state.pod_groups
        return groups.active_allocated[group] > 0 and groups.preemptible[group]

    def _forget(self, queue: int) -> None:
        self._lowest.pop(queue, None)

    def lowest_priority(self, queue: int) -> float:
        """Return the lowest priority among the candidates of a leaf queue."""
        found = self._lowest.get(queue)
        if found is None:
            priority = self._session.state.pod_groups.priority
            found = min((priority[group] for _, group in self.entries(queue)), default=inf)
            self._lowest[queue] = found
        return found


class VictimSequence:
    """The batches one asking pod group could take, in order, found as far as someone looks.

    Parameters
    ----------
    pool : the candidates
    leaves : the leaf queues whose pod groups may be taken
    keeps : whether a pod group may be taken; asked when its turn comes
    most_groups : at most so many pod groups
    """

    def __init__(
        self,
        session: Session,
        pool: VictimPool,
        leaves: Sequence[int],
        keeps: Callable[[GangView], bool],
        *,
        most_groups: float = inf,
        passed_over: frozenset[int] = frozenset(),
    ) -> None:
        self._session = session
        self._policy = session.policy
        self._keeps = keeps
        self._most_groups = most_groups
        self._passed_over = passed_over
        self._lines = {queue: _LeafVictims(pool.entries(queue)) for queue in leaves}
        self._popped: dict[int, Amounts] = {}
        self._keys: dict[int, Comparable] = {}
        self._children = _children_of(leaves, session.policy.ledger.paths)
        self._groups: set[int] = set()
        self.batches: list[Batch] = []

    def get(self, position: int) -> Batch | None:
        """Return the batch at a position, or None if there are not so many."""
        while len(self.batches) <= position:
            batch = self._next()
            if batch is None:
                return None
            self.batches.append(batch)
        return self.batches[position]

    def all(self) -> list[Batch]:
        """Return every batch there is."""
        while self.get(len(self.batches)) is not None:
            pass
        return self.batches

    def _next(self) -> Batch | None:
        while self._children.get(NOWHERE):
            queue = NOWHERE
            while queue == NOWHERE or queue not in self._lines:
                queue = self._most_served(queue)
            view = self._head(queue)
            if view is None:
                self._drop(queue)
                continue
            batch = self._cut(queue, view)
            if batch is not None:
                return batch
        return None

    def _head(self, queue: int) -> GangView | None:
        """Return the pod group of a leaf queue that loses next, without taking it out."""
        line = self._lines[queue]
        while line.head is None:
            pushed = line.pushed[-1] if line.pushed else None
            given = line.given[line.left - 1] if line.left else None
            if pushed is None and given is None:
                return None
            if given is None or (pushed is not None and pushed[:2] > given):
                line.pushed.pop()
                line.head = pushed[2]  # type: ignore[index]  # one of the two is there
                break
            line.left -= 1
            view = self._session.view(given[1])
            if self._may_take(view):
                line.head = view
        return line.head

    def _may_take(self, view: GangView) -> bool:
        if view.pod_group not in self._groups and len(self._groups) >= self._most_groups:
            return False
        return self._keeps(view)

    def _cut(self, queue: int, view: GangView) -> Batch | None:
        """Take a batch off a pod group; what is left goes back and competes again."""
        line = self._lines[queue]
        line.head = None
        held = self._held(view)
        for index in self._policy.ledger.paths[queue]:
            self._popped[index] = plus(self._popped.get(index, NO_AMOUNTS), held)
            self._keys.pop(index, None)
        self._groups.add(view.pod_group)
        tasks = view.eviction_batch()
        if self._passed_over and not self._passed_over.isdisjoint(tasks):
            rest = view.without(self._passed_over)
            if rest.all_active_tasks():
                self._push(line, rest)
            return None
        rest_count = len(view.all_active_tasks()) - len(tasks)
        if rest_count:
            self._push(line, view.without(tasks))
        return self._batch(view.pod_group, tasks, is_rest=not rest_count)

    def _push(self, line: _LeafVictims, view: GangView) -> None:
        insort(
            line.pushed, (self._session.pod_group_key(view), view.pod_group, view), key=_entry_key
        )

    def _batch(self, group: int, tasks: Sequence[int], *, is_rest: bool) -> Batch:
        state = self._session.state
        accepted, node = state.tasks.accepted, state.tasks.node
        return Batch(
            group,
            tuple(tasks),
            tuple([node[task] for task in tasks]),
            tuple([accepted[task][2] for task in tasks]),
            is_rest,
        )

    def _most_served(self, above: int) -> int:
        children = self._children[above]
        if len(children) == 1:
            return children[0]
        best = NOWHERE
        best_key: Comparable | None = None
        for child in list(children):
            key = self._key(child)
            if key is None:
                continue
            if best_key is None or best_key < key:
                best, best_key = child, key
        if best == NOWHERE:
            return self._any_leaf(children[0])
        return best

    def _any_leaf(self, queue: int) -> int:
        while queue not in self._lines:
            queue = self._children[queue][0]
        return queue

    def _key(self, queue: int) -> Comparable | None:
        found = self._keys.get(queue)
        if found is None:
            leaf = queue
            while leaf not in self._lines:
                leaf = self._most_served(leaf)
            view = self._head(leaf)
            if view is None:
                return None
            gone = plus(self._popped.get(queue, NO_AMOUNTS), self._held(view))
            found = self._keys[queue] = self._policy.key(queue, NO_AMOUNTS, gone)
        return found

    def _held(self, view: GangView) -> Amounts:
        """Sum what a pod group really holds; what it was only promised in this cycle is no loss."""
        status = self._session.state.tasks.status
        tasks = view.all_active_tasks()
        return self._session.requested_by([task for task in tasks if status[task] != NOMINATED])

    def _drop(self, queue: int) -> None:
        """Take an empty leaf queue, and ancestors that became empty, out of the tree."""
        del self._lines[queue]
        path = self._policy.ledger.paths[queue]
        for below, above in zip(path, (*path[1:], NOWHERE), strict=True):
            self._children[above].remove(below)
            self._keys.pop(below, None)
            if self._children[above]:
                for index in path[path.index(below) + 1 :]:
                    self._keys.pop(index, None)
                return
            if above != NOWHERE:
                del self._children[above]


class _LeafVictims:
    """One leaf queue of a sequence: given entries not yet reached, remainders, the next to lose."""

    __slots__ = ("given", "head", "left", "pushed")

    def __init__(self, given: Sequence[Entry]) -> None:
        self.given = given
        self.left = len(given)
        self.pushed: list[tuple[Any, int, GangView]] = []
        self.head: GangView | None = None


def _entry_key(entry: tuple[Any, int, GangView]) -> Entry:
    return entry[:2]


def _children_of(leaves: Iterable[int], paths: Sequence[Sequence[int]]) -> dict[int, list[int]]:
    """Hang leaf queues into the part of the queue tree they need."""
    children: dict[int, list[int]] = {}
    for leaf in leaves:
        path = paths[leaf]
        for below, above in zip(path, (*path[1:], NOWHERE), strict=True):
            siblings = children.setdefault(above, [])
            if below in siblings:
                break
            siblings.append(below)
    return children
