"""Whether an evicted task could stay in place: room on its own node, and on the shared devices it holds."""

from __future__ import annotations

from scheduler.core.arrays import TOLERANCE
from scheduler.core.cluster.axis import GPU_ROW, PODS_ROW
from scheduler.core.cluster.gpus import stays_shared
from scheduler.core.cluster.nodes import ALLOCATED_COLUMN, RELEASING_COLUMN
from scheduler.core.cluster.tasks import NOWHERE
from scheduler.core.session.session import Session


def has_room_at_home(session: Session, task: int) -> bool:
    """Return whether the node that a task left for another place could keep it, by amounts alone.

    The place it goes to is counted as free if it is on the same node.
    """
    state = session.state
    node = state.tasks.left_node[task]
    if node == NOWHERE:
        return False
    nodes, is_same_node = state.nodes, state.tasks.node[task] == node
    return all(
        nodes.idle_rows[row][node]
        + nodes.releasing_rows[row][node]
        + (amount if is_same_node else 0.0)
        >= amount - TOLERANCE
        for row, amount in state.charge_amounts(task, node)
    )


def own_devices_have_room(session: Session, task: int) -> bool:
    """Return whether the shared devices of an evicted task have room for it once leaving tasks have left."""
    state = session.state
    nodes, node = state.nodes, state.tasks.node[task]
    task_class = state.tasks.task_class[task]
    memory = task_class.memory_on(nodes.gpu_memory[node])
    devices_to_share = 0  # of its shared devices, those that no other task would keep shared
    for gpu_group in state.tasks.gpu_groups[task]:
        gpu = nodes.shared_gpus[node][gpu_group]
        if not stays_shared(gpu):
            devices_to_share += 1
        elif gpu[ALLOCATED_COLUMN] - gpu[RELEASING_COLUMN] + memory > nodes.gpu_memory[node]:
            return False
    gpus = nodes.idle_rows[GPU_ROW][node] + nodes.releasing_rows[GPU_ROW][node]
    pod_slots = nodes.idle_rows[PODS_ROW][node] + nodes.releasing_rows[PODS_ROW][node]
    # Each newly shared device needs a reservation pod.
    return bool(gpus >= devices_to_share and pod_slots >= 1 + devices_to_share)
