"""Whether one node has room for a task of a class: none, room being freed, or free room.

The scalar twin of the array test in `candidates.py`; asked for touched nodes and at the final choice.
"""

from __future__ import annotations

from scheduler.core.cluster.axis import GPU_ROW
from scheduler.core.cluster.classes import Cells, TaskClass
from scheduler.core.cluster.gpus import fitting_groups
from scheduler.core.cluster.nodes import Nodes

NONE, FREEING, FREE = 0, 1, 2


def room_on(nodes: Nodes, klass: TaskClass, cells: Cells, node: int) -> int:
    """Return how much room a node has for a task that needs `cells` (and devices, if it shares)."""
    idle, releasing = nodes.idle_rows, nodes.releasing_rows
    answer = FREE
    for row, amount in cells:
        free = idle[row][node]
        if free < amount:
            if free + releasing[row][node] < amount:
                return NONE
            answer = FREEING
        elif free + releasing[row][node] < amount:
            return NONE
    return min(answer, _device_room(nodes, klass, node)) if klass.is_shared else answer


def _device_room(nodes: Nodes, klass: TaskClass, node: int) -> int:
    """Return the room on devices: joinable groups and whole devices together."""
    memory = klass.memory_on(nodes.gpu_memory[node])
    if memory > nodes.gpu_memory[node]:
        return NONE
    groups = len(fitting_groups(nodes, node, memory))
    free = nodes.idle_rows[GPU_ROW][node]
    if _whole(free + nodes.releasing_rows[GPU_ROW][node]) + groups < klass.devices:
        return NONE
    return FREE if _whole(free) + groups >= klass.devices else FREEING


def _whole(amount: float) -> int:
    return int(amount // 1)
