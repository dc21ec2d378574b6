"""What a caller asks of a write to a queue, and what became of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from queues.edits import Difference
from queues.rights import Rights
from queues.shape import Finding

Body = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Who asks for a write, and how it is to be done.

    Attributes
    ----------
    expected_tag : the edit tag the caller has read (`queues.tags`); empty if the call needs none
    """

    rights: Rights
    now: datetime
    expected_tag: str = ""
    dry_run: bool = False
    reason: str = ""
    request_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a write: the object as it is (or would be) now.

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
