"""The undo journal: everything a session overwrites, with the value that was there before.

Undoing by arithmetic would not restore floats exactly, so the journal keeps old values and puts them
back. An entry is `(container, key, old value)`. Lists, byte arrays, dicts and whole rows (the key is a
slice) are all containers in this sense, so the state and the ledgers of plugins are undone by the same
few lines.
"""

from __future__ import annotations

from typing import Any, Final

#: Old value of a key that was not there.
MISSING: Final = object()

#: Key of a whole row.
WHOLE: Final = slice(None)


class Journal:
    """What was overwritten since the last statement was kept; a checkpoint is a position in it.

    Code that runs at every placement appends to `entries` itself instead of calling `put`.
    """

    __slots__ = ("entries",)

    def __init__(self) -> None:
        self.entries: list[tuple[Any, Any, Any]] = []

    def put(self, container: Any, key: Any, value: Any) -> None:
        """Overwrite the value of a key that exists."""
        self.entries.append((container, key, container[key]))
        container[key] = value

    def insert(self, mapping: Any, key: Any, value: Any) -> None:
        """Set a key of a mapping, which may not have it yet."""
        self.entries.append((mapping, key, mapping.get(key, MISSING)))
        mapping[key] = value

    def remove(self, mapping: Any, key: Any) -> None:
        """Delete a key of a mapping."""
        self.entries.append((mapping, key, mapping.pop(key)))

    def rewind(self, position: int) -> None:
        """Restore everything that was overwritten since a position, the last change first."""
        entries = self.entries
        while len(entries) > position:
            container, key, old = entries.pop()
            if old is MISSING:
                del container[key]
            else:
                container[key] = old

    def forget(self) -> None:
        """Clear the journal, so that what was written can no longer be undone."""
        self.entries.clear()
