"""Which devices of a node a request accepts, whoever holds them: classes, selectors, taints, capacities."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

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
    is_plain : no device can be shared or draws from counters, so that taking one never affects another
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


class _KnownOffers(NamedTuple):
    """The offers for equal requests on one node: all, those whose taints are tolerated; whether all are plain."""

    all: tuple[Offer, ...]
    tolerated: tuple[Offer, ...]
    is_plain: bool


class Offers:
    """The offers for requests on nodes; equal requests share them."""

    def __init__(self, inputs: DeviceInputs, pools: PoolTable) -> None:
        self._classes = {device_class.name: device_class for device_class in inputs.classes}
        self._matching = inputs.matching
        self._pools = pools
        #: The key is the node with what decides about offers in a request.
        self._known: dict[tuple[object, ...], _KnownOffers] = {}

    def device_class(self, name: str) -> DeviceClass | None:
        """Return a device class by name."""
        return self._classes.get(name)

    def has_problem_on(self, node: int) -> bool:
        """Return whether a pool of the node contradicts itself, so that nothing is taken from it."""
        return any(node_pool.problem for node_pool in self._pools.on(node))

    def options(self, request: DeviceRequest, node: int) -> list[Option]:
        """Return the ways to serve a request on a node, best first.

        Raises
        ------
        RefusalError : all devices are requested, and a pool does not show all of its devices
        """
        return [self._option(candidate, node) for candidate in request.alternatives or (request,)]

    def _option(self, request: DeviceRequest, node: int) -> Option:
        pools = self._pools.on(node)
        is_all = request.mode == ALL
        if is_all:
            _refuse_unclear_pools(request, pools)
        key = (
            node,
            request.device_class,
            request.selectors,
            request.tolerations,
            request.capacity,
        )
        known_offers = self._known.get(key)
        if known_offers is None:
            # Devices that pods need not wait for come first.
            offers = tuple(
                sorted(
                    self._offers(request, pools),
                    key=lambda offer: bool(offer.candidate.device.binding_conditions),
                )
            )
            tolerated = tuple(offer for offer in offers if not offer.is_repelled)
            is_plain = not any(_affects_offers(offer.candidate.device) for offer in offers)
            known_offers = _KnownOffers(offers, tolerated, is_plain)
            self._known[key] = known_offers
        offers = known_offers.all if is_all else known_offers.tolerated
        count = len(offers) if is_all else int(request.count)
        return Option(request, offers, count, is_all, known_offers.is_plain)

    def _offers(self, request: DeviceRequest, pools: Iterable[NodePool]) -> Iterable[Offer]:
        for node_pool in pools:
            for candidate in node_pool.candidates:
                device = candidate.device
                if not self._matches(request, candidate.id):
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
        return all((selector, *device) in self._matching for selector in selectors)


def _refuse_unclear_pools(request: DeviceRequest, pools: Iterable[NodePool]) -> None:
    """Refuse a request for all devices if a pool does not show all of its devices."""
    for node_pool in pools:
        if node_pool.pool.is_incomplete or node_pool.problem:
            problem = node_pool.problem
            state = f"invalid: {problem}" if problem else "being updated"
            raise RefusalError(
                f"request {request.name} asks for all devices, but resource pool "
                f"{node_pool.pool.name} is currently {state}"
            )


def _affects_offers(device: Device) -> bool:
    """Return whether taking the device changes what others have left, or it can be taken again."""
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
