"""Whether one node has room for a task of a class: none, room being freed, or free room.

The scalar twin of the array test in `candidates.py`; used for touched nodes and at the final choice.
"""

from __future__ import annotations

from scheduler.core.cluster.axis import GPU_ROW
from scheduler.core.cluster.classes import RowAmounts, TaskClass
from scheduler.core.cluster.gpus import fitting_shared_gpus
from scheduler.core.cluster.nodes import Nodes

NONE, FREEING, FREE = 0, 1, 2


def room_on(nodes: Nodes, task_class: TaskClass, needs: RowAmounts, node: int) -> int:
    """Return how much room a node has for a task that needs `needs` (and devices, if it shares)."""
    idle, releasing = nodes.idle_rows, nodes.releasing_rows
    answer = FREE
    for row, amount in needs:
        free = idle[row][node]
        if free + releasing[row][node] < amount:
            return NONE
        if free < amount:
            answer = FREEING
    return min(answer, _device_room(nodes, task_class, node)) if task_class.is_shared else answer


def _device_room(nodes: Nodes, task_class: TaskClass, node: int) -> int:
    """Return the room on devices: joinable groups and whole devices together."""
    memory = task_class.memory_on(nodes.gpu_memory[node])
    if memory > nodes.gpu_memory[node]:
        return NONE
    groups = len(fitting_shared_gpus(nodes, node, memory))
    free = nodes.idle_rows[GPU_ROW][node]
    if (free + nodes.releasing_rows[GPU_ROW][node]) // 1 + groups < task_class.devices:
        return NONE
    return FREE if free // 1 + groups >= task_class.devices else FREEING
