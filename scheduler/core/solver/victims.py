"""Which tasks could be evicted, in the order in which they would lose their place.

The most over-served queue loses first, inside it the lowest priority, then the most elastic, then the
newest. A pod group loses in batches (one surplus task, a surplus subgroup, or all that is left), and
what is left competes again. Candidates are collected once per action and kept sorted per leaf queue. A
search reads them through a `VictimSequence`, which is extended only as far as some probe has read and
is shared by all probes of the search.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from scheduler.core.arrays import GPU_INDEX, NO_AMOUNTS, Amounts
from scheduler.core.cluster.status import NOMINATED
from scheduler.core.cluster.tasks import NOWHERE
from scheduler.core.fairshare.shares import plus
from scheduler.core.session.gang import GangView
from scheduler.core.session.policy import Comparable
from scheduler.core.session.session import Session
from scheduler.core.solver.leaves import Entry, LeafTable
from scheduler.core.solver.merge import Losses, merged
from scheduler.core.solver.queue_tree import QueueTree

#: Batches that are found one by one: at least so many, and one in so many of the pod groups there are. Most searches
#: end before, and the others lose little.
FEW, SHARE_WALKED = 32, 16


@dataclass(frozen=True, slots=True)
class Batch:
    """Tasks of one pod group that are evicted together or not at all.

    Attributes
    ----------
    pod_group : index of the pod group
    tasks, nodes, gpus : the tasks, where they are, and how many GPUs each frees there
    is_rest : nothing of the pod group is left after it
    """

    pod_group: int
    tasks: tuple[int, ...]
    nodes: tuple[int, ...]
    gpus: tuple[float, ...]
    is_rest: bool


def joined(batches: Sequence[Batch]) -> Batch:
    """Return batches of one pod group as one, in their order."""
    if len(batches) == 1:
        return batches[0]
    return Batch(
        batches[-1].pod_group,
        tuple(task for batch in batches for task in batch.tasks),
        tuple(node for batch in batches for node in batch.nodes),
        tuple(gpus for batch in batches for gpus in batch.gpus),
        batches[-1].is_rest,
    )


@dataclass(frozen=True, slots=True)
class Loss:
    """What a pod group loses next: its tasks that go together, and all that it holds before."""

    view: GangView
    batch: Batch
    held: Amounts


class VictimPool(LeafTable):
    """The preemptible pod groups that hold resources, by leaf queue; semi-preemptible ones while they have a surplus."""

    def __init__(self, session: Session) -> None:
        #: Leaf queue -> the lowest priority of its victims.
        self._lowest: dict[int, float] = {}
        #: pod group -> its version and its loss at that version
        self._losses: dict[int, tuple[int, Loss]] = {}
        super().__init__(session)

    def _belongs(self, pod_group: int) -> bool:
        pod_groups = self._session.state.pod_groups
        if pod_group in pod_groups.semi_preemptible:
            return bool(self._session.view(pod_group).surplus_batch())
        return pod_groups.active_allocated[pod_group] > 0 and pod_groups.preemptible[pod_group]

    def _forget(self, queue: int) -> None:
        self._lowest.pop(queue, None)

    def lowest_priority(self, queue: int) -> float:
        """Return the lowest priority among the candidates of a leaf queue."""
        lowest = self._lowest.get(queue)
        if lowest is None:
            priority = self._session.state.pod_groups.priority
            lowest = min((priority[index] for _, index in self.entries(queue)), default=inf)
            self._lowest[queue] = lowest
        return lowest

    def loss(self, pod_group: int) -> Loss:
        """Return what a pod group that is still whole loses next; kept until its tasks change."""
        version = self._session.state.pod_groups.version[pod_group]
        cached_loss = self._losses.get(pod_group)
        if cached_loss is None or cached_loss[0] != version:
            cached_loss = (version, loss_of(self._session, self._session.view(pod_group)))
            self._losses[pod_group] = cached_loss
        return cached_loss[1]


def loss_of(session: Session, view: GangView) -> Loss:
    """Return what a pod group or a part of it loses next; nominated tasks hold nothing.

    The batch is empty if all that is left is the protected minimum of a semi-preemptible pod group.
    """
    state = session.state
    accepted, node, status = state.tasks.accepted, state.tasks.node, state.tasks.status
    active = view.all_active_tasks()
    if view.pod_group in state.pod_groups.semi_preemptible:
        tasks = view.surplus_batch()
    else:
        tasks = active if len(active) == 1 else view.eviction_batch()
    batch = Batch(
        view.pod_group,
        tuple(tasks),
        tuple([node[task] for task in tasks]),
        tuple([accepted[task][GPU_INDEX] for task in tasks]),
        len(tasks) == len(active),
    )
    held_amounts = session.requested_by([task for task in active if status[task] != NOMINATED])
    return Loss(view, batch, held_amounts)


class VictimSequence:
    """The batches that one evictor could take, in order, computed only as far as they are read.

    Parameters
    ----------
    pool : the candidates
    leaves : the leaf queues whose pod groups may be evicted
    may_evict : whether a pod group may be evicted; called when its turn comes
    most_groups : limit on how many pod groups lose tasks
    passed_over : tasks that count as gone already and appear in no batch
    """

    def __init__(
        self,
        session: Session,
        pool: VictimPool,
        leaves: Sequence[int],
        may_evict: Callable[[GangView], bool],
        *,
        most_groups: float = inf,
        passed_over: frozenset[int] = frozenset(),
    ) -> None:
        self._session = session
        self._pool = pool
        self._policy = session.policy
        self._may_evict = may_evict
        self._most_groups = most_groups
        self._passed_over = passed_over
        self._leaves = {queue: _LeafVictims(pool.entries(queue)) for queue in leaves}
        self._tree = QueueTree(session.policy.ledger.paths, leaves)
        self._children, self._keys = self._tree.children, self._tree.keys
        #: Leaf queue -> those of it and its ancestors that have siblings, and so are compared by a key.
        self._compared = {leaf: self._with_siblings(leaf) for leaf in leaves}
        #: queue that is compared -> what the batches so far take from it
        self._lost: dict[int, Amounts] = {}
        self._pod_groups: set[int] = set()
        self.batches: list[Batch] = []
        #: How many batches are found one by one before the rest is sorted at once.
        self._walked = max(FEW, sum(leaf.unread for leaf in self._leaves.values()) // SHARE_WALKED)

    def get(self, position: int) -> Batch | None:
        """Return the batch at a position, or None if there are fewer."""
        while len(self.batches) <= position:
            if len(self.batches) == self._walked:
                self._sort_rest()
                continue
            batch = self._next()
            if batch is None:
                return None
            self.batches.append(batch)
        return self.batches[position]

    def read(self) -> Iterator[Batch]:
        """Yield every batch; what was not read before is computed as it is read."""
        yield from self.batches
        position = len(self.batches)
        while (batch := self.get(position)) is not None:
            yield batch
            position += 1

    def all(self) -> list[Batch]:
        """Return every batch there is."""
        while self.get(len(self.batches)) is not None:
            pass
        return self.batches

    def _sort_rest(self) -> None:
        """Append all batches that are left, if their order can be found at once."""
        self._walked = -1
        losses: list[Loss] = []
        leaves: dict[int, Losses] = {}
        for queue in self._leaves:
            of_leaf = self._losses_left(queue)
            if of_leaf is None:
                return
            numbers = np.arange(len(losses), len(losses) + len(of_leaf))
            held_amounts = np.array([loss.held for loss in of_leaf]).reshape(-1, 3)
            leaves[queue] = Losses(numbers, held_amounts)
            losses += of_leaf
        if not losses or len(self._pod_groups) + len(losses) > self._most_groups:
            return
        merged_losses = merged(self._policy, self._children, leaves, self._lost, NOWHERE)
        if merged_losses is not None:
            self.batches += [losses[number].batch for number in merged_losses.numbers.tolist()]
            self._leaves.clear()
            self._children.clear()

    def _losses_left(self, queue: int) -> list[Loss] | None:
        """Return the losses of the pod groups of a leaf queue that are left; None if one would not lose all it has."""
        leaf, pool, may_evict = self._leaves[queue], self._pool, self._may_evict
        if self._passed_over or leaf.remainders:
            return None
        losses = [] if leaf.head is None else [leaf.head]
        for number in range(leaf.unread - 1, -1, -1):
            loss = pool.loss(leaf.candidates[number][1])
            if loss.batch.tasks and may_evict(loss.view):
                losses.append(loss)
        bound_now = self._session.state.tasks.bound_now
        for loss in losses:
            if not loss.batch.is_rest or not bound_now.isdisjoint(loss.batch.tasks):
                return None
        return losses

    def _next(self) -> Batch | None:
        while self._children.get(NOWHERE):
            queue = NOWHERE
            while queue == NOWHERE or queue not in self._leaves:
                queue = self._most_served(queue)
            loss = self._head(queue)
            if loss is None:
                del self._leaves[queue]
                self._tree.forget_keys(queue)
                self._tree.remove(queue)
                continue
            batch = self._take(queue, loss)
            if batch is not None:
                return batch
        return None

    def _head(self, queue: int) -> Loss | None:
        """Return what the next pod group of a leaf queue would lose, without taking it."""
        leaf = self._leaves[queue]
        while leaf.head is None:
            remainder = leaf.remainders[-1] if leaf.remainders else None
            candidate = leaf.candidates[leaf.unread - 1] if leaf.unread else None
            if remainder is not None and (candidate is None or remainder[:2] > candidate):
                leaf.remainders.pop()
                loss = loss_of(self._session, remainder[2])
                if loss.batch.tasks:
                    leaf.head = loss
                continue
            if candidate is None:
                return None
            leaf.unread -= 1
            loss = self._pool.loss(candidate[1])
            if loss.batch.tasks and self._is_allowed(loss.view):
                leaf.head = loss
        return leaf.head

    def _is_allowed(self, view: GangView) -> bool:
        is_new = view.pod_group not in self._pod_groups
        if is_new and len(self._pod_groups) >= self._most_groups:
            return False
        return self._may_evict(view)

    def _take(self, queue: int, loss: Loss) -> Batch | None:
        """Take a batch off a pod group; what is left goes back and competes again.

        A pod group whose next batch contains a task bound in this cycle keeps what it has.
        """
        leaf = self._leaves[queue]
        leaf.head = None
        view, batch = loss.view, loss.batch
        for index in self._compared[queue]:
            self._keys.pop(index, None)
        if not self._session.state.tasks.bound_now.isdisjoint(batch.tasks):
            return None
        lost = self._lost
        for index in self._compared[queue]:
            lost[index] = plus(lost.get(index, NO_AMOUNTS), loss.held)
        self._pod_groups.add(batch.pod_group)
        if self._passed_over and not self._passed_over.isdisjoint(batch.tasks):
            remainder = view.without(self._passed_over)
            if remainder.all_active_tasks():
                self._put_back(leaf, remainder)
            return None
        if not batch.is_rest:
            self._put_back(leaf, view.without(batch.tasks))
        return batch

    def _put_back(self, leaf: _LeafVictims, view: GangView) -> None:
        entry = (self._session.pod_group_key(view), view.pod_group, view)
        insort(leaf.remainders, entry, key=_without_view)

    # ----------------------------------------------------------------------------------- keys

    def _with_siblings(self, leaf: int) -> tuple[int, ...]:
        parents = self._policy.ledger.parents
        return tuple(
            queue
            for queue in self._policy.ledger.paths[leaf]
            if len(self._children[parents[queue]]) > 1
        )

    def _most_served(self, parent: int) -> int:
        children = self._children[parent]
        if len(children) == 1:
            return children[0]
        best = NOWHERE
        best_key: Comparable | None = None
        for child in children:
            key = self._keys.get(child)
            if key is None:
                key = self._key(child)
            if key is None:
                continue
            if best_key is None or best_key < key:
                best, best_key = child, key
        return self._any_leaf(children[0]) if best == NOWHERE else best

    def _any_leaf(self, queue: int) -> int:
        while queue not in self._leaves:
            queue = self._children[queue][0]
        return queue

    def _key(self, queue: int) -> Comparable | None:
        """Measure the key of a queue after its losses; None if its next leaf has no candidate left."""
        leaf = queue
        while leaf not in self._leaves:
            leaf = self._most_served(leaf)
        loss = self._head(leaf)
        if loss is None:
            return None
        lost_amounts = plus(self._lost.get(queue, NO_AMOUNTS), loss.held)
        key = self._keys[queue] = self._policy.key(queue, NO_AMOUNTS, lost_amounts)
        return key


class _LeafVictims:
    """One leaf queue of a sequence.

    Attributes
    ----------
    candidates, unread : the pod groups of the queue, read from the end; the first `unread` are left
    remainders : pod groups that lost a batch and hold more, the next to lose last
    head : what the next pod group would lose, once it is known
    """

    __slots__ = ("candidates", "head", "remainders", "unread")

    def __init__(self, candidates: Sequence[Entry]) -> None:
        self.candidates = candidates
        self.unread = len(candidates)
        self.remainders: list[tuple[Any, int, GangView]] = []
        self.head: Loss | None = None


def _without_view(entry: tuple[Any, int, GangView]) -> Entry:
    return entry[:2]
