"""The typical mix: what the tasks of the snapshot request and those of the recent past did, and how common each request is."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from heapq import nlargest
from operator import itemgetter

import numpy as np

from scheduler.core.arrays import Bools
from scheduler.core.cluster.axis import CPU_ROW, GPU_ROW
from scheduler.core.cluster.classes import TaskClass
from scheduler.core.cluster.constraints import TaskConstraints
from scheduler.core.cluster.inputs import PlainRequest
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
    for request, count in counts.items():
        cpu_milli, devices, nodes = request.cpu_milli, request.devices, allowed[request.selection]
        suitable = float(gpus[nodes & (gpus >= devices) & (cpu >= cpu_milli)].sum())
        if devices and suitable:
            scarcity = float(np.sqrt(gpus.sum() / suitable))
            weight = count / total * scarcity
            requests.append(TypicalRequest(cpu_milli, request.share, devices, weight, nodes))
    return requests


def _commonest(state: ClusterState) -> dict[PlainRequest, float]:
    """Return the commonest requests with their number of tasks; requests without GPU count too."""
    counts: dict[PlainRequest, float] = dict(state.cluster_input.past_requests)
    by_class = Counter(task_class.index for task_class in state.tasks.task_class)
    for index, count in by_class.items():
        request = plain_request(state, state.classes.classes[index])
        if request is not None:
            counts[request] = counts.get(request, 0.0) + count
    uncovered = TYPICAL_PART * sum(counts.values())
    weights: dict[PlainRequest, float] = {}
    for request, weight in nlargest(MAX_TYPICAL, counts.items(), key=itemgetter(1)):
        weights[request] = weight
        uncovered -= weight
        if uncovered <= 0:
            break
    return weights


def plain_request(state: ClusterState, task_class: TaskClass) -> PlainRequest | None:
    """Return what a class requests; None if it takes other than plain devices."""
    if not takes_plain_devices(task_class):
        return None
    constraints, devices = task_class.constraints, device_count(task_class)
    selection = None
    if devices and (constraints.node_affinity or constraints.node_selector):
        selection = TaskConstraints(
            node_selector=constraints.node_selector, node_affinity=constraints.node_affinity
        )
    return PlainRequest(
        task_class.request.cpu_milli,
        _typical_share(state, task_class) if devices else 0.0,
        devices,
        selection,
    )


def _typical_share(state: ClusterState, task_class: TaskClass) -> float:
    """Return the part of a device that a request takes; one by memory is measured on the largest GPU."""
    if not task_class.is_shared:
        return 1.0
    if not task_class.share_memory_mib:
        return task_class.portion
    return min(1.0, task_class.share_memory_mib / max(state.nodes.gpu_memory))


def _allowed_nodes(
    state: ClusterState, counts: dict[PlainRequest, float]
) -> dict[TaskConstraints | None, Bools]:
    """Return constraints of requests -> the nodes on which they let tasks run."""
    everywhere: Bools = np.ones(len(state.nodes), dtype=np.bool_)
    common: dict[TaskConstraints | None, float] = {}
    for request, weight in counts.items():
        common[request.selection] = common.get(request.selection, 0.0) + weight
    allowed: dict[TaskConstraints | None, Bools] = dict.fromkeys(common, everywhere)
    for selection, _ in nlargest(MAX_SELECTIONS, common.items(), key=itemgetter(1)):
        if selection is not None:
            allowed[selection] = np.array(
                [matches_node(node, selection) for node in state.nodes.inputs], dtype=np.bool_
            )
    return allowed
