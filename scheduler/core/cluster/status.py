"""The states of a task and the groups of states that rules speak of.

Statuses are small integers so that they fit byte arrays; the sets are tables indexed by status, because
`ACTIVE_USED[status]` costs less than membership in a set and reads the same.
"""

from __future__ import annotations

from enum import IntEnum


class TaskStatus(IntEnum):
    """Where a task stands; ALLOCATED and NOMINATED exist only inside a session."""

    PENDING = 0
    GATED = 1
    ALLOCATED = 2
    NOMINATED = 3
    BINDING = 4
    BOUND = 5
    RUNNING = 6
    RELEASING = 7
    STUCK_IN_RELEASING = 8
    SUCCEEDED = 9
    FAILED = 10
    UNKNOWN = 11


# The members again as module names, for code that runs thousands of times in a cycle: looking a member
# up on its class costs ten times a comparison (Python 3.11).
PENDING = TaskStatus.PENDING
GATED = TaskStatus.GATED
ALLOCATED = TaskStatus.ALLOCATED
NOMINATED = TaskStatus.NOMINATED
BINDING = TaskStatus.BINDING
BOUND = TaskStatus.BOUND
RUNNING = TaskStatus.RUNNING
RELEASING = TaskStatus.RELEASING


def _table(*members: TaskStatus) -> tuple[bool, ...]:
    return tuple(status in members for status in TaskStatus)


#: Holds a place in its gang and in its queue.
ACTIVE_ALLOCATED = _table(
    TaskStatus.ALLOCATED,
    TaskStatus.NOMINATED,
    TaskStatus.BINDING,
    TaskStatus.BOUND,
    TaskStatus.RUNNING,
)
#: Occupies a node.
ACTIVE_USED = _table(
    TaskStatus.ALLOCATED,
    TaskStatus.NOMINATED,
    TaskStatus.BINDING,
    TaskStatus.BOUND,
    TaskStatus.RUNNING,
    TaskStatus.RELEASING,
    TaskStatus.STUCK_IN_RELEASING,
)
#: Charged to its queue when a snapshot is read (a nomination never survives a session).
QUEUE_ALLOCATED = _table(
    TaskStatus.ALLOCATED, TaskStatus.BINDING, TaskStatus.BOUND, TaskStatus.RUNNING
)
