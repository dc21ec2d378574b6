"""The objects that a process leaves out until they change, because it hung on them: they are set aside.

The watchdog writes `<home>/set-aside.json` when it ends a process that hung while it worked on an object. The
process reads its own entries at its next start. An object is left out only at the place in the code where the
process hung (`place`), and only while its uid and resourceVersion are the same: a changed or re-created object
is tried again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from kube.process.files import write_private
from kube.values.times import format_time

FILE = "set-aside.json"
#: The oldest entries beyond this number are dropped: a longer list means that the objects are not the cause.
MAX_ENTRIES = 100


@dataclass(frozen=True, slots=True)
class HeldObject:
    """An object that a thread works on: the place in the code, and the exact object.

    Attributes
    ----------
    version : its resourceVersion
    """

    place: str
    kind: str
    namespace: str
    name: str
    uid: str
    version: str

    def text(self) -> str:
        """Return kind and name, for logs."""
        key = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {key}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One entry of the file: which process leaves out which object, since when (RFC 3339) and why."""

    process: str
    held: HeldObject
    time: str
    reason: str


class LeftOut:
    """The objects that one process leaves out."""

    __slots__ = ("_keys",)

    def __init__(self, held_objects: Sequence[HeldObject] = ()) -> None:
        self._keys = frozenset(
            (held_object.place, held_object.uid, held_object.version)
            for held_object in held_objects
        )

    @classmethod
    def of(cls, home: Path, process: str) -> LeftOut:
        """Return the objects that the file lists for a process."""
        return cls([entry.held for entry in read_entries(home) if entry.process == process])

    def __bool__(self) -> bool:
        return bool(self._keys)

    def contains(self, place: str, uid: str, version: str) -> bool:
        """Return whether an object is left out at a place."""
        return (place, uid, version) in self._keys


def read_entries(home: Path) -> list[Entry]:
    """Return the entries, oldest first; none where the file is missing or unreadable.

    A damaged file must not keep a process from starting: the worst consequence is one more hang.
    """
    try:
        entries: list[dict[str, Any]] = json.loads((home / FILE).read_text())
        return [Entry(**{**entry, "held": HeldObject(**entry["held"])}) for entry in entries]
    except (OSError, ValueError, TypeError, KeyError):
        return []


def add_entry(home: Path, process: str, held: HeldObject, now: datetime, reason: str) -> None:
    """Add an object to the list, replacing the entry of an earlier version of it.

    Raises
    ------
    OSError : the file cannot be written
    """
    entry = Entry(
        process=process,
        held=held,
        time=format_time(now),
        reason=reason,
    )
    other_entries = [
        old_entry
        for old_entry in read_entries(home)
        if (old_entry.process, old_entry.held.place, old_entry.held.uid)
        != (process, held.place, held.uid)
    ]
    entries = [*other_entries, entry][-MAX_ENTRIES:]
    write_private(home / FILE, json.dumps([asdict(entry) for entry in entries], indent=1))
