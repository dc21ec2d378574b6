"""Objects that a process once hung on, and leaves out until they change.

The watchdog writes `<home>/set-aside.json` when it ends a process that hung with an object in hand; the
process reads its part at its next start. An object is left out only where it did the harm (`place`), and only
as long as uid and resourceVersion are the same: a changed or re-created object gets a new try.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

FILE = "set-aside.json"
#: The oldest entries go first: a list of this length says that something else is wrong.
MOST_ENTRIES = 100


@dataclass(frozen=True, slots=True)
class Held:
    """An object in hand: where it is worked on and exactly which one it is."""

    place: str
    kind: str
    namespace: str
    name: str
    uid: str
    version: str

    def text(self) -> str:
        """Return kind and name for people."""
        key = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {key}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An object set aside, by which process, when (RFC 3339) and why."""

    process: str
    held: Held
    time: str
    reason: str


class LeftOut:
    """What one process leaves out."""

    __slots__ = ("_keys",)

    def __init__(self, held: Sequence[Held] = ()) -> None:
        self._keys = frozenset((item.place, item.uid, item.version) for item in held)

    @classmethod
    def of(cls, home: Path, process: str) -> LeftOut:
        """Return what the file says of a process."""
        return cls([entry.held for entry in read_entries(home) if entry.process == process])

    def __bool__(self) -> bool:
        return bool(self._keys)

    def holds(self, place: str, uid: str, version: str) -> bool:
        """Return whether an object is left out at a place."""
        return (place, uid, version) in self._keys


def read_entries(home: Path) -> list[Entry]:
    """Return the entries, oldest first; none where the file is missing or unreadable.

    A damaged file must not keep a process from starting: the worst that follows is one more hang.
    """
    try:
        entries: list[dict[str, Any]] = json.loads((home / FILE).read_text())
        return [Entry(**{**entry, "held": Held(**entry["held"])}) for entry in entries]
    except (OSError, ValueError, TypeError, KeyError):
        return []


def add_entry(home: Path, process: str, held: Held, now: datetime, reason: str) -> None:
    """Put an object on the list; what was known of an earlier version of it goes."""
    entry = Entry(
        process=process,
        held=held,
        time=now.isoformat(timespec="seconds").replace("+00:00", "Z"),
        reason=reason,
    )
    kept = [
        known
        for known in read_entries(home)
        if (known.process, known.held.place, known.held.uid) != (process, held.place, held.uid)
    ]
    listed = [*kept, entry][-MOST_ENTRIES:]
    scratch = home / f"{FILE}.tmp"
    scratch.touch(mode=0o600)
    scratch.write_text(json.dumps([asdict(item) for item in listed], indent=1))
    scratch.replace(home / FILE)
