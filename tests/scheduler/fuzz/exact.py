"""Sums in whole numbers, worked out from the requests alone and not from the core's ledgers.

GPUs of queues count in thousandths, as the core charges them (fractions in hundredths of a device, memory
rounded up to a hundredth of it). Devices count as exact fractions.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from fractions import Fraction
from math import inf

from scheduler.core.cluster.axis import mig_units
from scheduler.core.cluster.inputs import NodeInput, QueueAmounts, QueueInput, TaskRequest

#: CPU millicores, memory bytes, thousandths of GPUs.
Sums = tuple[int, int, int]
NOTHING: Sums = (0, 0, 0)


def add(left: Sums, right: Sums, sign: int = 1) -> Sums:
    """Add or (with -1) subtract."""
    return (
        left[0] + sign * right[0],
        left[1] + sign * right[1],
        left[2] + sign * right[2],
    )


def charge_of(request: TaskRequest, node: NodeInput) -> Sums:
    """Return what the queue of a task is charged for it on a node."""
    gpus = round(request.gpus * 1000)
    if request.gpu_fraction:
        gpus += round(request.gpu_fraction * 100) * request.gpu_devices * 10
    if request.gpu_memory_mib:
        hundredths = -(-100 * request.gpu_memory_mib // node.gpu_memory_mib)
        gpus += hundredths * request.gpu_devices * 10
    gpus += round(sum(mig_units(name) * count for name, count in request.mig) * 1000)
    return (round(request.cpu_milli), round(request.memory_bytes), gpus)


def bounds(queue: QueueInput, field: str) -> tuple[float, float, float]:
    """Return the quota or limit of a queue in the same units; inf where unlimited."""
    return (
        _in_whole_units(queue.cpu, field, 1),
        _in_whole_units(queue.memory, field, 1),
        _in_whole_units(queue.gpu, field, 1000),
    )


def _in_whole_units(amounts: QueueAmounts, field: str, factor: int) -> float:
    value = float(getattr(amounts, field))
    return inf if value == inf else round(value * factor)


def exceeds(sums: Sums, bound: tuple[float, float, float]) -> bool:
    """Return whether the sums are above the bound somewhere."""
    return any(amount > limit for amount, limit in zip(sums, bound, strict=True))


def paths_of(queues: Iterable[QueueInput]) -> dict[str, list[str]]:
    """Return for each queue its own name and those of its ancestors, leaf to root."""
    parents = {queue.name: queue.parent for queue in queues}
    paths = {}
    for name in parents:
        path, current = [], name
        while current:
            path.append(current)
            current = parents[current]
        paths[name] = path
    return paths


#: (request, GPU groups) of a pod on a node.
Holder = tuple[TaskRequest, tuple[str, ...]]


def overdrawn(node: NodeInput, holders: Iterable[Holder]) -> list[str]:
    """Return what the holders take of a node above what it has, as texts."""
    used: Counter[str] = Counter()
    devices: dict[str, Fraction] = defaultdict(Fraction)
    for request, gpu_groups in holders:
        used["cpu"] += round(request.cpu_milli)
        used["memory"] += round(request.memory_bytes)
        used["pods"] += 1
        used["gpu"] += round(request.gpus)
        for name, amount in request.mig + request.other:
            used[name] += round(amount)
        for gpu_group in gpu_groups:
            devices[gpu_group] += _portion(request, node)
    used["gpu"] += len(devices)
    used["pods"] += len(devices)  # a shared device has a reservation pod
    texts = [
        f"{node.name} has {round(node.allocatable.get(name, 0))} {name}, {amount} are held"
        for name, amount in sorted(used.items())
        if amount > round(node.allocatable.get(name, 0))
    ]
    texts += [
        f"device {gpu_group} of {node.name} is held {float(portion):g} times"
        for gpu_group, portion in sorted(devices.items())
        if portion > 1
    ]
    return texts


def _portion(request: TaskRequest, node: NodeInput) -> Fraction:
    if request.gpu_fraction:
        return Fraction(round(request.gpu_fraction * 1000), 1000)
    return Fraction(request.gpu_memory_mib, node.gpu_memory_mib)
