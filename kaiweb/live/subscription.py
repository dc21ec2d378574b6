"""The state of one subscription: what was sent, what is pending, and the chain of deltas.

Every delta names its predecessor (`prev`), so that a client notices a gap by itself. Between two frames changes
are collected by key, and only the last state of each key is sent. A client that does not acknowledge in time
gets a reset, a snapshot and half the rate, so that no queue grows without bound.

Pure: no sockets, no database; the time is passed in as `now` (seconds).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from kaiweb.live.topics import SESSIONS, Item, Topic

INTERVAL_S = 0.25
HIDDEN_INTERVAL_S = 1.0
SLOWEST_INTERVAL_S = 8.0
MAX_UNACKED = 64
MAX_PENDING_KEYS = 5_000
PART_ITEMS = 500

Frame = dict[str, Any]


class Reset(Enum):
    """Why a client must drop its items and gets a new snapshot."""

    GAP = "gap"
    EPOCH = "epoch"
    SLOW = "slow"
    RIGHTS = "rights"


@dataclass(frozen=True, slots=True)
class Batch:
    """What the hub has read from the log: new states by family and key; None means deleted."""

    position: int
    as_of: Mapping[str, Any]
    #: Family of topics -> key -> the new item, None if it is gone.
    items: Mapping[str, Mapping[str, Item | None]]


@dataclass(slots=True)
class Subscription:
    """State of one subscription."""

    id: str
    topic: Topic
    seq: int = -1
    is_loading: bool = True
    interval_s: float = INTERVAL_S
    admits: Callable[[Item], bool] = field(default=lambda _item: True)
    # Which keys the client holds; None when unknown (after a resume).
    visible: set[str] | None = None
    #: Key -> the item to send, None if it is gone.
    _pending: dict[str, Item | None] = field(default_factory=dict)
    _pending_position: int = -1
    _as_of: Mapping[str, Any] = field(default_factory=dict)
    _sent_at: float = float("-inf")
    _unacked: list[int] = field(default_factory=list)
    _is_expired: bool = False

    def offer(self, batch: Batch) -> None:
        """Add the states that concern this subscription; the last state of a key replaces earlier ones."""
        if batch.position < self.seq:
            return  # the snapshot is newer
        states = batch.items.get(self.topic.family.name, {})
        for key, item in states.items():
            if not self.topic.key or key == self.topic.key:
                self._pending[key] = item
                self._pending_position = batch.position
                self._as_of = batch.as_of

    def due_at(self, *, hidden: bool) -> float | None:
        """Return when the next frame may be sent; None if nothing is pending."""
        if self.is_loading:
            return None
        if self._is_expired:
            return float("-inf")
        if not self._pending:
            return None
        return self._sent_at + max(self.interval_s, HIDDEN_INTERVAL_S if hidden else 0.0)

    def expire(self) -> None:
        """Note that the log has begun anew: no delta leads from the items of the client to the present ones."""
        self._is_expired = True

    def is_overrun(self) -> bool:
        """Return whether the client is too far behind for deltas."""
        return len(self._unacked) >= MAX_UNACKED or len(self._pending) > MAX_PENDING_KEYS

    def due_reset(self) -> Reset | None:
        """Return why the client needs a snapshot instead of a delta; a slow client gets half the rate from now on."""
        if self._is_expired:
            return Reset.EPOCH
        if self.is_overrun():
            self.slow_down()
            return Reset.SLOW
        return None

    def take(self, now: float) -> Frame | None:
        """Return the delta of everything pending; None if nothing of it is visible to the client."""
        updates: list[Frame] = []
        deleted_keys: list[str] = []
        for key, item in self._pending.items():
            if item is not None and self.admits(item):
                updates.append({"k": key, "set": self.topic.shown(item), "unset": []})
                if self.visible is not None:
                    self.visible.add(key)
            elif self._was_visible(key):
                deleted_keys.append(key)
        previous, position = self.seq, self._pending_position
        self._pending.clear()
        if not updates and not deleted_keys:
            return None
        self.seq = position
        self._sent_at = now
        self._unacked.append(position)
        return {
            "t": "delta",
            "id": self.id,
            "seq": str(position),
            "prev": str(previous),
            "asOf": self._as_of,
            "up": updates,
            "del": deleted_keys,
        }

    def _was_visible(self, key: str) -> bool:
        if self.topic.family.name == SESSIONS:
            return False
        if self.visible is None:
            return True
        if key not in self.visible:
            return False
        self.visible.discard(key)
        return True

    def acknowledge(self, seq: int) -> None:
        """Note that the client has applied everything up to `seq`."""
        self._unacked = [sent for sent in self._unacked if sent > seq]

    def slow_down(self) -> None:
        """Halve the rate, after a reset of a slow client."""
        self.interval_s = min(SLOWEST_INTERVAL_S, self.interval_s * 2)

    def restart(self) -> None:
        """Drop the chain; a snapshot or a resume begins a new one."""
        self.is_loading = True
        self._is_expired = False
        self._unacked.clear()

    def begin(
        self, position: int, visible: set[str] | None, admits: Callable[[Item], bool], now: float
    ) -> None:
        """Start the chain at a position; what was offered since then stays pending."""
        self.seq = position
        self.visible = visible
        self.admits = admits
        self.is_loading = False
        self._sent_at = now
        if self._pending_position < position:
            self._pending.clear()

    def catch_up(self, batch: Batch) -> None:
        """Put what a resuming client has missed before what is pending already."""
        newer, position = self._pending, self._pending_position
        self._pending = {}
        self.offer(batch)
        self._pending.update(newer)
        self._pending_position = max(self._pending_position, position)
