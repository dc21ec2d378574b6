"""How many evictions the disruption limits still allow in this cycle.

A limit is charged when a statement with an eviction is kept. Trials charge nothing; they ask whether
the tasks that lose or change their place exceed a limit. So undoing a statement gives nothing back.
"""

from __future__ import annotations

from collections.abc import Iterable

from scheduler.core.cluster.disruption_limits import DisruptionLimit
from scheduler.core.cluster.state import ClusterState


class DisruptionLedger:
    """The limits of one cycle and what is left of them.

    Attributes
    ----------
    limits : those of the snapshot
    in_the_way : limits that excluded victims of the current search
    """

    __slots__ = ("_charged", "_limits_of", "_remaining", "in_the_way", "limits")

    def __init__(self, state: ClusterState) -> None:
        self.limits = state.cluster_input.disruption_limits
        self.in_the_way: set[int] = set()
        self._remaining = [limit.allowed for limit in self.limits]
        self._charged: set[int] = set()
        #: Task -> indices of the limits that count it.
        self._limits_of: dict[int, tuple[int, ...]] = {}
        if self.limits:
            self._assign(state)

    def _assign(self, state: ClusterState) -> None:
        """Find the limits of each task: task -> indices of limits."""
        by_pod: dict[str, tuple[int, ...]] = {}
        for index, limit in enumerate(self.limits):
            for uid in limit.pods:
                by_pod[uid] = (*by_pod.get(uid, ()), index)
        for task, pod in enumerate(state.tasks.inputs):
            limits = by_pod.get(pod.uid)
            if limits is not None:
                self._limits_of[task] = limits

    def __bool__(self) -> bool:
        """Return whether any task is under a limit."""
        return bool(self._limits_of)

    def exceeded(self, tasks: Iterable[int]) -> set[int]:
        """Return the limits that evicting these tasks together would exceed."""
        counts: dict[int, int] = {}
        for task in tasks:
            if task not in self._charged:
                for index in self._limits_of.get(task, ()):
                    counts[index] = counts.get(index, 0) + 1
        return {index for index, count in counts.items() if count > self._remaining[index]}

    def exhausted(self, tasks: Iterable[int]) -> set[int]:
        """Return the limits that forbid evicting these tasks, if each of them is forbidden; else an empty set."""
        limits: set[int] = set()
        for task in tasks:
            used_up = self.exceeded((task,))
            if not used_up:
                return set()
            limits |= used_up
        return limits

    def charge(self, task: int) -> None:
        """Count an eviction that was decided; a task counts once."""
        if task in self._charged:
            return
        self._charged.add(task)
        for index in self._limits_of.get(task, ()):
            self._remaining[index] -= 1

    def named(self, indices: Iterable[int]) -> tuple[DisruptionLimit, ...]:
        """Return limits by their indices, in the order of the snapshot."""
        return tuple(self.limits[index] for index in sorted(indices))
