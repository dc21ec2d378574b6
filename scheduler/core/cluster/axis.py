"""The resource axis: which row of the arrays holds which resource.

CPU, memory, GPU and pod slots have fixed rows. MIG profiles and other resources get a row each if the
snapshot mentions them, sorted by name so that equal snapshots give equal arrays.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from scheduler.core.arrays import Floats
from scheduler.core.cluster.inputs import CPU, GPU, MEMORY, PODS, ClusterInput, TaskRequest

CPU_ROW, MEMORY_ROW, GPU_ROW, PODS_ROW = 0, 1, 2, 3
FIXED = (CPU, MEMORY, GPU, PODS)
MIG_PREFIX = "nvidia.com/mig-"
STORAGE = ("ephemeral-storage", "storage")

_MIG = re.compile(r"nvidia\.com/mig-(\d+)g\.(\d+)gb")


def mig_units(resource: str) -> float:
    """Return as how many GPUs one unit of a MIG resource counts in quota: 3 for `mig-3g.20gb`.

    Other resources count as 0.
    """
    match = _MIG.fullmatch(resource)
    return float(match.group(1)) if match else 0.0


class ResourceAxis:
    """Row numbers of resources.

    Attributes
    ----------
    names : resource name per row
    row_of : row per resource name
    mig_rows : (row, GPUs per unit) of each MIG profile
    """

    __slots__ = ("mig_rows", "names", "row_of")

    def __init__(self, extra: Iterable[str] = ()) -> None:
        self.names: tuple[str, ...] = FIXED + tuple(sorted(set(extra) - set(FIXED)))
        self.row_of: dict[str, int] = {name: row for row, name in enumerate(self.names)}
        self.mig_rows: tuple[tuple[int, float], ...] = tuple(
            (row, mig_units(name)) for row, name in enumerate(self.names) if mig_units(name)
        )

    def __len__(self) -> int:
        return len(self.names)

    def gpus_of(self, amounts: Floats) -> float:
        """Return the GPUs in amounts by row; MIG slices count as the GPUs that they stand for."""
        slices = sum(amounts[row] * units for row, units in self.mig_rows)
        return float(amounts[GPU_ROW] + slices)


def axis_of(cluster: ClusterInput) -> ResourceAxis:
    """Return an axis with every resource that a node offers or a task requests."""
    extra: set[str] = set()
    for node in cluster.nodes:
        extra.update(node.allocatable)
    visited: set[int] = set()  # by identity: tasks share their requests
    for request in _requests(cluster):
        if id(request) not in visited:
            visited.add(id(request))
            extra.update(name for name, _ in request.other)
            extra.update(name for name, _ in request.mig)
    return ResourceAxis(extra)


def _requests(cluster: ClusterInput) -> Iterable[TaskRequest]:
    for pod_group in cluster.pod_groups:
        for task in pod_group.tasks:
            yield task.request
    for pod in cluster.other_pods:
        yield pod.task.request
