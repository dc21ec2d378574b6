"""The live log: an ordered log of changed rows that feeds the live dashboard.

Code that writes rows calls `record` in the same transaction. After the commit the channel layer wakes the web
processes, which read the log from their last position. They also read it once a second, so a lost wake-up
only delays, and repeated wake-ups cost nothing.

Positions grow but are opaque to clients. The epoch changes when the log is emptied: with another epoch, or a
position older than the log, a client needs a new snapshot.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.db import connection, transaction
from django.db.models import Max, Min
from django.utils import timezone
from redis.exceptions import RedisError

from queues.models import LiveChange, LiveEpoch

log = logging.getLogger(__name__)

#: The mirror reads "standing" and records "workload" for it; its workers read what others touched
#: (`queues.mirror.handover`). The others go to clients unchanged.
Kind = Literal[
    "queue", "workload", "node", "session", "standing",
    "touched-group", "touched-pod", "touched-node", "touched-queue", "touched-class",
]  # fmt: skip
GROUP = "live"
MAX_STORED_CHANGES = 50_000
RETENTION = timedelta(minutes=10)
WAKE_PAUSE_S = 0.05
AWAY_PAUSE_S = 1.0
# Arbitrary; it only has to differ from other advisory locks in the same PostgreSQL database.
LOG_LOCK = 0x6B61_69


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One entry of the log."""

    position: int
    kind: str
    key: str


def record(kind: Kind, keys: Iterable[str]) -> None:
    """Add entries for changed rows; call it inside the transaction that changes them.

    Raises
    ------
    django.db.transaction.TransactionManagementError : outside of a transaction
    """
    record_all({kind: keys})


def record_all(changes: Mapping[Kind, Iterable[str]]) -> None:
    """Add entries for changed rows of several kinds, as `record` does."""
    now = timezone.now()
    rows = [
        LiveChange(kind=kind, key=key, at=now)
        for kind, keys in changes.items()
        for key in sorted(set(keys))
    ]
    if not rows:
        return
    if not connection.in_atomic_block:
        raise transaction.TransactionManagementError(
            f"live.record('{rows[0].kind}') needs the transaction that changes the rows"
        )
    order_commits()
    LiveChange.objects.bulk_create(rows, batch_size=500)
    transaction.on_commit(wake)


def order_commits() -> None:
    """Make ids become visible in order: SQLite has a single writer, PostgreSQL needs a lock.

    Call it last, after all rows of the transaction are written: whoever holds the lock waits for nothing else.
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOG_LOCK])


class _Waker:
    """Sends wake-ups at a limited rate; logs once when the broker is unreachable and once when it is back."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0.0
        self._is_away = False

    def wake(self, now: float) -> None:
        with self._lock:
            pause_s = AWAY_PAUSE_S if self._is_away else WAKE_PAUSE_S
            if now - self._last < pause_s:
                return  # readers read again after each read that returned entries
            self._last = now
        layer = get_channel_layer()
        if layer is None:
            return
        try:
            async_to_sync(layer.group_send)(GROUP, {"type": "live.wake"})
        except (OSError, RedisError) as error:
            self._note(is_away=True, text=f"no live wake-ups: {error}")
        else:
            self._note(is_away=False, text="live wake-ups work again")

    def _note(self, *, is_away: bool, text: str) -> None:
        if is_away != self._is_away:
            log.warning(text)
        self._is_away = is_away


_waker = _Waker()


def wake() -> None:
    """Notify the web processes of new entries. Never fails, because they also read the log periodically."""
    _waker.wake(time.monotonic())


def epoch() -> str:
    """Return the epoch of the log; the first call creates it."""
    row, _created = LiveEpoch.objects.get_or_create(
        only=True, defaults={"value": uuid.uuid4().hex[:12]}
    )
    return row.value


def start_epoch() -> str:
    """Delete all entries and begin a new epoch, so that every client requests a snapshot."""
    with transaction.atomic():
        LiveChange.objects.all().delete()
        row, _created = LiveEpoch.objects.update_or_create(
            only=True, defaults={"value": uuid.uuid4().hex[:12]}
        )
    wake()
    return row.value


def position() -> int:
    """Return the position of the newest entry, 0 if there is none."""
    newest: int | None = LiveChange.objects.aggregate(newest=Max("id"))["newest"]
    return newest or 0


def reaches_back_to(seq: int) -> bool:
    """Return whether the log still holds every change after `seq`."""
    ends = LiveChange.objects.aggregate(oldest=Min("id"), newest=Max("id"))
    if ends["oldest"] is None:
        return seq == 0
    return bool(ends["oldest"] - 1 <= seq <= ends["newest"])


def changes_after(seq: int, *, limit: int) -> list[LogEntry]:
    """Return up to `limit` changes after `seq`, oldest first."""
    rows = LiveChange.objects.filter(id__gt=seq).order_by("id")[:limit]
    return [LogEntry(row.pk, row.kind, row.key) for row in rows]


def trim(now: datetime) -> int:
    """Delete entries older than ten minutes that are not among the newest 50,000; return how many."""
    floor = position() - MAX_STORED_CHANGES
    count, _by_model = LiveChange.objects.filter(id__lte=floor, at__lt=now - RETENTION).delete()
    return count
