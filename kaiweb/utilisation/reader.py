"""Take a reading: ask Prometheus, keep what belongs to nodes and pods of the mirror, and note who is idle since when."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from django.conf import settings
from django.db import transaction

from kaiweb.utilisation import course, current, dcgm
from kaiweb.utilisation.models import DeviceUtilisation, Reading, WorkloadStep, WorkloadUtilisation
from kube.errors import KubeError, NotFoundError
from kube.gateway import Gateway
from kube.objects.config import Config
from kube.objects.pod import FINISHED_PHASES
from kube.resources import CONFIGS
from queues import live
from queues.models import Node, Pod
from scheduler.settings.shard import CONFIG_NAME
from scheduler.settings.usage import prometheus_address

log = logging.getLogger(__name__)

#: Clients hear of a device when its utilisation moved to another part of this many percent, or became idle.
SHOWN_STEP = 10


@dataclass(frozen=True, slots=True)
class Source:
    """Where the series are; an empty address if no Prometheus is known."""

    address: str
    token: str = ""


def source(gateway: Gateway) -> Source:
    """Return the Prometheus of the settings, else that of the Config.

    The token is for the address of the settings only: who may edit the Config must not learn it.

    Raises
    ------
    dcgm.ReadError : the file with the token, or the Config, cannot be read
    """
    if settings.KAIWEB_PROMETHEUS_URL:
        return Source(settings.KAIWEB_PROMETHEUS_URL, _token())
    try:
        config = gateway.get(CONFIGS, CONFIG_NAME, as_type=Config)
    except NotFoundError:
        return Source("")
    except KubeError as error:
        raise dcgm.ReadError(f"Config {CONFIG_NAME} cannot be read: {error}") from error
    return Source(prometheus_address(config))


def _token() -> str:
    if not settings.KAIWEB_PROMETHEUS_TOKEN_FILE:
        return ""
    try:
        token = Path(settings.KAIWEB_PROMETHEUS_TOKEN_FILE).read_text("utf-8").strip()
    except (OSError, ValueError) as error:
        raise dcgm.ReadError("KAIWEB_PROMETHEUS_TOKEN_FILE: expected a readable file") from error
    if not token.isascii() or not token.isprintable():
        raise dcgm.ReadError("KAIWEB_PROMETHEUS_TOKEN_FILE: expected a token of one line")
    return token


def read(gateway: Gateway, now: datetime) -> int:
    """Take a reading; return of how many devices the utilisation is known now.

    A failure is logged once and noted; what was read before stays until it is too old to be shown.
    """
    samples: list[dcgm.DeviceSample] = []
    try:
        prometheus = source(gateway)
        if prometheus.address:
            samples = dcgm.read_samples(prometheus.address, prometheus.token)
    except dcgm.ReadError as error:
        _note_failure(str(error), now)
        return 0
    if not prometheus.address and not _has_rows():
        return 0
    devices = _devices(samples, now)
    with transaction.atomic():
        _write(devices, now)
        if prometheus.address:
            state = {"tried_at": now, "read_at": now, "error": "", "devices": len(devices)}
            Reading.objects.update_or_create(only=True, defaults=state)
        else:
            Reading.objects.all().delete()
        course.note(now)
    return len(devices)


def _has_rows() -> bool:
    """Return whether an earlier reading left something to take back, or a series that grows too old."""
    return Reading.objects.exists() or WorkloadStep.objects.exists()


def _note_failure(error: str, now: datetime) -> None:
    last = Reading.objects.first()
    if last is None or last.error != error:
        log.warning("the utilisation of GPUs cannot be read, will retry: %s", error)
    Reading.objects.update_or_create(only=True, defaults={"tried_at": now, "error": error})


def _devices(samples: Iterable[dcgm.DeviceSample], now: datetime) -> list[DeviceUtilisation]:
    """Return rows for the samples of nodes that exist; a pod counts if it runs there and wants a GPU."""
    nodes = frozenset(Node.objects.order_by().values_list("name", flat=True))
    with_gpus = Pod.objects.exclude(node="").exclude(phase__in=FINISHED_PHASES)
    holders = with_gpus.exclude(gpu_kind="none", reserves_group="").order_by()
    node_of_pod = dict(holders.values_list("key", "node"))
    before = {
        (row.node, row.device, row.pod): row.idle_since for row in DeviceUtilisation.objects.all()
    }
    rows: dict[tuple[str, str, str], DeviceUtilisation] = {}
    for sample in samples:
        node = next((host for host in sample.hosts if host in nodes), None)
        if node is None:
            continue
        pod = next((pod for pod in sample.pods if node_of_pod.get(pod) == node), "")
        key = (node, sample.device, pod)
        if key in rows and rows[key].percent >= sample.percent:
            continue
        is_idle = bool(pod) and sample.percent < settings.KAIWEB_IDLE_BELOW_PERCENT
        rows[key] = DeviceUtilisation(
            node=node,
            device=sample.device,
            uuid=sample.uuid,
            pod=pod,
            percent=sample.percent,
            measured_at=now,
            idle_since=(before.get(key) or now) if is_idle else None,
        )
    return _without_superseded(rows)


def _without_superseded(
    rows: Mapping[tuple[str, str, str], DeviceUtilisation],
) -> list[DeviceUtilisation]:
    """Leave out series without a pod, or of a pod that has ended, of a device that a pod holds now."""
    held = {(node, device) for node, device, pod in rows if pod}
    return [row for (node, device, pod), row in rows.items() if pod or (node, device) not in held]


def _write(devices: list[DeviceUtilisation], now: datetime) -> None:
    """Replace the last reading, and tell clients which nodes and workloads look different."""
    shown_devices = _shown((row.node, row) for row in DeviceUtilisation.objects.all())
    shown_workloads = _shown((row.workload, row) for row in WorkloadUtilisation.objects.all())
    since = dict(
        WorkloadUtilisation.objects.filter(idle_since__isnull=False).values_list(
            "workload", "idle_since"
        )
    )
    DeviceUtilisation.objects.all().delete()
    DeviceUtilisation.objects.bulk_create(devices, batch_size=1000)
    workloads = [
        WorkloadUtilisation(
            workload=workload,
            percent=use.percent,
            known=use.known,
            idle=use.idle,
            measured_at=now,
            idle_since=(since.get(workload) or now) if use.is_idle else None,
        )
        for workload, use in current.use_by_workload(now).items()
    ]
    WorkloadUtilisation.objects.all().delete()
    WorkloadUtilisation.objects.bulk_create(workloads, batch_size=1000)
    live.record("node", _changed(shown_devices, _shown((row.node, row) for row in devices)))
    changed = _changed(shown_workloads, _shown((row.workload, row) for row in workloads))
    live.record("workload", changed)


Shown = dict[str, list[tuple[str, int, bool]]]


def _shown(rows: Iterable[tuple[str, DeviceUtilisation | WorkloadUtilisation]]) -> Shown:
    """Return what clients see of each node or workload, roughly."""
    shown: Shown = {}
    for key, row in rows:
        place = f"{row.device} {row.pod}" if isinstance(row, DeviceUtilisation) else ""
        look = (place, round(row.percent / SHOWN_STEP), row.idle_since is not None)
        shown.setdefault(key, []).append(look)
    return shown


def _changed(before: Shown, after: Shown) -> list[str]:
    return [
        key
        for key in {*before, *after}
        if sorted(before.get(key, [])) != sorted(after.get(key, []))
    ]
