"""What a request consumes of the capacity of a shareable device.

A device may prescribe which amounts of a capacity can be consumed. A requested amount is rounded up to the next
allowed one. The device does not serve a request if there is none, or if it names a capacity that the device lacks.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil

from scheduler.core.cluster.device_inputs import Device, DeviceCapacity, Quantities


def consumption(device: Device, requested: Quantities) -> Quantities | None:
    """Return what a request consumes of each capacity of a device; None if the device cannot serve it."""
    if not requested and not device.is_shareable:
        return ()
    amounts = dict(requested)
    if not amounts.keys() <= device.capacity.keys():
        return None
    consumed: list[tuple[str, Fraction]] = []
    for name, capacity in sorted(device.capacity.items()):
        amount = _rounded(amounts[name], capacity) if name in amounts else _default(capacity)
        if amount > capacity.value or not _is_allowed(amount, capacity):
            return None
        consumed.append((name, amount))
    return tuple(consumed)


def _default(capacity: DeviceCapacity) -> Fraction:
    """Return what a request consumes that does not name the capacity."""
    return capacity.value if capacity.default is None else capacity.default


def _rounded(amount: Fraction, capacity: DeviceCapacity) -> Fraction:
    """Return the smallest allowed amount that is not below `amount`, or `amount` itself if there is none."""
    minimum, step = capacity.minimum, capacity.step
    if minimum is None:
        return next((valid for valid in capacity.valid_values if amount <= valid), amount)
    if amount < minimum:
        return minimum
    if not step:
        return amount
    return minimum + ceil((amount - minimum) / step) * step


def _is_allowed(amount: Fraction, capacity: DeviceCapacity) -> bool:
    if amount == capacity.default:
        return True
    if capacity.valid_values:
        return amount in capacity.valid_values
    if capacity.maximum is not None and amount > capacity.maximum:
        return False
    return not capacity.step or (amount - (capacity.minimum or 0)) % capacity.step == 0
