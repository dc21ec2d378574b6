"""Shared GPUs: when a set of tasks takes a whole GPU from its node, and when it gives the GPU back.

The tasks on one shared GPU have a GPU group id in common. For each there is a ledger (`SharedGpu`) of the
MiB used by all tasks, allocated (all but nominated tasks), and releasing (leaving less nominated tasks).
The device itself moves between the idle, used and releasing GPUs of its node when the first task joins
and the last one leaves. Comparing with the node's device count avoids counting a device twice where the
label and the allocatable amount disagree.

Every shared GPU also takes one pod slot of its node, because a reservation pod holds it for the others. The
slot is taken when the first task joins, it is being freed once all tasks are leaving, and free when they left.
"""

from __future__ import annotations

from enum import Enum

from scheduler.core.cluster.axis import GPU_ROW, PODS_ROW
from scheduler.core.cluster.journal import Journal
from scheduler.core.cluster.nodes import (
    ALLOCATED_COLUMN,
    MARKED_COLUMN,
    RELEASING_COLUMN,
    USED_COLUMN,
    Nodes,
    SharedGpu,
)


class Hold(Enum):
    """How a task holds what it is charged: in use, about to leave, or promised but not there yet."""

    NORMAL = 0
    RELEASING = 1
    NOMINATED = 2


#: The members as module names, which are faster to look up (see `status.py`).
NORMAL_HOLD = Hold.NORMAL
LEAVING_HOLD = Hold.RELEASING
NOMINATED_HOLD = Hold.NOMINATED


def join_shared_gpu(
    nodes: Nodes, journal: Journal, node: int, gpu_group: str, memory: int, hold: Hold
) -> None:
    """Charge a shared GPU with the memory of one task, opening it if the task is the first.

    Parameters
    ----------
    memory : MiB
    hold : how the task holds the memory
    """
    shared_gpus = nodes.shared_gpus[node]
    gpu = shared_gpus.get(gpu_group)
    if gpu is None:
        gpu = SharedGpu((0.0, 0.0, 0.0, 0.0))
        journal.insert(shared_gpus, gpu_group, gpu)
        nodes.sharing[node] = None
    slot = _slot(gpu)
    _join(nodes, journal, node, gpu, memory, hold)
    _move_slot(nodes, journal, node, slot, _slot(gpu))


def _join(
    nodes: Nodes, journal: Journal, node: int, gpu: SharedGpu, memory: int, hold: Hold
) -> None:
    if hold is NOMINATED_HOLD:
        journal.put(gpu, USED_COLUMN, gpu[USED_COLUMN] + memory)
        journal.put(gpu, RELEASING_COLUMN, gpu[RELEASING_COLUMN] - memory)
        if gpu[USED_COLUMN] - memory == gpu[RELEASING_COLUMN] + memory:
            _add(nodes.releasing_rows[GPU_ROW], journal, node, -1.0)
        return
    journal.put(gpu, USED_COLUMN, gpu[USED_COLUMN] + memory)
    journal.put(gpu, ALLOCATED_COLUMN, gpu[ALLOCATED_COLUMN] + memory)
    if hold is NORMAL_HOLD:
        if gpu[USED_COLUMN] <= memory:
            if _lacks_device(nodes, node):
                _add(nodes.idle_rows[GPU_ROW], journal, node, -1.0)
            _unmark(nodes, journal, node, gpu)
        elif gpu[MARKED_COLUMN]:
            _unmark(nodes, journal, node, gpu)
        return
    journal.put(gpu, RELEASING_COLUMN, gpu[RELEASING_COLUMN] + memory)
    if gpu[USED_COLUMN] == gpu[RELEASING_COLUMN]:
        _mark(nodes, journal, node, gpu)
    if gpu[USED_COLUMN] <= memory and _lacks_device(nodes, node):
        _add(nodes.idle_rows[GPU_ROW], journal, node, -1.0)


def leave_shared_gpu(
    nodes: Nodes, journal: Journal, node: int, gpu_group: str, memory: int, hold: Hold
) -> None:
    """Release the memory of one task on a shared GPU; the reverse of `join_shared_gpu`."""
    gpu = nodes.shared_gpus[node][gpu_group]
    slot = _slot(gpu)
    _leave(nodes, journal, node, gpu, memory, hold)
    _move_slot(nodes, journal, node, slot, _slot(gpu))


def _leave(
    nodes: Nodes, journal: Journal, node: int, gpu: SharedGpu, memory: int, hold: Hold
) -> None:
    if hold is NOMINATED_HOLD:
        was_all_leaving = gpu[USED_COLUMN] == gpu[RELEASING_COLUMN]
        journal.put(gpu, USED_COLUMN, gpu[USED_COLUMN] - memory)
        journal.put(gpu, RELEASING_COLUMN, gpu[RELEASING_COLUMN] + memory)
        if was_all_leaving or gpu[USED_COLUMN] == gpu[RELEASING_COLUMN]:
            _add(nodes.releasing_rows[GPU_ROW], journal, node, 1.0)
        return
    journal.put(gpu, USED_COLUMN, gpu[USED_COLUMN] - memory)
    journal.put(gpu, ALLOCATED_COLUMN, gpu[ALLOCATED_COLUMN] - memory)
    if hold is LEAVING_HOLD:
        journal.put(gpu, RELEASING_COLUMN, gpu[RELEASING_COLUMN] - memory)
        if gpu[USED_COLUMN] <= 0:
            _give_back(nodes, journal, node)
            _unmark(nodes, journal, node, gpu)
        elif gpu[MARKED_COLUMN] and gpu[USED_COLUMN] != gpu[RELEASING_COLUMN]:
            _unmark(nodes, journal, node, gpu)
        return
    if gpu[USED_COLUMN] <= 0:
        _give_back(nodes, journal, node)
    elif gpu[USED_COLUMN] == gpu[RELEASING_COLUMN]:
        _mark(nodes, journal, node, gpu)


def stays_shared(gpu: SharedGpu) -> bool:
    """Return whether any task has a device once leaving tasks have left and nominated ones have come."""
    return gpu[ALLOCATED_COLUMN] > gpu[RELEASING_COLUMN]


def _slot(gpu: SharedGpu) -> tuple[bool, bool]:
    """Return whether the reservation pod of a device has its pod slot now, and once leaving tasks have left."""
    return gpu[ALLOCATED_COLUMN] > 0, stays_shared(gpu)


def _move_slot(
    nodes: Nodes, journal: Journal, node: int, old: tuple[bool, bool], new: tuple[bool, bool]
) -> None:
    """Take or give back the pod slot of a reservation pod, as idle and as releasing."""
    if old == new:
        return
    now, later = new[0] - old[0], new[1] - old[1]
    if now:
        _add(nodes.idle_rows[PODS_ROW], journal, node, -float(now))
    if now != later:
        _add(nodes.releasing_rows[PODS_ROW], journal, node, float(now - later))


def fitting_shared_gpus(nodes: Nodes, node: int, memory: int) -> list[str]:
    """Return the GPU group ids of shared GPUs with this many MiB free or about to be freed.

    A GPU whose tasks are all leaving is left out: it counts as a whole releasing device.
    """
    shared_gpus = nodes.shared_gpus[node]
    if not shared_gpus:
        return []
    room = nodes.gpu_memory[node] - memory
    return [
        gpu_group
        for gpu_group, (used, allocated, releasing, _marked) in shared_gpus.items()
        if used and allocated != releasing and allocated - releasing <= room
    ]


def joinable_shares(nodes: Nodes, node: int) -> list[float]:
    """Return the part that is free, or about to be, of each shared GPU of a node, 1 for a whole device."""
    size = nodes.gpu_memory[node]
    return [
        (size - gpu[ALLOCATED_COLUMN] + gpu[RELEASING_COLUMN]) / size
        for gpu in nodes.shared_gpus[node].values()
        if gpu[USED_COLUMN] and gpu[ALLOCATED_COLUMN] != gpu[RELEASING_COLUMN]
    ]


def has_idle_room(nodes: Nodes, node: int, gpu_group: str, memory: int) -> bool:
    """Return whether a shared GPU has this many MiB free now; False if it is only nominated."""
    gpu = nodes.shared_gpus[node].get(gpu_group)
    if gpu is None or gpu[ALLOCATED_COLUMN] <= 0:
        return False
    return nodes.gpu_memory[node] - gpu[ALLOCATED_COLUMN] - memory >= 0


def leftovers(nodes: Nodes, node: int) -> tuple[float, float]:
    """Return idle and releasing GPUs of a node, including the free parts of shared GPUs.

    What is taken of a device is rounded up to a hundredth, so that too much is never offered.
    """
    idle = nodes.idle_rows[GPU_ROW][node]
    releasing = nodes.releasing_rows[GPU_ROW][node]
    memory = nodes.gpu_memory[node]
    for gpu in nodes.shared_gpus[node].values():
        if gpu[ALLOCATED_COLUMN] > 0:
            idle += 1 - _hundredths(gpu[ALLOCATED_COLUMN], memory)
        if gpu[RELEASING_COLUMN] > 0 and gpu[RELEASING_COLUMN] != gpu[USED_COLUMN]:
            releasing += _hundredths(gpu[RELEASING_COLUMN], memory)
    return idle, releasing


def _hundredths(amount: float, memory: int) -> float:
    return -(-100 * amount // memory) / 100


def _shared_gpus_in_use(nodes: Nodes, node: int) -> int:
    return sum(1 for gpu in nodes.shared_gpus[node].values() if gpu[USED_COLUMN] > 0)


def _devices_seen(nodes: Nodes, node: int) -> int:
    return (
        int(nodes.idle_rows[GPU_ROW][node])
        + int(nodes.whole_gpus_used[node])
        + _shared_gpus_in_use(nodes, node)
    )


def _lacks_device(nodes: Nodes, node: int) -> bool:
    return nodes.gpu_count[node] < _devices_seen(nodes, node)


def _give_back(nodes: Nodes, journal: Journal, node: int) -> None:
    if nodes.gpu_count[node] >= _devices_seen(nodes, node):
        _add(nodes.idle_rows[GPU_ROW], journal, node, 1.0)


def _mark(nodes: Nodes, journal: Journal, node: int, gpu: SharedGpu) -> None:
    if not gpu[MARKED_COLUMN]:
        journal.put(gpu, MARKED_COLUMN, 1.0)
        _add(nodes.releasing_rows[GPU_ROW], journal, node, 1.0)


def _unmark(nodes: Nodes, journal: Journal, node: int, gpu: SharedGpu) -> None:
    if gpu[MARKED_COLUMN]:
        journal.put(gpu, MARKED_COLUMN, 0.0)
        _add(nodes.releasing_rows[GPU_ROW], journal, node, -1.0)


def _add(row: list[float], journal: Journal, node: int, amount: float) -> None:
    journal.put(row, node, row[node] + amount)
