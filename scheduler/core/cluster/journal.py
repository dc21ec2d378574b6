"""The undo journal: every cell a session overwrites, with the value it held.

Undo by arithmetic would not restore floats exactly, so the journal keeps what was there and puts it
back. One cell is `(container, key, old value)`; lists, byte arrays, memory views, dicts and whole rows
(key: a slice) are all just containers, so every part of the state, and every plugin with a ledger of
its own, undoes through the same five lines.
"""

from __future__ import annotations

from typing import Any, Final

#: Old value of a key that was not there.
MISSING: Final = object()

#: Key of a whole row.
WHOLE: Final = slice(None)


class Journal:
    """RowAmounts overwritten since the last statement was kept. Positions in it are checkpoints."""

    __slots__ = ("entries",)

    def __init__(self) -> None:
        self.entries: list[tuple[Any, Any, Any]] = []

    def put(self, container: Any, key: Any, value: Any) -> None:
        """Write one cell that exists."""
        self.entries.append((container, key, container[key]))
        container[key] = value

    def insert(self, mapping: Any, key: Any, value: Any) -> None:
        """Write one key of a mapping that may not have it yet."""
        self.entries.append((mapping, key, mapping.get(key, MISSING)))
        mapping[key] = value

    def remove(self, mapping: Any, key: Any) -> None:
        """Delete one key of a mapping."""
        self.entries.append((mapping, key, mapping.pop(key)))

    def rewind(self, position: int) -> None:
        """Put back everything written since `position`, last first."""
        entries = self.entries
        while len(entries) > position:
            container, key, old = entries.pop()
            if old is MISSING:
                del container[key]
            else:
                container[key] = old

    def forget(self) -> None:
        """Drop the story: what was written stays."""
        self.entries.clear()
