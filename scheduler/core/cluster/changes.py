"""A log of what changed, and how far a reader has followed it.

What is derived from the state (arrays of free resources, places in an order, GPUs per node) is brought up
to date only where something changed. Whoever changes something appends its index to a `ChangeLog`; each
reader has a `Cursor` of its own. Logs only grow: what undoes a change appends the
index again.
"""

from __future__ import annotations

#: Indices of what changed, in the order of the changes; the same index may come many times. A plain list,
#: because appending to an instance of a subclass is slower, and a cycle appends thousands of times.
ChangeLog = list[int]


class Cursor:
    """A reader's position in a change log; it begins at the end.

    Code that runs at every placement compares `position` with the length of `log` itself, since a call of
    `is_behind` costs more than the comparison.

    Attributes
    ----------
    position : how many entries of the log have been read
    """

    __slots__ = ("log", "position")

    def __init__(self, log: ChangeLog) -> None:
        self.log = log
        self.position = len(log)

    def is_behind(self) -> bool:
        """Return whether the log has entries that were not read yet."""
        return self.position != len(self.log)

    def unread(self) -> list[int]:
        """Return the entries that were not read yet, and leave them unread."""
        return self.log[self.position :]

    def catch_up(self) -> None:
        """Count everything as read."""
        self.position = len(self.log)

    def read(self) -> list[int]:
        """Return the entries that were not read yet, and count them as read."""
        entries = self.log[self.position :]
        self.position = len(self.log)
        return entries
