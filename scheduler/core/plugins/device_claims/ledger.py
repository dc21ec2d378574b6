"""The session's own copy of the claims: their allocations, the pods that reserve them, the devices held.

Every change goes through the journal, so that a rewound statement gives devices back.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from scheduler.core.cluster.device_inputs import (
    EXTENDED_CLAIM,
    AllocatedDevice,
    ClaimAllocation,
    DeviceClaim,
    DeviceId,
)
from scheduler.core.cluster.journal import Journal
from scheduler.core.plugins.device_claims.allocator.in_use import NO_SHARES, Shares

ClaimKey = tuple[str, str]  # namespace, name


class ClaimLedger:
    """Claims by namespace and name; those created for extended resources by the uid of their pod.

    Attributes
    ----------
    taken : the devices that claims hold as a whole
    shares : the parts that claims hold of shareable devices
    """

    def __init__(self, claims: Iterable[DeviceClaim], journal: Journal) -> None:
        self._journal = journal
        self.claims: dict[ClaimKey, DeviceClaim] = {_key(claim): claim for claim in claims}
        self._allocation: dict[ClaimKey, ClaimAllocation] = {}
        #: Claim -> uids of the pods it is reserved for; an ordered set.
        self._reserved: dict[ClaimKey, dict[str, None]] = {}
        self.taken: dict[DeviceId, ClaimKey] = {}
        self.shares: dict[DeviceId, Shares] = {}
        for key, claim in self.claims.items():
            self._reserved[key] = dict.fromkeys(claim.reserved_for)
            if claim.allocation is not None:
                self.assume(key, claim.allocation)

    def assume(self, key: ClaimKey, allocation: ClaimAllocation) -> None:
        """Adopt an allocation that exists already, outside any statement."""
        if key in self._allocation:
            return
        self._allocation[key] = allocation
        for device in allocation.devices:
            if device.share:
                shares = self.shares.get(device.id, NO_SHARES)
                self.shares[device.id] = shares.plus(device.consumed)
            elif not device.is_admin:
                self.taken[device.id] = key

    def assume_reserved(self, key: ClaimKey, uid: str) -> None:
        """Adopt a reservation that exists already, outside any statement."""
        if key in self._reserved:
            self._reserved[key][uid] = None

    def allocation(self, key: ClaimKey) -> ClaimAllocation | None:
        """Return the allocation of a claim."""
        return self._allocation.get(key)

    def consumers(self, key: ClaimKey) -> dict[str, None]:
        """Return the uids of the pods that have reserved a claim."""
        return self._reserved.get(key, {})

    def allocate(self, key: ClaimKey, allocation: ClaimAllocation) -> None:
        """Allocate devices to a claim."""
        self._journal.insert(self._allocation, key, allocation)
        for device in allocation.devices:
            if device.share:
                shares = self.shares.get(device.id, NO_SHARES)
                self._journal.insert(self.shares, device.id, shares.plus(device.consumed))
            elif not device.is_admin:
                self._journal.insert(self.taken, device.id, key)

    def reserve(self, key: ClaimKey, uid: str) -> None:
        """Reserve a claim for a pod."""
        consumers = self._reserved[key]
        if uid not in consumers:
            self._journal.insert(consumers, uid, None)

    def unreserve(self, key: ClaimKey, uid: str) -> None:
        """Drop the reservation of a pod; the last one frees the claim's devices."""
        consumers = self._reserved[key]
        if uid in consumers:
            self._journal.remove(consumers, uid)
        if not consumers:
            self.free(key)

    def free(self, key: ClaimKey) -> None:
        """Free the devices of a claim, if it has any."""
        allocation = self._allocation.get(key)
        if allocation is None:
            return
        self._journal.remove(self._allocation, key)
        for device in allocation.devices:
            if device.share:
                self._free_share(device)
            elif not device.is_admin and self.taken.get(device.id) == key:
                self._journal.remove(self.taken, device.id)

    def _free_share(self, device: AllocatedDevice) -> None:
        shares = self.shares[device.id].plus(device.consumed, -1)
        if shares.count:
            self._journal.insert(self.shares, device.id, shares)
        else:
            self._journal.remove(self.shares, device.id)

    def current(self) -> tuple[DeviceClaim, ...]:
        """Return all claims in their present state."""
        return tuple(
            replace(
                claim,
                allocation=self._allocation.get(key),
                reserved_for=tuple(self._reserved[key]),
            )
            for key, claim in self.claims.items()
        )


def extended_key(uid: str) -> ClaimKey:
    """Return the key of the claim created for a pod."""
    return (uid, EXTENDED_CLAIM)


def _key(claim: DeviceClaim) -> ClaimKey:
    if claim.is_extended_resource and claim.owner_uid:
        return extended_key(claim.owner_uid)
    return (claim.namespace, claim.name)
