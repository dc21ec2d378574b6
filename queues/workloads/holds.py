"""Holds and requeues, which people and maximum run times request by annotations of a pod group.

`kaiweb.dev/hold` holds back the pods that wait: no new pod of the group gets a place, while running ones go on. Its
value is the reason. It ends when the annotation is removed, or at the time in `kaiweb.dev/hold-until`. Without
`kaiweb.dev/held-by` a person holds.

`kaiweb.dev/requeue-before` evicts the pods that were created before this time (whole seconds); what their owner
creates anew waits in the queue like any other. The time makes repeating harmless: younger pods are never touched.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kube.keys import HELD_BY, HOLD, HOLD_UNTIL, REQUEUE_BEFORE
from kube.values.times import format_time, time_or_none

MAX_REASON_LENGTH = 1024
MAX_BY_LENGTH = 32
#: Holds a workload that had to end because of its maximum run time.
BY_MAX_RUN_TIME = "max-run-time"


@dataclass(frozen=True, slots=True)
class Hold:
    """A hold as the annotations state it.

    Attributes
    ----------
    until : without it the hold lasts until somebody releases the workload
    by : what holds, e.g. `max-run-time`; empty for a person
    """

    reason: str
    until: datetime | None = None
    by: str = ""

    def applies(self, now: datetime) -> bool:
        """Return whether the hold has not ended yet."""
        return self.until is None or now < self.until

    @property
    def text(self) -> str:
        """Return why a workload waits."""
        until = f" until {format_time(self.until)}" if self.until else ""
        reason = f": {self.reason}" if self.reason else ""
        return f"Held{'' if self.by else ' by a person'}{until}{reason}"


def hold_of(annotations: Mapping[str, str]) -> Hold | None:
    """Return the hold in the annotations of a pod group; an end that cannot be read is none."""
    reason = annotations.get(HOLD)
    if reason is None:
        return None
    return Hold(
        reason[:MAX_REASON_LENGTH],
        time_or_none(annotations.get(HOLD_UNTIL)),
        (annotations.get(HELD_BY) or "")[:MAX_BY_LENGTH],
    )


def requeue_before(annotations: Mapping[str, str]) -> float | None:
    """Return the Unix time before which a pod must have been created to be evicted; None without a request."""
    moment = time_or_none(annotations.get(REQUEUE_BEFORE))
    return None if moment is None else moment.timestamp()


def annotations_of_hold(hold: Hold | None) -> dict[str, Any]:
    """Return the merge patch of the annotations that sets a hold, or with None removes it."""
    if hold is None:
        return {HOLD: None, HOLD_UNTIL: None, HELD_BY: None}
    until = None if hold.until is None else format_time(hold.until)
    return {HOLD: hold.reason, HOLD_UNTIL: until, HELD_BY: hold.by or None}


def annotations_of_requeue(now: datetime) -> dict[str, Any]:
    """Return the merge patch of the annotations that evicts the pods there are."""
    return {REQUEUE_BEFORE: format_time(now.replace(microsecond=0))}
