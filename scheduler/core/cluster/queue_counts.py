"""What the tasks of each queue hold and request, counted by kind of task.

A cluster has many tasks and few kinds of them, so that a queue is summed up from a few numbers, and a pod group
that comes or goes changes a few counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from scheduler.core.arrays import Amounts
from scheduler.core.cluster.podgroups import PodGroups
from scheduler.core.cluster.status import PENDING, QUEUE_ALLOCATED
from scheduler.core.cluster.tasks import NOWHERE, Tasks

K = TypeVar("K")


@dataclass(slots=True)
class QueueCounts:
    """How many tasks of each kind the leaf queues have.

    Attributes
    ----------
    held : (queue, what one task is charged, whether it is preemptible) -> tasks
    pending : (queue, what one task requests) -> tasks
    """

    held: dict[tuple[int, Amounts, bool], int] = field(default_factory=dict)
    pending: dict[tuple[int, Amounts], int] = field(default_factory=dict)

    def add(
        self, pod_groups: PodGroups, tasks: Tasks, indices: Iterable[int], number: int = 1
    ) -> None:
        """Count the tasks of the pod groups with these indices; the number -1 takes them out again."""
        for pod_group in indices:
            queue = pod_groups.queue[pod_group]
            if queue == NOWHERE:
                continue
            preemptible = pod_groups.preemptible[pod_group]
            for task in pod_groups.tasks_of(pod_group):
                status = tasks.status[task]
                if QUEUE_ALLOCATED[status]:
                    _count(self.held, (queue, tasks.accepted[task], preemptible), number)
                elif status == PENDING:
                    _count(self.pending, (queue, tasks.task_class[task].requested), number)

    def sorted_held(self) -> Sequence[tuple[tuple[int, Amounts, bool], int]]:
        """Return `held` in an order that does not depend on history, for sums of floats."""
        return sorted(self.held.items())

    def sorted_pending(self) -> Sequence[tuple[tuple[int, Amounts], int]]:
        """Return `pending` in an order that does not depend on history."""
        return sorted(self.pending.items())


def _count(counts: dict[K, int], key: K, number: int) -> None:
    total = counts.get(key, 0) + number
    if total:
        counts[key] = total
    else:
        del counts[key]
