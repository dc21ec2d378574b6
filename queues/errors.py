"""What can go wrong in the queues room."""

from __future__ import annotations

from collections.abc import Sequence

from queues.tree.shape import Finding


class QueuesError(Exception):
    """Base of this room's errors."""


class UnknownQueueError(QueuesError):
    """The queue is not in the cluster."""

    def __init__(self, name: str) -> None:
        super().__init__(f"queue '{name}' does not exist")
        self.name = name


class HierarchyError(QueuesError):
    """The edit would break a rule of the queue tree."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        super().__init__("; ".join(finding.message for finding in findings))
        self.findings = tuple(findings)


class StaleQueueError(QueuesError):
    """Somebody has edited the queue since the caller read it; versions are edit tags (`queues.editing.tags`)."""

    def __init__(self, name: str, *, given: str, current: str) -> None:
        super().__init__(
            f"queue '{name}' has changed: you edited version {given}, it is now {current}"
        )
        self.name = name
        self.given = given
        self.current = current


class FieldOwnedError(QueuesError):
    """Another field manager owns a field of the edit."""


class MissingRightError(QueuesError):
    """The caller may not do this; the message names the missing right."""


class BusyError(QueuesError):
    """Others are writing the same things; nothing was done, a later try may succeed."""
