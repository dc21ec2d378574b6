"""Beat's clock follows the shards on record: a new shard gets its ticks without a restart of beat."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from celery.beat import PersistentScheduler
from django.conf import settings

from kaiweb.settings.celery import TICK_S, beat_schedule
from kaiweb.supervisor.wanted import WantedFile

log = logging.getLogger(__name__)


class ShardClock(PersistentScheduler):
    """Beat's own scheduler, with one tick per second for each shard that has a scheduler."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._wanted = WantedFile(Path(settings.KAIWEB_HOME), log.error)
        super().__init__(*args, **kwargs)

    def tick(self, *args: Any, **kwargs: Any) -> float:
        """Take over changed shards, then do what is due; the clock of `default` brings us here each second."""
        wanted = self._wanted.changed()
        if wanted is not None:
            shards = sorted({*settings.KAIWEB_SHARDS, *wanted.shards})
            log.info("ticks for %s", ", ".join(shards))
            entries: dict[str, Any] = beat_schedule(shards, tick_s=TICK_S)
            self.merge_inplace(entries)
        pause_s: float = super().tick(*args, **kwargs)
        return pause_s
