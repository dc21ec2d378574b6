"""Read the content of frames from the database: snapshots, missed changes, new states.

Synchronous; the consumer and the hub call these in a worker thread.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kaiweb.items.amounts import timestamp
from kaiweb.items.cluster import KEY as CLUSTER_KEY
from kaiweb.items.cluster import mirror_time
from kaiweb.live.subscription import (
    MAX_PENDING_KEYS,
    PART_ITEMS,
    Batch,
    Frame,
    Reset,
    Subscription,
)
from kaiweb.live.topics import CLUSTER, FAMILIES, Item, Topic
from queues import live
from queues.live import LogEntry
from scheduler.models import SessionRecord

READ_CHANGES = 5_000


@dataclass(slots=True)
class TopicSnapshot:
    """All items of a topic, and the position after which deltas continue.

    A large topic is read part by part while it is sent, so that a page shows its first rows before the last ones
    have been read. What changes meanwhile is in the deltas that follow.
    """

    topic: Topic
    epoch: str
    position: int
    as_of: Mapping[str, Any]
    admits: Callable[[Item], bool]
    #: The items already read, or the keys of those to read.
    items: list[Item] | None
    keys: Sequence[str] = ()

    @property
    def parts(self) -> int:
        """Return the number of parts; an empty topic has one."""
        count = len(self.keys) if self.items is None else len(self.items)
        return max(1, -(-count // PART_ITEMS))

    def part(self, number: int) -> list[Item]:
        """Read one part, counted from 1."""
        item_range = slice((number - 1) * PART_ITEMS, number * PART_ITEMS)
        if self.items is not None:
            return self.items[item_range]
        keys = self.keys[item_range]
        place = {key: index for index, key in enumerate(keys)}
        return sorted(self.topic.read(keys, self.admits), key=lambda item: place[item["k"]])

    def frame(self, subscription: Subscription, number: int, items: list[Item]) -> Frame:
        """Return the frame of one part for a subscription."""
        return {
            "t": "snap",
            "id": subscription.id,
            "epoch": self.epoch,
            "seq": str(self.position),
            "part": number,
            "of": self.parts,
            "asOf": self.as_of,
            "items": items,
        }


def as_of(position: int) -> dict[str, Any]:
    """Return the time, the session and the position that a frame describes."""
    session = SessionRecord.objects.order_by("-id").values_list("id", flat=True).first()
    return {"time": timestamp(mirror_time()), "session": session, "rv": str(position)}


def open_snapshot(topic: Topic) -> TopicSnapshot:
    """Begin to read a topic. The position is read before the items, so that no change is missed.

    Clients that connect together (all browsers after a restart) share one reading of a small topic, as long as
    the log has no newer change.
    """
    epoch, position = live.epoch(), live.position()
    snapshot = TopicSnapshot(topic, epoch, position, as_of(position), topic.filter(), None)
    # A client that sees only some queues must not learn from the number of parts how much there is in all.
    if topic.family.keys is not None and not topic.key and not topic.visibility.is_partial:
        snapshot.keys = topic.family.keys()
        if len(snapshot.keys) > PART_ITEMS:
            return snapshot
    is_shared = not topic.key and not topic.is_filtered and topic.family.name != CLUSTER
    cached = _full.get(topic.family.name) if is_shared else None
    is_fresh = cached is not None and cached[:2] == (epoch, position)
    snapshot.items = cached[2] if cached is not None and is_fresh else topic.snapshot()
    if is_shared:
        _full[topic.family.name] = (epoch, position, snapshot.items)
    return snapshot


# family -> (epoch, position, items) of its last full reading
_full: dict[str, tuple[str, int, list[Item]]] = {}


def read_missed(topic: Topic, epoch: str, seq: int) -> tuple[Batch, Callable[[Item], bool]] | Reset:
    """Return the changes since `seq` and the filter of the topic, or why the client needs a snapshot."""
    if epoch != live.epoch():
        return Reset.EPOCH
    if topic.visibility.is_partial:
        # Which keys the client held is not known, and the names of others must not be told.
        return Reset.RIGHTS
    if not live.reaches_back_to(seq):
        return Reset.GAP
    changes: list[LogEntry] = []
    position = seq
    while chunk := live.changes_after(position, limit=READ_CHANGES):
        position = chunk[-1].position
        changes += [change for change in chunk if _concerns(change, topic)]
        if len({change.key for change in changes}) > MAX_PENDING_KEYS:
            return Reset.GAP  # a snapshot is cheaper
    families = {topic.family.name: {topic.key} if topic.key else None}
    return read_states(changes, position, families), topic.filter()


def _concerns(change: LogEntry, topic: Topic) -> bool:
    kind = topic.family.kind
    return (not kind or change.kind == kind) and (not topic.key or change.key == topic.key)


def read_states(
    changes: Iterable[LogEntry], position: int, families: Mapping[str, Collection[str] | None]
) -> Batch:
    """Read the present state of everything that has changed.

    Parameters
    ----------
    families : the families to read, each with its keys (None for all keys)
    """
    keys: dict[str, dict[str, None]] = defaultdict(dict)
    for change in changes:
        keys[change.kind][change.key] = None
    items: dict[str, dict[str, Item | None]] = {}
    for name, only in families.items():
        family = FAMILIES[name]
        if name == CLUSTER:
            if keys:
                items[name] = {CLUSTER_KEY: family.read(None)[0]}
            continue
        changed_keys = [key for key in keys[family.kind] if only is None or key in only]
        if changed_keys:
            items[name] = _states(name, changed_keys)
    return Batch(position, as_of(position), items)


def _states(name: str, keys: list[str]) -> dict[str, Item | None]:
    family = FAMILIES[name]
    states: dict[str, Item | None] = dict.fromkeys(keys)
    for item in family.read(keys):
        states[family.key_of(item)] = item
    return states
