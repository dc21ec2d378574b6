"""The part of a task's request that is aligned to NUMA zones, per pod or per container.

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
    """Requests of containers that run at the same time, and those of init containers before them.

    Attributes
    ----------
    main : requests of app containers and sidecars, or of the whole pod; each takes from what the one
        before it left
    init : requests of ordinary init containers; each is aligned to zones from which nothing is taken
    """

    main: tuple[dict[str, float], ...]
    init: tuple[dict[str, float], ...] = ()


def is_device(resource: str) -> bool:
    """Return whether a resource is a device, not CPU, memory or huge pages."""
    return resource not in (CPU, MEMORY, PODS) and not resource.startswith("hugepages-")


def read_demand(
    task_class: TaskClass, axis: ResourceAxis, resources: Collection[str], *, per_container: bool
) -> NumaDemand:
    """Return the part of a task's request to align on a node that aligns `resources`.

    A task whose containers are not known is measured by its pod request.
    """
    containers = task_class.constraints.containers
    guaranteed = task_class.constraints.qos_class == GUARANTEED
    if per_container and containers:
        units = [
            (
                container.kind == "init",
                _aligned(dict(container.requests), resources, guaranteed=guaranteed),
            )
            for container in containers
        ]
        return NumaDemand(
            main=tuple(request for is_init, request in units if not is_init and request),
            init=tuple(request for is_init, request in units if is_init and request),
        )
    whole = {
        axis.names[row]: float(amount)
        for row, amount in enumerate(task_class.vector.tolist())
        if amount
    }
    request = _aligned(whole, resources, guaranteed=guaranteed)
    if CPU in request and containers:
        request[CPU] = _pinned_cpu(task_class)
    return NumaDemand(main=({name: amount for name, amount in request.items() if amount > 0},))


def _aligned(
    request: dict[str, float], resources: Collection[str], *, guaranteed: bool
) -> dict[str, float]:
    aligned = {}
    for name, amount in request.items():
        if amount <= 0 or name not in resources or (not guaranteed and not is_device(name)):
            continue
        if name == CPU and amount % WHOLE_CPU_MILLI:
            continue
        aligned[name] = amount
    return aligned


def _pinned_cpu(task_class: TaskClass) -> float:
    """Return the whole CPUs of the running containers or of the init phase, whichever is more."""
    running = peak = sidecars = 0.0
    for container in task_class.constraints.containers:
        cpu = dict(container.requests).get(CPU, 0.0)
        pinned = cpu if cpu % WHOLE_CPU_MILLI == 0 else 0.0
        if container.kind == "init":
            peak = max(peak, sidecars + pinned)
            continue
        running += pinned
        if container.kind == "sidecar":
            sidecars += pinned
    return max(running, peak)
