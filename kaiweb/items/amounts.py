"""Numbers as the API shows them: in base units, integers where possible, else three decimals.

In the custom resource memory counts 10^6 bytes and -1 means unlimited; here it is bytes and "unlimited".
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from kube.values.times import format_milli_time
from queues.tree.unlimited import UNLIMITED, UNLIMITED_WORD

GPU, CPU, MEMORY = "gpu", "cpuMilli", "memoryBytes"
# resource of the custom resource -> (name here, factor)
UNITS: Mapping[str, tuple[str, int]] = {
    "gpu": (GPU, 1),
    "cpu": (CPU, 1),
    "memory": (MEMORY, 1_000_000),
}
DECIMAL_PLACES = 3

Number = int | float


def rounded(value: float) -> Number:
    """Return a number with at most three decimals, an integer when it is one."""
    number = round(value, DECIMAL_PLACES)
    return int(number) if number == int(number) else number


def amounts(row: Any, prefix: str) -> dict[str, Number]:
    """Return the amounts in the columns of a prefix, e.g. `allocated_gpu`, `allocated_cpu`, `allocated_memory`."""
    return {
        name: rounded(getattr(row, f"{prefix}_{resource}"))
        for resource, (name, _factor) in UNITS.items()
    }


def bounds(row: Any, prefix: str) -> dict[str, Number | str]:
    """Return the quota, limit or weight (the prefix) of each resource for which one is set."""
    amounts_by_name: dict[str, Number | str] = {}
    for resource, (name, factor) in UNITS.items():
        value = getattr(row, f"{prefix}_{resource}")
        if value == UNLIMITED and prefix != "weight":
            amounts_by_name[name] = UNLIMITED_WORD
        elif value is not None:
            # A weight is a plain number, whatever the unit of its resource.
            amounts_by_name[name] = rounded(value * (1 if prefix == "weight" else factor))
    return amounts_by_name


def timestamp(value: datetime | None) -> str | None:
    """Return RFC 3339 in UTC with milliseconds."""
    return None if value is None else format_milli_time(value)
