"""Pod groups sorted per leaf queue, kept for a whole session and updated where tasks changed.

The solver uses two such tables: the pending pod groups and those that could be evicted. They differ in
which pod groups they hold and in what they derive from the entries of a leaf queue.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from typing import Any, Self

from scheduler.core.cluster.tasks import NOWHERE
from scheduler.core.session.session import Session

#: (sort key of a pod group in its leaf queue, index of the pod group)
Entry = tuple[Any, int]


class LeafTable:
    """Pod groups by leaf queue; a subclass defines which ones, and drops what it derived from a changed leaf."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._versions = session.state.pod_groups.version[:]
        #: Leaf queue -> its entries.
        self._leaves: dict[int, list[Entry]] = {}
        #: Pod group -> its entry.
        self._entry_of: dict[int, Entry] = {}
        for pod_group in range(len(session.state.pod_groups)):
            if self._belongs(pod_group) and self._is_in_leaf(pod_group):
                self._leaves.setdefault(self._queue(pod_group), []).append(self._enter(pod_group))
        for entries in self._leaves.values():
            entries.sort()

    def _belongs(self, pod_group: int) -> bool:
        """Return whether a pod group belongs in the table."""
        raise NotImplementedError

    def _forget(self, queue: int) -> None:
        """Drop what was derived from the entries of a leaf queue."""
        raise NotImplementedError

    @classmethod
    def of(cls, session: Session) -> Self:
        """Return the session's table, brought up to date."""
        table = session.attached(cls)
        if table is None:
            table = session.attach(cls(session))
        before, now = table._versions, session.state.pod_groups.version
        if before != now:
            table._versions = now[:]
            versions = zip(before, now, strict=True)
            table.refresh([index for index, (old, new) in enumerate(versions) if old != new])
        return table

    @property
    def leaves(self) -> Sequence[int]:
        """Return the leaf queues that have entries, oldest queue first."""
        return sorted(self._leaves)

    def entries(self, queue: int) -> Sequence[Entry]:
        """Return the pod groups of a leaf queue in serving order; the last one is evicted first."""
        return self._leaves.get(queue, ())

    def refresh(self, changed: Iterable[int]) -> None:
        """Move pod groups whose tasks changed to their new position, or remove them."""
        for pod_group in changed:
            queue = self._queue(pod_group)
            old = self._entry_of.pop(pod_group, None)
            if old is not None:
                entries = self._leaves[queue]
                del entries[bisect_left(entries, old)]
                if not entries:
                    del self._leaves[queue]
            belongs = self._belongs(pod_group) and self._is_in_leaf(pod_group)
            if belongs:
                insort(self._leaves.setdefault(queue, []), self._enter(pod_group))
            if belongs or old is not None:
                self._forget(queue)

    def _enter(self, pod_group: int) -> Entry:
        entry = (self._session.pod_group_key(self._session.view(pod_group)), pod_group)
        self._entry_of[pod_group] = entry
        return entry

    def _queue(self, pod_group: int) -> int:
        return self._session.state.pod_groups.queue[pod_group]

    def _is_in_leaf(self, pod_group: int) -> bool:
        queue = self._queue(pod_group)
        return queue != NOWHERE and self._session.state.queues.is_leaf(queue)
