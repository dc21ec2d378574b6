"""The scheduler of Celery beat: it follows the wanted file, so that a new shard gets ticks without a restart.

Ticks are counted by the monotonic clock. Celery's own schedules compare wall-clock times: after the clock was
set back nothing is due until it has caught up, and a schedule stored in a file carries that over a restart.
Nothing is stored here, because a missed tick need not be made up for.
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
from kaiweb.supervisor.desired import DesiredFile
from kube.process.progress import WAIT_S, track

log = logging.getLogger(__name__)

_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)


def monotonic_now() -> datetime:
    """Return the monotonic clock as the datetime that Celery computes with; only differences have a meaning."""
    return _EPOCH + timedelta(seconds=time.monotonic())


class MonotonicEntry(ScheduleEntry):
    """A periodic task whose interval in seconds is counted by the monotonic clock."""

    def __init__(self, **fields: Any) -> None:
        if isinstance(fields["schedule"], int | float):
            fields["schedule"] = every(fields["schedule"], nowfun=monotonic_now, app=fields["app"])
        super().__init__(**fields)


class ShardClock(Scheduler):
    """Celery's scheduler in memory, with one tick a second for each shard that has a scheduler."""

    Entry = MonotonicEntry

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._desired_file = DesiredFile(Path(settings.KAIWEB_HOME), log.error)
        super().__init__(*args, **kwargs)

    def tick(self, *args: Any, **kwargs: Any) -> float:
        """Update the shards, then send what is due; the tick of shard `default` causes a call each second."""
        track().beat("sending ticks", WAIT_S)
        desired = self._desired_file.changed()
        if desired is not None:
            shards = sorted({*settings.KAIWEB_SHARDS, *desired.shards})
            log.info("sending ticks to shards: %s", ", ".join(shards))
            entries: dict[str, Any] = beat_schedule(shards, tick_s=TICK_S)
            self.merge_inplace(entries)
        pause_s: float = super().tick(*args, **kwargs)
        return pause_s
