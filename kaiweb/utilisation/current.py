"""What is known now: the devices of each pod, and how much of the GPUs of each workload is used.

A reading counts until `max_age()` has passed; after that the utilisation is unknown again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil

from django.conf import settings
from django.db.models import QuerySet

from kaiweb.utilisation.models import DeviceUtilisation, WorkloadUtilisation
from kube.objects.pod import FINISHED_PHASES
from queues.models import Pod

MISSED_READINGS = 3
MIN_AGE_S = 90


@dataclass(slots=True)
class Use:
    """The GPUs of a pod or a workload.

    Attributes
    ----------
    held : GPUs
    known : GPUs whose utilisation is known
    idle : those below the threshold
    busy_sum : percent times known GPUs
    """

    held: float = 0.0
    known: float = 0.0
    idle: float = 0.0
    busy_sum: float = 0.0

    @property
    def percent(self) -> float:
        return self.busy_sum / self.known if self.known else 0.0

    @property
    def is_idle(self) -> bool:
        return self.known > 0 and self.idle >= self.known

    def add(self, other: Use) -> None:
        """Add the GPUs of another pod."""
        self.held += other.held
        self.known += other.known
        self.idle += other.idle
        self.busy_sum += other.busy_sum


def max_age() -> timedelta:
    """Return how long a reading counts."""
    seconds = settings.KAIWEB_UTILISATION_SAMPLE_S * (MISSED_READINGS + 1)
    return timedelta(seconds=max(MIN_AGE_S, seconds))


def device_rows(now: datetime) -> QuerySet[DeviceUtilisation]:
    """Return the devices of a reading that still counts, those of a node in the order of their numbers."""
    return DeviceUtilisation.objects.filter(measured_at__gt=now - max_age())


def devices_by_pod(
    now: datetime, nodes: Collection[str] | None = None
) -> Mapping[str, list[DeviceUtilisation]]:
    """Return pod -> the devices that the kubelet gave it, by number; of these nodes, or of all."""
    rows = device_rows(now).exclude(pod="")
    if nodes is not None:
        rows = rows.filter(node__in=nodes)
    devices: dict[str, list[DeviceUtilisation]] = defaultdict(list)
    for row in sorted(rows.order_by(), key=_number):
        devices[row.pod].append(row)
    return devices


def _number(row: DeviceUtilisation) -> tuple[int, str]:
    number, _colon, instance = row.device.partition(":")
    return int(number), instance


def of_cell(devices: list[DeviceUtilisation], position: int) -> DeviceUtilisation | None:
    """Return the device of a pod's cell, which is the pod's device at this position.

    A MIG slice may have several cells.
    """
    if devices and ":" in devices[0].device:
        position = min(position, len(devices) - 1)
    return devices[position] if position < len(devices) else None


def use_by_pod(now: datetime) -> dict[str, tuple[str, str, Use]]:
    """Return pod -> its workload, its node and its use, for pods that hold GPUs.

    Pods that share a device have no series of their own. They count as the device that is reserved for their
    group.
    """
    devices = devices_by_pod(now)
    rows = Pod.objects.exclude(node="").exclude(phase__in=FINISHED_PHASES).order_by()
    reservations = rows.exclude(reserves_group="").values_list("key", "reserves_group")
    devices_by_group: dict[str, list[DeviceUtilisation]] = defaultdict(list)
    for key, gpu_group in reservations:
        devices_by_group[gpu_group] += devices.get(key, [])
    columns = ("key", "group", "node", "gpu", "gpu_groups")
    uses = {}
    for key, group, node, gpu, gpu_groups in rows.exclude(gpu_kind="none").values_list(*columns):
        of_pod = devices.get(key) or [
            device for gpu_group in gpu_groups for device in devices_by_group[gpu_group]
        ]
        # A pod that asks for GPU memory has no count of devices.
        uses[key] = (group, node, _use(gpu or 1.0, len(gpu_groups) or ceil(gpu or 1.0), of_pod))
    return uses


def _use(held: float, expected: int, devices: list[DeviceUtilisation]) -> Use:
    if not devices:
        return Use(held=held)
    is_sliced = ":" in devices[0].device
    known = held if is_sliced else held * min(1.0, len(devices) / expected)
    idle = sum(device.idle_since is not None for device in devices)
    mean = sum(device.percent for device in devices) / len(devices)
    return Use(held=held, known=known, idle=known * idle / len(devices), busy_sum=known * mean)


def use_by_workload(now: datetime) -> dict[str, Use]:
    """Return pod group -> the use of its pods, where some of it is known."""
    uses: dict[str, Use] = defaultdict(Use)
    for group, _node, use in use_by_pod(now).values():
        if group:
            uses[group].add(use)
    return {group: use for group, use in uses.items() if use.known}


def workload_rows(now: datetime) -> QuerySet[WorkloadUtilisation]:
    """Return the workloads of a reading that still counts."""
    return WorkloadUtilisation.objects.filter(measured_at__gt=now - max_age())
