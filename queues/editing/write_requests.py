"""The request to write a queue, and its result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from queues.access.rights import Rights
from queues.editing.edits import Difference
from queues.tree.shape import Finding

Body = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRequest:
    """Who requests a write to a queue, and how it is to be done.

    Attributes
    ----------
    expected_tag : the edit tag the caller has read (`queues.editing.tags`); empty if the call needs none
    is_planned : a step of a change set, which is judged by the policies as a whole
    """

    rights: Rights
    now: datetime
    expected_tag: str = ""
    dry_run: bool = False
    is_planned: bool = False
    reason: str = ""
    request_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteResult:
    """The result of a write: the object as it is now, or in a dry run as it would be.

    Attributes
    ----------
    is_change : the write changes something (or would)
    is_written : the cluster has the change
    """

    body: Body
    warnings: Sequence[Finding] = ()
    diff: Sequence[Difference] = ()
    is_change: bool = False
    is_written: bool = False


class StaleRowError(Exception):
    """A row of the database was edited since the caller read it.

    Attributes
    ----------
    current : the row as it is now
    """

    def __init__(self, text: str, current: Any) -> None:
        super().__init__(text)
        self.current = current


def refuse_stale(request: WriteRequest, row: Any, tag: str, text: str) -> None:
    """Raise StaleRowError with this text unless the edit tag of the row is still the one that the caller has read."""
    if request.expected_tag != tag:
        raise StaleRowError(text, row)
