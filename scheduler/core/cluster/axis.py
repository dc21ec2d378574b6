"""The resource axis: which row of the arrays holds which resource.

CPU, memory, GPU and pod slots have fixed rows; MIG profiles and other resources get rows as the
snapshot mentions them, in order of name so that equal snapshots make equal arrays.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from scheduler.core.cluster.inputs import CPU, GPU, MEMORY, PODS, ClusterInput, TaskRequest

CPU_ROW, MEMORY_ROW, GPU_ROW, PODS_ROW = 0, 1, 2, 3
FIXED = (CPU, MEMORY, GPU, PODS)
MIG_PREFIX = "nvidia.com/mig-"
STORAGE = ("ephemeral-storage", "storage")

_MIG = re.compile(r"nvidia\.com/mig-(\d+)g\.(\d+)gb")


def mig_units(resource: str) -> float:
    """Return how many GPUs a MIG resource counts in quota (`mig-3g.20gb` counts 3), else 0."""
    found = _MIG.fullmatch(resource)
    return float(found.group(1)) if found else 0.0


def plain_amount(resource: str, amount: float) -> str:
    """Print an amount of a resource that has no unit of its own: items, or bytes of storage.

    Extended resources and huge pages are kept in thousandths, as KAI prints them too; people count items.
    """
    is_whole = resource in (PODS, *STORAGE) or resource.startswith(MIG_PREFIX)
    return f"{amount if is_whole else amount / 1000:.15g}"


class ResourceAxis:
    """Row numbers of resources."""

    __slots__ = ("mig_rows", "names", "row_of")

    def __init__(self, extra: Iterable[str] = ()) -> None:
        self.names: tuple[str, ...] = FIXED + tuple(sorted(set(extra) - set(FIXED)))
        self.row_of: dict[str, int] = {name: row for row, name in enumerate(self.names)}
        #: (row, GPUs per unit) of the MIG profiles.
        self.mig_rows: tuple[tuple[int, float], ...] = tuple(
            (row, mig_units(name)) for row, name in enumerate(self.names) if mig_units(name)
        )

    def __len__(self) -> int:
        return len(self.names)


def axis_of(cluster: ClusterInput) -> ResourceAxis:
    """Collect every resource that a node offers or a task asks for."""
    extra: set[str] = set()
    for node in cluster.nodes:
        extra.update(node.allocatable)
    seen: set[int] = set()
    for request in _requests(cluster):
        if id(request) not in seen:
            seen.add(id(request))
            extra.update(name for name, _ in request.other)
            extra.update(name for name, _ in request.mig)
    return ResourceAxis(extra)


def _requests(cluster: ClusterInput) -> Iterable[TaskRequest]:
    for group in cluster.pod_groups:
        for task in group.tasks:
            yield task.request
    for pod in cluster.other_pods:
        yield pod.task.request
