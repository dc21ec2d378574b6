"""What items show of the utilisation of GPUs; None is unknown, which is not the same as not used."""

from __future__ import annotations

from typing import Any

from django.conf import settings

from kaiweb.items.amounts import Number, rounded, timestamp
from kaiweb.utilisation.models import DeviceUtilisation, Reading, WorkloadUtilisation


def source_item() -> dict[str, Any]:
    """Return where the utilisation comes from: whether it is read, since when, and what is wrong."""
    reading = Reading.objects.first()
    return {
        "idleBelowPercent": settings.KAIWEB_IDLE_BELOW_PERCENT,
        "configured": reading is not None,
        "readAt": timestamp(reading.read_at) if reading else None,
        "devices": reading.devices if reading else 0,
        "error": reading.error if reading else "",
    }


def device_fields(row: DeviceUtilisation | None) -> dict[str, Any]:
    """Return the utilisation of one device, and since when it is idle in the hands of its pod."""
    return {
        "utilisation": _percent(row),
        "idleSince": None if row is None else timestamp(row.idle_since),
    }


def workload_fields(row: WorkloadUtilisation | None) -> dict[str, Any]:
    """Return the mean utilisation of a workload's GPUs, how many are idle, and since when all are."""
    return {
        "gpuUtilisation": _percent(row),
        "gpuIdle": None if row is None else rounded(row.idle),
        "idleSince": None if row is None else timestamp(row.idle_since),
    }


def node_fields(cells: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the mean over the cells of a node whose utilisation is known, and how many of them are idle."""
    percents = [cell["utilisation"] for cell in cells if cell["utilisation"] is not None]
    return {
        "gpuUtilisation": rounded(round(sum(percents) / len(percents), 1)) if percents else None,
        "gpuIdle": sum(cell["idleSince"] is not None for cell in cells) if percents else None,
    }


def _percent(row: DeviceUtilisation | WorkloadUtilisation | None) -> Number | None:
    return None if row is None else rounded(round(row.percent, 1))
