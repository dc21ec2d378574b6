"""Pod groups sorted per leaf queue, kept for a whole session and mended where tasks changed.

Two such tables serve the solver: who is pending and who could be evicted. They differ in who belongs in
them and in what they derive from a leaf's entries.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from typing import Any, Self

from scheduler.core.cluster.tasks import NOWHERE
from scheduler.core.session.session import Session

#: place in the order of its leaf queue, index of the pod group
Entry = tuple[Any, int]


class LeafTable:
    """The table; a subclass says who belongs, and forgets what it derived from a changed leaf."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._seen = session.state.pod_groups.version[:]
        self._leaves: dict[int, list[Entry]] = {}
        self._entry_of: dict[int, Entry] = {}
        for group in range(len(session.state.pod_groups)):
            if self._belongs(group) and self._is_in_leaf(group):
                self._leaves.setdefault(self._queue(group), []).append(self._enter(group))
        for entries in self._leaves.values():
            entries.sort()

    def _belongs(self, group: int) -> bool:
        """Tell whether a pod group is one of those the table holds."""
        raise NotImplementedError

    def _forget(self, queue: int) -> None:
        """Drop what was derived from the entries of a leaf queue."""
        raise NotImplementedError

    @classmethod
    def of(cls, session: Session) -> Self:
        """Return the session's table, with every pod group in its place that changed since."""
        found = session.attached(cls)
        if found is None:
            found = session.attach(cls(session))
        seen, now = found._seen, session.state.pod_groups.version
        if seen != now:
            found._seen = now[:]
            found.refresh(
                [group for group, (a, b) in enumerate(zip(seen, now, strict=True)) if a != b]
            )
        return found

    @property
    def leaves(self) -> Sequence[int]:
        """Return the leaf queues that have entries, oldest queue first."""
        return sorted(self._leaves)

    def entries(self, queue: int) -> Sequence[Entry]:
        """Return the pod groups of a leaf queue, best first; as a victim the last one loses first."""
        return self._leaves.get(queue, ())

    def refresh(self, changed: Iterable[int]) -> None:
        """Put pod groups whose tasks changed into their new place, or take them out."""
        for group in changed:
            queue = self._queue(group)
            old = self._entry_of.pop(group, None)
            if old is not None:
                entries = self._leaves[queue]
                del entries[bisect_left(entries, old)]
                if not entries:
                    del self._leaves[queue]
            belongs = self._belongs(group) and self._is_in_leaf(group)
            if belongs:
                insort(self._leaves.setdefault(queue, []), self._enter(group))
            if belongs or old is not None:
                self._forget(queue)

    def _enter(self, group: int) -> Entry:
        entry = (self._session.pod_group_key(self._session.view(group)), group)
        self._entry_of[group] = entry
        return entry

    def _queue(self, group: int) -> int:
        return self._session.state.pod_groups.queue[group]

    def _is_in_leaf(self, group: int) -> bool:
        queue = self._queue(group)
        return queue != NOWHERE and self._session.state.queues.is_leaf(queue)
