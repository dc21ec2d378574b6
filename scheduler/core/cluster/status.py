"""The statuses of a task, and the sets of statuses that rules use.

Statuses are small integers so that they fit into byte arrays. A set is a tuple of booleans indexed by
status, because `ACTIVE_USED[status]` is faster than a test of membership.
"""

from __future__ import annotations

from enum import IntEnum


class TaskStatus(IntEnum):
    """The state of a task. A session begins without ALLOCATED tasks and ends without them."""

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
# up on its class takes ten times as long as comparing it (Python 3.11).
PENDING = TaskStatus.PENDING
GATED = TaskStatus.GATED
ALLOCATED = TaskStatus.ALLOCATED
NOMINATED = TaskStatus.NOMINATED
BINDING = TaskStatus.BINDING
BOUND = TaskStatus.BOUND
RUNNING = TaskStatus.RUNNING
RELEASING = TaskStatus.RELEASING
SUCCEEDED = TaskStatus.SUCCEEDED


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
#: Charged to its queue when a session opens; nominations of earlier cycles are not.
QUEUE_ALLOCATED = _table(
    TaskStatus.ALLOCATED, TaskStatus.BINDING, TaskStatus.BOUND, TaskStatus.RUNNING
)
