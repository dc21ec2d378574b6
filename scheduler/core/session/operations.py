"""The steps of a statement."""

from __future__ import annotations

from enum import Enum

from scheduler.core.arrays import Amounts
from scheduler.core.cluster.inputs import NumaShare
from scheduler.core.cluster.status import PENDING
from scheduler.core.decisions import EvictReason


class OperationKind(Enum):
    """What an operation does to its task."""

    EVICT = "evict"
    ALLOCATE = "allocate"
    NOMINATE = "nominate"
    UNEVICT = "un-evict"
    UNMOVE = "un-move"
    CONVERT = "convert"


#: What a task held on its node when it was evicted: its GPU groups, what its queue was charged, what it took of
#: NUMA zones, and the node that it had left before. A plain tuple, because every eviction of a trial makes one.
Held = tuple[tuple[str, ...], Amounts, tuple[NumaShare, ...] | None, int]


class Operation:
    """One step of a statement.

    Attributes
    ----------
    kind, task, node : what is done to which task; the node it is placed on or evicted from
    reason : of an eviction
    undoes : the earlier operation that this one takes back, if any
    was, held : the status of the task before an eviction, and what it held on the node
    is_undone : whether a later operation takes this one back
    """

    __slots__ = ("held", "is_undone", "kind", "node", "reason", "task", "undoes", "was")

    def __init__(
        self,
        kind: OperationKind,
        task: int,
        node: int,
        reason: EvictReason | None = None,
        undoes: Operation | None = None,
        was: int = PENDING,
        held: Held | None = None,
    ) -> None:
        self.was = was
        self.held = held
        self.kind = kind
        self.task = task
        self.node = node
        self.reason = reason
        self.undoes = undoes
        self.is_undone = False
