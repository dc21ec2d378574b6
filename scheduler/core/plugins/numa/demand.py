"""What of a task's request is aligned to NUMA zones: per pod or container by container.

CPU counts only where the kubelet pins it: whole CPUs of a container in a Guaranteed pod. Memory and huge
pages count for Guaranteed pods, devices always.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from scheduler.core.cluster.axis import ResourceAxis
from scheduler.core.cluster.classes import TaskClass
from scheduler.core.cluster.inputs import CPU, MEMORY, PODS

GUARANTEED = "Guaranteed"
WHOLE_CPU_MILLI = 1000


@dataclass(frozen=True, slots=True)
class NumaDemand:
    """Requests that hold at once (each takes from what the one before left) and those before them.

    Attributes
    ----------
    together : app containers and sidecars, or the whole pod
    alone : ordinary init containers: each sees the untouched zones
    """

    together: tuple[dict[str, float], ...]
    alone: tuple[dict[str, float], ...] = ()


def is_device(resource: str) -> bool:
    """Tell devices from CPU, memory and huge pages."""
    return resource not in (CPU, MEMORY, PODS) and not resource.startswith("hugepages-")


def read_demand(
    task_class: TaskClass, axis: ResourceAxis, aware: Collection[str], *, per_container: bool
) -> NumaDemand:
    """Return what is aligned of a task on a node that reports `aware` resources.

    A task whose containers are not known is measured by its pod request.
    """
    containers = task_class.constraints.containers
    guaranteed = task_class.constraints.qos_class == GUARANTEED
    if per_container and containers:
        units = [
            (one.kind == "init", _aligned(dict(one.requests), aware, guaranteed=guaranteed))
            for one in containers
        ]
        return NumaDemand(
            together=tuple(request for is_init, request in units if not is_init and request),
            alone=tuple(request for is_init, request in units if is_init and request),
        )
    whole = {
        axis.names[row]: float(amount)
        for row, amount in enumerate(task_class.vector.tolist())
        if amount
    }
    request = _aligned(whole, aware, guaranteed=guaranteed)
    if CPU in request and containers:
        request[CPU] = _pinned_cpu(task_class)
    return NumaDemand(together=({name: amount for name, amount in request.items() if amount > 0},))


def _aligned(
    request: dict[str, float], aware: Collection[str], *, guaranteed: bool
) -> dict[str, float]:
    found = {}
    for name, amount in request.items():
        if amount <= 0 or name not in aware or (not guaranteed and not is_device(name)):
            continue
        if name == CPU and amount % WHOLE_CPU_MILLI:
            continue
        found[name] = amount
    return found


def _pinned_cpu(task_class: TaskClass) -> float:
    """Return the larger of what runs on and the peak of the init phase, whole CPUs only."""
    running = peak = sidecars = 0.0
    for one in task_class.constraints.containers:
        cpu = dict(one.requests).get(CPU, 0.0)
        pinned = cpu if cpu % WHOLE_CPU_MILLI == 0 else 0.0
        if one.kind == "init":
            peak = max(peak, sidecars + pinned)
            continue
        running += pinned
        if one.kind == "sidecar":
            sidecars += pinned
    return max(running, peak)
