"""What each user holds of a leaf queue, for queues in which users who hold less go first.

How much a user holds is one number: the largest part of the cluster's CPUs, memory or GPUs that the pods of
their workloads in this queue take. It follows every placement and eviction of the session.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from scheduler.core.arrays import Amounts
from scheduler.core.cluster.axis import CPU_ROW, MEMORY_ROW
from scheduler.core.cluster.classes import TaskClass
from scheduler.core.cluster.journal import WHOLE
from scheduler.core.cluster.state import ClusterState
from scheduler.core.cluster.status import QUEUE_ALLOCATED
from scheduler.core.cluster.tasks import NOWHERE
from scheduler.core.session.gang import GangView
from scheduler.core.session.policy import SHARE_STEPS

#: Comes before what any user holds: a gang that runs without some of its tasks is of no use to anybody.
_BROKEN = -1.0
NO_USER = -1


class UserShares:
    """The users of all leaf queues with fairness among users; a listener of placements.

    Attributes
    ----------
    user_of : pod group -> number of its user in its queue; NO_USER in other queues
    names : user -> name as the pod groups state it
    held : user -> CPU, memory and GPUs of the user's pods in the queue
    """

    def __init__(self, state: ClusterState, order_position: int) -> None:
        self._state = state
        #: Where the key of this order is among those of a pod group.
        self._position = order_position
        self._totals = _totals(state)
        self.user_of, self.names = _users(state)
        self._queues = frozenset(
            queue
            for queue, user in zip(state.pod_groups.queue, self.user_of, strict=True)
            if user != NO_USER
        )
        self.held: list[list[float]] = [[0.0, 0.0, 0.0] for _ in self.names]
        self._classes = {
            state.tasks.task_class[task].index
            for group, user in enumerate(self.user_of)
            if user != NO_USER
            for task in state.pod_groups.tasks_of(group)
        }
        #: Pod group -> what its user held in older pod groups at the opening of the session.
        self._opening = self._charge_running()

    def applies_to(self, queue: int) -> bool:
        """Return whether users are compared in a leaf queue."""
        return queue in self._queues

    def use(self, user: int) -> float:
        """Return the largest part of a resource of the cluster that a user holds in the queue now."""
        return self._part(self.held[user])

    # -------------------------------------------------------------------------------- the order

    def opening_key(self, view: GangView) -> float:
        """Return the key of a pod group in trials: what its user held beside it when the session began.

        It stays the same for the whole session, so that the turns inside a trial do not depend on each other.
        A pod group that runs counts only what older ones of its user held. So of two users' running pod
        groups those of the one who holds more are evicted first, until both hold the same.
        """
        group = view.pod_group
        if self.user_of[group] == NO_USER:
            return 0.0
        return _BROKEN if view.is_broken() else self._opening[group]

    def own_key(self, key: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the key of a pod group among those of its user: without what the user holds."""
        return (*key[: self._position], *key[self._position + 1 :])

    def key_of_head(self, own_key: tuple[Any, ...], view: GangView) -> tuple[Any, ...]:
        """Return the key of the first pod group of a user among those of other users, by what this user holds now."""
        use = _BROKEN if view.is_broken() else self.use(self.user_of[view.pod_group])
        return (*own_key[: self._position], use, *own_key[self._position :])

    # --------------------------------------------------------------------------------- listener

    def concerns(self, task_class: TaskClass) -> bool:
        """Return whether a queue with fairness among users has tasks of this class."""
        return task_class.index in self._classes

    def placed(self, task: int, node: int) -> None:
        """Add what a task holds."""
        del node
        self._add(task, 1.0)

    def left(self, task: int, node: int) -> None:
        """Subtract what a task held."""
        del node
        self._add(task, -1.0)

    def _add(self, task: int, sign: float) -> None:
        tasks = self._state.tasks
        user = self.user_of[tasks.pod_group[task]]
        if user == NO_USER:
            return
        row = self.held[user]
        self._state.journal.entries.append((row, WHOLE, row[:]))
        for resource, amount in enumerate(tasks.accepted[task]):
            row[resource] += sign * amount

    # -------------------------------------------------------------------------------- measuring

    def _charge_running(self) -> list[float]:
        """Charge users with what runs; return by pod group what counts in `opening_key`."""
        tasks, groups = self._state.tasks, self._state.pod_groups
        before = [0.0] * len(groups)
        runs: set[int] = set()
        for group, user in enumerate(self.user_of):
            if user == NO_USER:
                continue
            before[group] = self.use(user)
            for task in groups.tasks_of(group):
                if QUEUE_ALLOCATED[tasks.status[task]]:
                    runs.add(group)
                    for resource, amount in enumerate(tasks.accepted[task]):
                        self.held[user][resource] += amount
        return [
            before[group] if user == NO_USER or group in runs else self.use(user)
            for group, user in enumerate(self.user_of)
        ]

    def _part(self, amounts: Sequence[float]) -> float:
        part = max(amount / total for amount, total in zip(amounts, self._totals, strict=True))
        return (part * SHARE_STEPS + 0.5) // 1.0 / SHARE_STEPS


def _totals(state: ClusterState) -> Amounts:
    """Return what the nodes have; 1 of a resource that none has, so that parts can be computed."""
    sums = state.nodes.allocatable.sum(axis=1)
    gpus = state.axis.gpus_of(sums)
    return (float(sums[CPU_ROW]) or 1.0, float(sums[MEMORY_ROW]) or 1.0, gpus or 1.0)


def _users(state: ClusterState) -> tuple[list[int], list[str]]:
    """Return the number of each pod group's user, and the names by number; a name counts once per queue."""
    queues = state.queues.inputs
    numbers: dict[tuple[int, str], int] = {}
    user_of = [
        NO_USER
        if queue == NOWHERE or not queues[queue].user_fairness
        else numbers.setdefault((queue, group.user), len(numbers))
        for queue, group in zip(state.pod_groups.queue, state.pod_groups.inputs, strict=True)
    ]
    return user_of, [name for _, name in numbers]
