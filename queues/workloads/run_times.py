"""The maximum run time of workloads: how long one may run before it is evicted, and how long it then waits.

Queues state both in annotations, which the queues below inherit; a workload may state less run time and a longer wait
than its queue, never the reverse. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kube.keys import MAX_RUN_TIME, REQUEUE_DELAY
from kube.values.durations import SECOND, format_duration, seconds_or_none


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedRunTime:
    """What one object states, in seconds; None for what it leaves open, a maximum of 0 for none."""

    maximum_s: float | None = None
    delay_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTimeLimit:
    """The limit of a workload: how long it may run, and how long it waits at least when it had to end."""

    maximum_s: float
    delay_s: float = 0.0

    @property
    def text(self) -> str:
        """Return the maximum as people write it, e.g. `4h0m0s`."""
        return format_duration(round(self.maximum_s * SECOND))


NOTHING_STATED = StatedRunTime()


def stated_run_time(annotations: Mapping[str, str]) -> StatedRunTime:
    """Return what the annotations of a workload state."""
    return read_run_time(annotations.get(MAX_RUN_TIME), annotations.get(REQUEUE_DELAY))


def read_run_time(maximum: str | None, delay: str | None) -> StatedRunTime:
    """Return what two texts state; a duration that cannot be read, or below 0, counts as not stated."""
    if not maximum and not delay:
        return NOTHING_STATED
    return StatedRunTime(maximum_s=_seconds(maximum), delay_s=_seconds(delay))


def _seconds(text: str | None) -> float | None:
    seconds = seconds_or_none(text)
    return seconds if seconds is not None and seconds >= 0 else None


def inherited(
    queue: str, parent_of: Mapping[str, str], stated: Mapping[str, StatedRunTime]
) -> StatedRunTime:
    """Return what holds in a queue: its own maximum and delay, else those of the nearest queue above that states them.

    Parameters
    ----------
    parent_of : by queue; a queue without an entry, or with an empty one, is the last
    stated : by queue; queues that state nothing need no entry
    """
    maximum_s = delay_s = None
    visited: set[str] = set()
    while queue and queue not in visited:
        visited.add(queue)
        run_time = stated.get(queue, NOTHING_STATED)
        maximum_s = run_time.maximum_s if maximum_s is None else maximum_s
        delay_s = run_time.delay_s if delay_s is None else delay_s
        queue = parent_of.get(queue, "")
    return StatedRunTime(maximum_s=maximum_s, delay_s=delay_s)


def limit_of(workload: StatedRunTime, of_queue: StatedRunTime) -> RunTimeLimit | None:
    """Return the limit of a workload: the smaller maximum, the longer delay; None if it may run for ever."""
    maxima = [stated.maximum_s for stated in (workload, of_queue) if stated.maximum_s]
    if not maxima:
        return None
    return RunTimeLimit(
        maximum_s=min(maxima), delay_s=max(workload.delay_s or 0.0, of_queue.delay_s or 0.0)
    )
