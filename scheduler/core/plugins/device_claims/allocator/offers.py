"""Which devices of a node a request accepts, whoever holds them: classes, selectors, taints, capacities."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from scheduler.core.cluster.constraints import Taint
from scheduler.core.cluster.device_inputs import (
    ALL,
    Device,
    DeviceClass,
    DeviceId,
    DeviceInputs,
    DeviceRequest,
    DeviceToleration,
    Quantities,
)
from scheduler.core.cluster.matching import REPELLING
from scheduler.core.plugins.device_claims.allocator.capacity import consumption
from scheduler.core.plugins.device_claims.allocator.pools import Candidate, NodePool, PoolTable


class RefusalError(Exception):
    """A request cannot be served on a node, for a reason that a person should read."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A device that a request accepts.

    Attributes
    ----------
    consumed : what the request would take of its capacity, if it is shareable
    is_repelled : it has a taint that the request does not tolerate
    """

    candidate: Candidate
    consumed: Quantities = ()
    is_repelled: bool = False


@dataclass(frozen=True, slots=True)
class Option:
    """A request, or one of its alternatives, with the devices of a node that it accepts.

    Attributes
    ----------
    count : how many of them it must get
    is_all : it must get all of them
    is_plain : no device can be shared or draws from counters, so that they do not depend on each other
    """

    request: DeviceRequest
    offers: tuple[Offer, ...]
    count: int
    is_all: bool
    is_plain: bool = False

    @property
    def may_repeat(self) -> bool:
        """Return whether one device may serve the request more than once."""
        return any(offer.candidate.device.is_shareable for offer in self.offers)


class Offers:
    """The offers for requests on nodes; equal requests share them."""

    def __init__(self, inputs: DeviceInputs, pools: PoolTable) -> None:
        self._classes = {device_class.name: device_class for device_class in inputs.classes}
        self._matching = inputs.matching
        self._pools = pools
        #: All offers, those without taints that repel the request, and whether all are plain.
        self._known: dict[
            tuple[object, ...], tuple[tuple[Offer, ...], tuple[Offer, ...], bool]
        ] = {}

    def device_class(self, name: str) -> DeviceClass | None:
        """Return a device class by name."""
        return self._classes.get(name)

    def has_problem_on(self, node: int) -> bool:
        """Return whether a pool of the node contradicts itself, so that nothing is taken from it."""
        return any(part.problem for part in self._pools.on(node))

    def options(self, request: DeviceRequest, node: int) -> list[Option]:
        """Return the ways to serve a request on a node, best first.

        Raises
        ------
        RefusalError : all devices are requested, and a pool does not show all of its devices
        """
        return [self._option(item, node) for item in request.alternatives or (request,)]

    def _option(self, request: DeviceRequest, node: int) -> Option:
        pools = self._pools.on(node)
        is_all = request.mode == ALL
        if is_all:
            _refuse_unclear(request, pools)
        key = (
            node,
            request.device_class,
            request.selectors,
            request.tolerations,
            request.capacity,
        )
        known = self._known.get(key)
        if known is None:
            every = tuple(self._offers(request, pools))
            tolerated = tuple(offer for offer in every if not offer.is_repelled)
            known = (every, tolerated, not any(_depends(offer.candidate.device) for offer in every))
            self._known[key] = known
        offers = known[0] if is_all else known[1]
        count = len(offers) if is_all else int(request.count)
        return Option(request, offers, count, is_all, known[2])

    def _offers(self, request: DeviceRequest, pools: Iterable[NodePool]) -> Iterable[Offer]:
        for part in pools:
            for candidate in part.candidates:
                device = candidate.device
                if device.has_binding_conditions or not self._matches(request, candidate.id):
                    continue
                consumed = consumption(device, request.capacity)
                if consumed is not None:
                    yield Offer(candidate, consumed, _repels(device, request.tolerations))

    def _matches(self, request: DeviceRequest, device: DeviceId) -> bool:
        device_class = self._classes.get(request.device_class)
        if device_class is None:
            return False
        selectors = (*device_class.selectors, *request.selectors)
        if not selectors or self._matching is None:
            return True
        return all((text, *device) in self._matching for text in selectors)


def _refuse_unclear(request: DeviceRequest, pools: Iterable[NodePool]) -> None:
    for part in pools:
        if part.pool.is_incomplete or part.problem:
            state = (part.problem and f"invalid: {part.problem}") or "being updated"
            raise RefusalError(
                f"request {request.name} asks for all devices, but resource pool "
                f"{part.pool.name} is currently {state}"
            )


def _depends(device: Device) -> bool:
    """Return whether a device has less left when another one is taken, or may be taken again."""
    return device.is_shareable or bool(device.draws)


def _repels(device: Device, tolerations: tuple[DeviceToleration, ...]) -> bool:
    return any(
        taint.effect in REPELLING and not any(_tolerates(item, taint) for item in tolerations)
        for taint in device.taints
    )


def _tolerates(toleration: DeviceToleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in ("", "Equal") and toleration.value == taint.value
