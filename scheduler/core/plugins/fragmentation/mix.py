"""The typical mix: what the tasks of the snapshot request, running and waiting, and how common each request is."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from scheduler.core.arrays import Bools
from scheduler.core.cluster.axis import CPU_ROW, GPU_ROW
from scheduler.core.cluster.classes import TaskClass
from scheduler.core.cluster.constraints import TaskConstraints
from scheduler.core.cluster.matching import matches_node
from scheduler.core.cluster.state import ClusterState

#: The mix is made of the commonest requests that together make up this part of all tasks.
TYPICAL_PART = 0.95
#: The most requests that it has.
MAX_TYPICAL = 256
#: How many of the commonest node selections of the mix are evaluated; others count as allowed everywhere.
MAX_SELECTIONS = 32


@dataclass(frozen=True, slots=True)
class TypicalRequest:
    """One request for GPUs of the mix.

    Attributes
    ----------
    cpu_milli, share, devices : what it takes: so many devices, and this part of each
    weight : how common it is, more if few devices of the cluster suit it
    nodes : shape (nodes,); where selectors and affinity let it run
    """

    cpu_milli: float
    share: float
    devices: int
    weight: float
    nodes: Bools


#: CPU, part of each device, number of devices, and the constraints that select nodes (None: none do).
_Key = tuple[float, float, int, TaskConstraints | None]


def device_count(task_class: TaskClass) -> int:
    """Return how many devices a task takes, whole or in part."""
    return task_class.devices if task_class.is_shared else int(task_class.request.gpus)


def takes_plain_devices(task_class: TaskClass) -> bool:
    """Return whether tasks take plain devices, whole or in part, or none: no MIG slices, no claims."""
    return not (task_class.is_mig or task_class.is_dra or task_class.is_legacy_mig)


def typical_requests(state: ClusterState) -> list[TypicalRequest]:
    """Return the requests for GPUs of the typical mix, the commonest first.

    The weight of a request is its part of all tasks times its scarcity: the square root of all devices of
    the cluster over those that suit the request. So devices of a model that some tasks must have are left
    to these before they are scarce.
    """
    counts = _commonest(state)
    total = sum(counts.values())
    allowed = _allowed_nodes(state, counts)
    cpu, gpus = state.nodes.allocatable[CPU_ROW], state.nodes.allocatable[GPU_ROW]
    requests = []
    for key, count in counts.items():
        cpu_milli, share, devices, selection = key
        nodes = allowed[selection]
        suitable = float(gpus[nodes & (gpus >= devices) & (cpu >= cpu_milli)].sum())
        if devices and suitable:
            scarcity = float(np.sqrt(gpus.sum() / suitable))
            requests.append(
                TypicalRequest(cpu_milli, share, devices, count / total * scarcity, nodes)
            )
    return requests


def _commonest(state: ClusterState) -> dict[_Key, int]:
    """Return the commonest requests with their number of tasks; requests without GPU count too."""
    by_class = Counter(task_class.index for task_class in state.tasks.task_class)
    counts: Counter[_Key] = Counter()
    for index, count in by_class.items():
        task_class = state.classes.classes[index]
        if takes_plain_devices(task_class):
            counts[_key_of(state, task_class)] += count
    uncovered = TYPICAL_PART * counts.total()
    chosen: dict[_Key, int] = {}
    for key, count in counts.most_common(MAX_TYPICAL):
        chosen[key] = count
        uncovered -= count
        if uncovered <= 0:
            break
    return chosen


def _key_of(state: ClusterState, task_class: TaskClass) -> _Key:
    constraints, devices = task_class.constraints, device_count(task_class)
    selects = devices and (constraints.node_affinity or constraints.node_selector)
    return (
        task_class.request.cpu_milli,
        _typical_share(state, task_class) if devices else 0.0,
        devices,
        constraints if selects else None,
    )


def _typical_share(state: ClusterState, task_class: TaskClass) -> float:
    """Return the part of a device that a request takes; one by memory is measured on the largest GPU."""
    if not task_class.is_shared:
        return 1.0
    if not task_class.share_memory_mib:
        return task_class.portion
    return min(1.0, task_class.share_memory_mib / max(state.nodes.gpu_memory))


def _allowed_nodes(
    state: ClusterState, counts: dict[_Key, int]
) -> dict[TaskConstraints | None, Bools]:
    """Return constraints of requests -> the nodes on which they let tasks run."""
    everywhere: Bools = np.ones(len(state.nodes), dtype=np.bool_)
    common: Counter[TaskConstraints | None] = Counter()
    for (_, _, _, selection), count in counts.items():
        common[selection] += count
    allowed: dict[TaskConstraints | None, Bools] = dict.fromkeys(common, everywhere)
    for selection, _ in common.most_common(MAX_SELECTIONS):
        if selection is not None:
            allowed[selection] = np.array(
                [matches_node(node, selection) for node in state.nodes.inputs], dtype=np.bool_
            )
    return allowed
