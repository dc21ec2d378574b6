"""Constraints over the devices of one claim: equal or distinct values of an attribute.

A device that breaks a constraint beside the devices chosen so far also breaks it beside any more of them. So the
search can turn back at the first device that breaks a constraint.
"""

from __future__ import annotations

from scheduler.core.cluster.device_inputs import (
    Attribute,
    ConstraintKind,
    DeviceConstraint,
    DeviceRequest,
)
from scheduler.core.plugins.device_claims.allocator.pools import Candidate

#: The type is a part of the value: 1, true and the version "1" all differ.
_Value = tuple[type, Attribute]


class Constraint:
    """The values that the chosen devices have, and whether another device fits them."""

    __slots__ = ("_constraint", "_values")

    def __init__(self, constraint: DeviceConstraint) -> None:
        self._constraint = constraint
        self._values: list[_Value] = []

    def accepts(self, request: DeviceRequest, candidate: Candidate) -> bool:
        """Return whether a device may be chosen for a request beside those chosen so far."""
        if not self._concerns(request):
            return True
        value = _value(candidate, self._constraint.attribute)
        if value is None:
            return False
        if self._constraint.kind is ConstraintKind.MATCH:
            return not self._values or value == self._values[0]
        return value not in self._values

    def add(self, request: DeviceRequest, candidate: Candidate) -> None:
        """Count a chosen device, which was accepted."""
        value = _value(candidate, self._constraint.attribute)
        if self._concerns(request) and value is not None:
            self._values.append(value)

    def remove_last(self, request: DeviceRequest) -> None:
        """Forget the device that was added last."""
        if self._concerns(request):
            self._values.pop()

    def state(self) -> object:
        """Return what decides which further devices are accepted."""
        if self._constraint.kind is ConstraintKind.MATCH:
            return self._values[0] if self._values else None
        return frozenset(self._values)

    def _concerns(self, request: DeviceRequest) -> bool:
        names = self._constraint.requests
        return not names or request.name in names or request.name.partition("/")[0] in names


def _value(candidate: Candidate, attribute: str) -> _Value | None:
    """Return the value of a device's attribute; its driver may have published it without its own name as domain."""
    attributes = candidate.device.attributes
    value = attributes.get(attribute)
    if value is None:
        domain, _, name = attribute.partition("/")
        if domain == candidate.id[0]:
            value = attributes.get(name)
    return None if value is None else (type(value), value)
