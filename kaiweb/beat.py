"""Beat's clock follows the shards on record: a new shard gets its ticks without a restart of beat.

Ticks are counted by the monotonic clock. Celery's own schedules compare wall-clock times, so after a step
back of the clock nothing is due until it has caught up, and a schedule kept in a file carries that over a
restart. Nothing is kept here: a tick that beat missed is worthless.
"""

from __future__ import annotations

import logging
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from celery.beat import ScheduleEntry, Scheduler
from celery.schedules import schedule as every
from django.conf import settings

from kaiweb.settings.celery import TICK_S, beat_schedule
from kaiweb.supervisor.wanted import WantedFile
from kube.progress import WAIT_S, track

log = logging.getLogger(__name__)

_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)


def monotonic_now() -> datetime:
    """Return the monotonic clock in the form in which Celery computes; only differences mean anything."""
    return _EPOCH + timedelta(seconds=time.monotonic())


class MonotonicEntry(ScheduleEntry):
    """A task of the beat whose interval, given in seconds, is counted by the monotonic clock."""

    def __init__(self, **fields: Any) -> None:
        if isinstance(fields["schedule"], int | float):
            fields["schedule"] = every(fields["schedule"], nowfun=monotonic_now, app=fields["app"])
        super().__init__(**fields)


class ShardClock(Scheduler):
    """Celery's scheduler in memory, with one tick per second for each shard that has a scheduler."""

    Entry = MonotonicEntry

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._wanted = WantedFile(Path(settings.KAIWEB_HOME), log.error)
        super().__init__(*args, **kwargs)

    def tick(self, *args: Any, **kwargs: Any) -> float:
        """Take over changed shards, then do what is due; the clock of `default` brings us here each second."""
        track().beat("sending ticks", WAIT_S)
        wanted = self._wanted.changed()
        if wanted is not None:
            shards = sorted({*settings.KAIWEB_SHARDS, *wanted.shards})
            log.info("ticks for %s", ", ".join(shards))
            entries: dict[str, Any] = beat_schedule(shards, tick_s=TICK_S)
            self.merge_inplace(entries)
        pause_s: float = super().tick(*args, **kwargs)
        return pause_s
