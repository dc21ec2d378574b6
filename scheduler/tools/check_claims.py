"""Check that each device belongs to one resource claim."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from kube.errors import NotFoundError
from kube.gateway import Gateway
from kube.objects.devices import ResourceClaim
from kube.resources import RESOURCE_CLAIMS

Device = tuple[str, str, str]  # driver, pool, device


def read_claims(gateway: Gateway) -> tuple[ResourceClaim, ...]:
    """Return all claims; none where the server does not know the kind."""
    try:
        return tuple(gateway.list(RESOURCE_CLAIMS, as_type=ResourceClaim).items)
    except NotFoundError:
        return ()


def devices_given_twice(claims: Iterable[ResourceClaim]) -> Iterator[tuple[Device, list[str]]]:
    """Yield each device that several claims hold, with their names."""
    holders: dict[Device, list[str]] = defaultdict(list)
    for claim in claims:
        for device in _devices(claim):
            holders[device].append(claim.key)
    for device, names in sorted(holders.items()):
        if len(names) > 1:
            yield device, sorted(names)


def _devices(claim: ResourceClaim) -> set[Device]:
    """Return the devices that a claim holds exclusively, so without admin access and shared ones."""
    results = ((claim.status.allocation or {}).get("devices") or {}).get("results") or ()
    return {
        (str(result.get("driver", "")), str(result.get("pool", "")), str(result.get("device", "")))
        for result in results
        if not result.get("adminAccess") and not result.get("shareID")
    }
