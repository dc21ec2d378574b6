"""From the grants of a pod to its amounts in each NUMA zone. What cannot be assigned to one zone is left out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from binder.numa_exporter.allocations import AllocationError, PodGrant

CPU = "cpu"


def observed_placement(grant: PodGrant, zone_of_cpu: Mapping[int, int]) -> str:
    """Return the annotation's text: a JSON list of zones with amounts, sorted; "" if nothing can be assigned."""
    amounts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for zone, resource, amount in _parts(grant, zone_of_cpu):
        amounts[f"node-{zone}"][resource] += amount
    zones = [
        {"zone": zone, "amount": {name: str(by_name[name]) for name in sorted(by_name)}}
        for zone, by_name in sorted(amounts.items())
    ]
    return msgspec.json.encode(zones).decode() if zones else ""


def _parts(grant: PodGrant, zone_of_cpu: Mapping[int, int]) -> Iterator[tuple[int, str, int]]:
    """Yield (zone, resource, amount)."""
    for device in grant.devices:
        if len(device.zones) == 1:
            yield device.zones[0], device.resource, len(device.ids)
    for cpu in grant.cpus:
        if cpu in zone_of_cpu:
            yield zone_of_cpu[cpu], CPU, 1
    for block in grant.memory:
        if len(block.zones) == 1:
            yield block.zones[0], block.kind, block.size


def cpu_zones(sysfs: Path) -> Mapping[int, int]:
    """Return the NUMA zone of each CPU of the node, as the kernel lists them.

    Raises
    ------
    AllocationError : a list cannot be read
    """
    zones: dict[int, int] = {}
    for folder in sorted((sysfs / "devices" / "system" / "node").glob("node[0-9]*")):
        file = folder / "cpulist"
        try:
            zone = int(folder.name.removeprefix("node"))
            zones |= dict.fromkeys(_cpus(file.read_text()), zone)
        except (OSError, ValueError) as error:
            raise AllocationError(f"{file}: {error}") from error
    return zones


def _cpus(text: str) -> Iterator[int]:
    """Yield the ids of a list such as `0-3,8`."""
    for part in text.strip().split(","):
        if part:
            first, _, last = part.partition("-")
            yield from range(int(first), int(last or first) + 1)
