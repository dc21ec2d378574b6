"""Timestamps of pod groups that a cycle set, remembered until the watch brings them back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from scheduler.core.decisions import GroupMarks
from scheduler.core.session.session import Session
from scheduler.load.podgroups import FreshMarks

REMEMBERED_S = 5.0


@dataclass(slots=True)
class MarksMemory:
    """What the last cycles wrote onto pod groups, by `namespace/name`."""

    #: `namespace/name` of a pod group -> its marks.
    _marks: dict[str, FreshMarks] = field(default_factory=dict)

    @property
    def recent(self) -> Mapping[str, FreshMarks]:
        return self._marks

    def remember(self, marks: Iterable[GroupMarks], now: float) -> None:
        """Add the marks of a cycle at Unix time `now`, and forget those that the watch has brought."""
        self._marks = {key: mark for key, mark in self._marks.items() if mark.until > now}
        for mark in marks:
            self._marks[f"{mark.namespace}/{mark.pod_group}"] = FreshMarks(
                last_start=_absolute(mark.last_start, now),
                last_eviction=_absolute(mark.last_eviction, now),
                stale_since=_absolute(mark.stale_since, now),
                until=now + REMEMBERED_S,
            )


def changed_marks(session: Session) -> Iterator[GroupMarks]:
    """Return the timestamps of the pod groups for which this cycle changed one, relative to its start."""
    groups, now = session.state.pod_groups, session.state.now
    for index, pod_group in enumerate(groups.inputs):
        last_start, last_eviction = groups.last_start[index], groups.last_eviction[index]
        stale_since = groups.stale_since[index]
        before = (pod_group.last_start, pod_group.last_eviction, pod_group.stale_since)
        if before != (last_start, last_eviction, stale_since):
            yield GroupMarks(
                pod_group=pod_group.name,
                namespace=pod_group.namespace,
                last_start=_relative(last_start, now),
                last_eviction=_relative(last_eviction, now),
                stale_since=_relative(stale_since, now),
                is_stale=stale_since is not None,
            )


def _relative(moment: float | None, now: float) -> float | None:
    return None if moment is None else moment - now


def _absolute(relative: float | None, now: float) -> float | None:
    return None if relative is None else now + relative
