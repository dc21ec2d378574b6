"""Past usage for each cycle, without a cycle waiting for it.

A thread queries Prometheus; our own history takes a sample of what the cycle itself saw. A cycle uses the last
good answer, however old (a stale one is reported).
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scheduler.core.session.session import Session
from scheduler.load.queues import UsageByQueue
from scheduler.load.usage import PrometheusUsage, UsageHistory, UsageReader, UsageSample
from scheduler.settings.usage import Source, UsageConfig, read_usage_config

log = logging.getLogger(__name__)


@dataclass(slots=True)
class UsageFeed:
    """The past usage of one shard's queues.

    Parameters
    ----------
    history : our own samples; None when Prometheus keeps them
    """

    reader: UsageReader
    history: UsageHistory | None = None
    _fetching: threading.Lock = field(default_factory=threading.Lock)
    _warned: str = ""

    def usage(self, now: float) -> UsageByQueue:
        """Return the last known usage, and start fetching a newer one."""
        if self.history is not None:
            self.reader.refresh(now)
        elif self._fetching.acquire(blocking=False):
            threading.Thread(target=self._fetch, args=(now,), name="usage", daemon=True).start()
        self._warn(now)
        return self.reader.usage

    def record(self, session: Session, now: float) -> None:
        """Add the allocation of a finished cycle to our own history."""
        if self.history is None:
            return
        ledger = session.policy.ledger
        allocated = {
            name: (float(row[0]), float(row[1]), float(row[2]))
            for name, row in zip(ledger.names, ledger.allocated, strict=True)
        }
        cpu, memory, gpu = ledger.totals[0], ledger.totals[1], ledger.totals[2]
        try:
            self.history.record(
                UsageSample(time_s=now, allocated=allocated, capacity=(cpu, memory, gpu))
            )
        except (ValueError, OSError) as error:
            log.warning("usage history: %s", error)

    def _fetch(self, now: float) -> None:
        try:
            self.reader.refresh(now)
        finally:
            self._fetching.release()

    def _warn(self, now: float) -> None:
        """Log a problem once, not once per cycle."""
        text = self.reader.warning(now)
        if text.split(":")[0] != self._warned.split(":")[0] and text:
            log.warning("%s", text)
        self._warned = text


def make_feed(body: Mapping[str, Any] | None, folder: Path | None, shard: str) -> UsageFeed | None:
    """Return the feed a shard's `usageDBConfig` asks for; None without one.

    Parameters
    ----------
    folder : where our own history is kept; None keeps it in memory only

    Raises
    ------
    scheduler.settings.usage.UsageConfigError : a value that cannot be used
    """
    if not body:
        return None
    config: UsageConfig = read_usage_config(body, os.environ)
    if config.source is Source.PROMETHEUS:
        source = PrometheusUsage(config.connection, config.params)
        return UsageFeed(UsageReader(source, config.params))
    path = folder / f"usage-{shard}.jsonl" if folder is not None else None
    history = UsageHistory(config.params, path)
    return UsageFeed(UsageReader(history, config.params), history)
