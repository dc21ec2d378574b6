"""What is left of devices, of their capacities, and of the counters that devices of a pool share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from scheduler.core.cluster.device_inputs import AllocatedDevice, DeviceId, Quantities
from scheduler.core.plugins.device_claims.allocator.pools import Candidate, Pool


@dataclass(frozen=True, slots=True)
class Shares:
    """The parts of one device that claims hold: how many, and what they consume together."""

    count: int = 0
    consumed: Quantities = ()

    def plus(self, consumed: Quantities, sign: int = 1) -> Shares:
        """Return the shares with another part added or, for sign -1, taken away."""
        amounts = dict(self.consumed)
        for name, amount in consumed:
            amounts[name] = amounts.get(name, Fraction(0)) + sign * amount
        return Shares(self.count + sign, tuple(sorted(amounts.items())))


NO_SHARES = Shares()


class Holdings(Protocol):
    """What all claims hold: whole devices, and shares of devices."""

    @property
    def taken(self) -> Mapping[DeviceId, object]:
        """Return the devices held as a whole."""
        ...

    @property
    def shares(self) -> Mapping[DeviceId, Shares]:
        """Return the shares of shareable devices."""
        ...


class InUse:
    """What the claims of the cluster hold, and what the claims being served have chosen so far.

    Parameters
    ----------
    leaving : devices that a claim holds but gives up with this allocation
    """

    __slots__ = ("_chosen", "_drawn", "_holdings", "_leaving", "_shares")

    def __init__(self, holdings: Holdings, leaving: Iterable[AllocatedDevice] = ()) -> None:
        self._holdings = holdings
        self._leaving: set[DeviceId] = set()
        self._chosen: set[DeviceId] = set()
        #: Device -> what its consumers use of its capacity.
        self._shares: dict[DeviceId, Shares] = {}
        #: Per pool (counter set, counter) -> amount drawn by devices in use; filled when first needed.
        self._drawn: dict[Pool, dict[tuple[str, str], Fraction]] = {}
        for device in leaving:
            self._release(device)

    def hold(self, device: AllocatedDevice) -> None:
        """Count a device that another claim of the task gets."""
        if device.is_admin:
            return
        if device.share:
            self._shares[device.id] = self._shares_of(device.id).plus(device.consumed)
        else:
            self._chosen.add(device.id)

    def is_free(self, candidate: Candidate, consumed: Quantities) -> bool:
        """Return whether a device is free; for a shareable one, whether `consumed` of its capacity is."""
        if self.is_held(candidate.id):
            return False
        shares = self._shares_of(candidate.id)
        if candidate.device.is_shareable:
            amounts = dict(shares.consumed)
            capacity = candidate.device.capacity
            if any(
                amounts.get(name, 0) + amount > capacity[name].value for name, amount in consumed
            ):
                return False
        elif shares.count:
            return False
        return bool(shares.count) or self._has_counters(candidate)

    def is_held(self, device: DeviceId) -> bool:
        """Return whether a device is held as a whole."""
        if device in self._chosen:
            return True
        return device in self._holdings.taken and device not in self._leaving

    def choose(self, candidate: Candidate, consumed: Quantities) -> Callable[[], None]:
        """Take a device, or a part of a shareable one; return a function that gives it back."""
        identity = candidate.id
        shares = self._shares_of(identity)
        has_drawn = not shares.count and self._draw(candidate, 1)
        if not candidate.device.is_shareable:
            self._chosen.add(identity)

            def give_back() -> None:
                self._chosen.discard(identity)
                if has_drawn:
                    self._draw(candidate, -1)

            return give_back
        earlier = self._shares.get(identity)
        self._shares[identity] = shares.plus(consumed)

        def give_part_back() -> None:
            if earlier is None:
                del self._shares[identity]
            else:
                self._shares[identity] = earlier
            if has_drawn:
                self._draw(candidate, -1)

        return give_part_back

    def state(self) -> object:
        """Return what the claims being served hold; equal for equal choices in whatever order they were made."""
        return (frozenset(self._chosen), frozenset(self._shares.items()))

    def _release(self, device: AllocatedDevice) -> None:
        """Count a device as free that a claim gives up."""
        if device.share:
            self._shares[device.id] = self._shares_of(device.id).plus(device.consumed, -1)
        elif not device.is_admin:
            self._leaving.add(device.id)

    def _shares_of(self, device: DeviceId) -> Shares:
        shares = self._shares.get(device)
        return self._holdings.shares.get(device, NO_SHARES) if shares is None else shares

    def _has_counters(self, candidate: Candidate) -> bool:
        """Return whether the counters of the pool have left what a device draws."""
        if not candidate.device.draws:
            return True
        drawn, total = self._drawn_from(candidate.pool), candidate.pool.counters
        return all(
            drawn.get((part.name, counter), 0) + amount <= total[part.name, counter]
            for part in candidate.device.draws
            for counter, amount in part.counters
        )

    def _draw(self, candidate: Candidate, sign: int) -> bool:
        """Add (sign 1) or subtract (-1) what a device draws from counters; return whether it draws anything."""
        if not candidate.device.draws:
            return False
        _add(self._drawn_from(candidate.pool), candidate, sign)
        return True

    def _drawn_from(self, pool: Pool) -> dict[tuple[str, str], Fraction]:
        """Return what devices in use draw: (counter set, counter) -> amount."""
        drawn = self._drawn.get(pool)
        if drawn is None:
            drawn = self._drawn[pool] = {}
            for candidate in pool.drawing:
                if self.is_held(candidate.id) or self._shares_of(candidate.id).count:
                    _add(drawn, candidate, 1)
        return drawn


def _add(drawn: dict[tuple[str, str], Fraction], candidate: Candidate, sign: int) -> None:
    for part in candidate.device.draws:
        for counter, amount in part.counters:
            key = (part.name, counter)
            drawn[key] = drawn.get(key, Fraction(0)) + sign * amount
