"""Shared devices: when a group of tasks takes a whole GPU from its node, and when it gives it back.

Per node and group the ledger holds MiB used (everyone), allocated (all but nominated) and releasing
(leaving minus nominated). The device itself moves between the node's idle, used and releasing pools when
a group gets its first or loses its last user. The comparison with the node's device count guards against
counting a device twice when the label and the allocatable amount disagree.
"""

from __future__ import annotations

from enum import Enum

from scheduler.core.cluster.axis import GPU_ROW
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
    """How a task holds what it is charged."""

    NORMAL = 0
    RELEASING = 1
    NOMINATED = 2


#: The members as module names, see `status.py`.
NORMAL_HOLD = Hold.NORMAL
LEAVING_HOLD = Hold.RELEASING
NOMINATED_HOLD = Hold.NOMINATED


def join_shared_gpu(
    nodes: Nodes, journal: Journal, node: int, group_id: str, memory: int, hold: Hold
) -> None:
    """Charge one device group with one task's memory."""
    groups = nodes.shared_gpus[node]
    group = groups.get(group_id)
    if group is None:
        group = SharedGpu((0.0, 0.0, 0.0, 0.0))
        journal.insert(groups, group_id, group)
        nodes.sharing[node] = None
    if hold is NOMINATED_HOLD:
        journal.put(group, USED_COLUMN, group[USED_COLUMN] + memory)
        journal.put(group, RELEASING_COLUMN, group[RELEASING_COLUMN] - memory)
        if group[USED_COLUMN] - memory == group[RELEASING_COLUMN] + memory:
            _add(nodes.releasing_rows[GPU_ROW], journal, node, -1.0)
        return
    journal.put(group, USED_COLUMN, group[USED_COLUMN] + memory)
    journal.put(group, ALLOCATED_COLUMN, group[ALLOCATED_COLUMN] + memory)
    if hold is NORMAL_HOLD:
        if group[USED_COLUMN] <= memory:
            if _lacks_device(nodes, node):
                _add(nodes.idle_rows[GPU_ROW], journal, node, -1.0)
            _unmark(nodes, journal, node, group)
        elif group[MARKED_COLUMN]:
            _unmark(nodes, journal, node, group)
        return
    journal.put(group, RELEASING_COLUMN, group[RELEASING_COLUMN] + memory)
    if group[USED_COLUMN] == group[RELEASING_COLUMN]:
        _mark(nodes, journal, node, group)
    if group[USED_COLUMN] <= memory and _lacks_device(nodes, node):
        _add(nodes.idle_rows[GPU_ROW], journal, node, -1.0)


def leave_shared_gpu(
    nodes: Nodes, journal: Journal, node: int, group_id: str, memory: int, hold: Hold
) -> None:
    """Take one task's memory off a device group."""
    group = nodes.shared_gpus[node][group_id]
    if hold is NOMINATED_HOLD:
        was_all_leaving = group[USED_COLUMN] == group[RELEASING_COLUMN]
        journal.put(group, USED_COLUMN, group[USED_COLUMN] - memory)
        journal.put(group, RELEASING_COLUMN, group[RELEASING_COLUMN] + memory)
        if was_all_leaving or group[USED_COLUMN] == group[RELEASING_COLUMN]:
            _add(nodes.releasing_rows[GPU_ROW], journal, node, 1.0)
        return
    journal.put(group, USED_COLUMN, group[USED_COLUMN] - memory)
    journal.put(group, ALLOCATED_COLUMN, group[ALLOCATED_COLUMN] - memory)
    if hold is LEAVING_HOLD:
        journal.put(group, RELEASING_COLUMN, group[RELEASING_COLUMN] - memory)
        if group[USED_COLUMN] <= 0:
            _give_back(nodes, journal, node)
            _unmark(nodes, journal, node, group)
        elif group[MARKED_COLUMN] and group[USED_COLUMN] != group[RELEASING_COLUMN]:
            _unmark(nodes, journal, node, group)
        return
    if group[USED_COLUMN] <= 0:
        _give_back(nodes, journal, node)
    elif group[USED_COLUMN] == group[RELEASING_COLUMN]:
        _mark(nodes, journal, node, group)


def fitting_shared_gpus(nodes: Nodes, node: int, memory: int) -> list[str]:
    """Return the groups that can take this much more, counting what is leaving them.

    A group whose users are all leaving is a whole releasing device, not one to join.
    """
    return [
        group_id
        for group_id, group in nodes.shared_gpus[node].items()
        if group[USED_COLUMN]
        and group[ALLOCATED_COLUMN] != group[RELEASING_COLUMN]
        and nodes.gpu_memory[node] - group[ALLOCATED_COLUMN] + group[RELEASING_COLUMN] - memory >= 0
    ]


def has_idle_room(nodes: Nodes, node: int, group_id: str, memory: int) -> bool:
    """Tell whether a group takes this much more without waiting; never one that is only nominated."""
    group = nodes.shared_gpus[node].get(group_id)
    if group is None or group[ALLOCATED_COLUMN] <= 0:
        return False
    return nodes.gpu_memory[node] - group[ALLOCATED_COLUMN] - memory >= 0


def leftovers(nodes: Nodes, node: int) -> tuple[float, float]:
    """Return idle and releasing GPUs of a node, parts of shared devices included.

    Parts are rounded to whole hundredths against the newcomer: the taken part goes up.
    """
    idle = nodes.idle_rows[GPU_ROW][node]
    releasing = nodes.releasing_rows[GPU_ROW][node]
    memory = nodes.gpu_memory[node]
    for group in nodes.shared_gpus[node].values():
        if group[ALLOCATED_COLUMN] > 0:
            idle += 1 - _hundredths(group[ALLOCATED_COLUMN], memory)
        if group[RELEASING_COLUMN] > 0 and group[RELEASING_COLUMN] != group[USED_COLUMN]:
            releasing += _hundredths(group[RELEASING_COLUMN], memory)
    return idle, releasing


def _hundredths(amount: float, memory: int) -> float:
    return -(-100 * amount // memory) / 100


def _groups_in_use(nodes: Nodes, node: int) -> int:
    return sum(1 for group in nodes.shared_gpus[node].values() if group[USED_COLUMN] > 0)


def _devices_seen(nodes: Nodes, node: int) -> int:
    return (
        int(nodes.idle_rows[GPU_ROW][node])
        + int(nodes.whole_gpus_used[node])
        + _groups_in_use(nodes, node)
    )


def _lacks_device(nodes: Nodes, node: int) -> bool:
    return nodes.gpu_count[node] < _devices_seen(nodes, node)


def _give_back(nodes: Nodes, journal: Journal, node: int) -> None:
    if nodes.gpu_count[node] >= _devices_seen(nodes, node):
        _add(nodes.idle_rows[GPU_ROW], journal, node, 1.0)


def _mark(nodes: Nodes, journal: Journal, node: int, group: SharedGpu) -> None:
    if not group[MARKED_COLUMN]:
        journal.put(group, MARKED_COLUMN, 1.0)
        _add(nodes.releasing_rows[GPU_ROW], journal, node, 1.0)


def _unmark(nodes: Nodes, journal: Journal, node: int, group: SharedGpu) -> None:
    if group[MARKED_COLUMN]:
        journal.put(group, MARKED_COLUMN, 0.0)
        _add(nodes.releasing_rows[GPU_ROW], journal, node, -1.0)


def _add(row: list[float], journal: Journal, node: int, amount: float) -> None:
    journal.put(row, node, row[node] + amount)
