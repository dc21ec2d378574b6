"""Errors of writes to queues."""

from __future__ import annotations

from collections.abc import Sequence

from queues.tree.shape import Finding


class QueuesError(Exception):
    """Base of the errors of writes to queues."""


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


class ApprovalNeededError(QueuesError):
    """By the policies an admin other than the author must approve the change, as a change set."""


class StaleQueueError(QueuesError):
    """The queue was edited since the caller read it; its versions are edit tags (`queues.editing.tags`)."""

    def __init__(self, name: str, *, expected: str, current: str) -> None:
        super().__init__(
            f"queue '{name}' has changed: you edited version {expected}, it is now {current}"
        )
        self.name = name
        self.expected = expected
        self.current = current


class FieldOwnedError(QueuesError):
    """Another field manager owns a field of the edit."""


class MissingRightError(QueuesError):
    """The caller may not do this; the message names the missing right."""


class BusyError(QueuesError):
    """Concurrent writes prevented this one; nothing was changed, a retry may succeed."""
