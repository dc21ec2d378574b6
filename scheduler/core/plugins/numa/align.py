"""Pure alignment: which zones of one node serve a request under a Topology Manager policy.

Amounts are mappings by resource name. A result is the chosen zones (their indices) and the amounts taken
from each; None means the kubelet would refuse the pod there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

ZoneAmounts = Mapping[str, float]

# Policies of the kubelet's Topology Manager. A strict one refuses a pod that it cannot align.
SINGLE = "single-numa-node"
RESTRICTED = "restricted"
BEST_EFFORT = "best-effort"
STRICT = (SINGLE, RESTRICTED)
ALIGNING = (*STRICT, BEST_EFFORT)


def choose_zones(
    policy: str,
    allocatable: Sequence[ZoneAmounts],
    available: Sequence[ZoneAmounts],
    request: ZoneAmounts,
) -> tuple[int, ...] | None:
    """Return the zones that serve a request of positive amounts; None if the policy refuses.

    Notes
    -----
    best-effort never refuses: it adds zones while that covers more of the request.
    """
    if not request:
        return ()
    if policy == SINGLE:
        return _lowest_covering(available, request, 1)
    if policy == RESTRICTED:
        widths = {_width(allocatable, name, amount) for name, amount in request.items()}
        if len(widths) != 1:
            return None
        width = widths.pop()
        return None if width is None else _lowest_covering(available, request, width)
    return _greedy(available, request)


def _width(allocatable: Sequence[ZoneAmounts], name: str, amount: float) -> int | None:
    """Return the smallest number of zones that cover an amount; None if all together do not."""
    total = 0.0
    sizes = sorted((zone.get(name, 0.0) for zone in allocatable), reverse=True)
    for count, size in enumerate(sizes, start=1):
        total += size
        if total >= amount:
            return count
    return None


def _lowest_covering(
    available: Sequence[ZoneAmounts], request: ZoneAmounts, width: int
) -> tuple[int, ...] | None:
    for zones in combinations(range(len(available)), width):
        if all(
            sum(available[zone].get(name, 0.0) for zone in zones) >= amount
            for name, amount in request.items()
        ):
            return zones
    return None


def _greedy(available: Sequence[ZoneAmounts], request: ZoneAmounts) -> tuple[int, ...]:
    uncovered = dict(request)
    zones_taken: list[int] = []
    while any(amount > 0 for amount in uncovered.values()):
        best, best_covered = -1, 0.0
        for zone, free in enumerate(available):
            if zone in zones_taken:
                continue
            covered = sum(
                min(amount, max(free.get(name, 0.0), 0.0)) for name, amount in uncovered.items()
            )
            if covered > best_covered:
                best, best_covered = zone, covered
        if best < 0:
            break
        zones_taken.append(best)
        for name, amount in uncovered.items():
            uncovered[name] = amount - min(amount, max(available[best].get(name, 0.0), 0.0))
    return tuple(zones_taken)


def take_from_zones(
    available: Sequence[ZoneAmounts], zones: Sequence[int], request: ZoneAmounts
) -> dict[int, dict[str, float]]:
    """Return zone -> amounts taken there; the chosen zones are emptied one after the other."""
    by_zone: dict[int, dict[str, float]] = {}
    for name, amount in request.items():
        remaining = amount
        for zone in zones:
            taken = min(remaining, max(available[zone].get(name, 0.0), 0.0))
            if taken > 0:
                by_zone.setdefault(zone, {})[name] = taken
                remaining -= taken
    return by_zone
