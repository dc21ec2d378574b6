"""The allocator: all claims of a task on one node, or a reason why not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from scheduler.core.cluster.device_inputs import (
    AllocatedDevice,
    ClaimAllocation,
    DeviceClaim,
    DeviceClass,
    DeviceInputs,
)
from scheduler.core.cluster.inputs import NodeInput
from scheduler.core.plugins.device_claims.allocator.in_use import Holdings, InUse
from scheduler.core.plugins.device_claims.allocator.offers import Offers, Option, RefusalError
from scheduler.core.plugins.device_claims.allocator.pools import PoolTable
from scheduler.core.plugins.device_claims.allocator.result import allocation_of
from scheduler.core.plugins.device_claims.allocator.search import (
    MAX_DEVICES,
    Search,
    SearchOverrunError,
)


@dataclass(frozen=True, slots=True)
class Refusal:
    """The claims cannot be served on a node.

    Attributes
    ----------
    cause : why, for people; empty if too few devices are free
    is_overrun : the search was ended because it took too many steps
    """

    cause: str = ""
    is_overrun: bool = False


NOT_ENOUGH = Refusal()


class Allocator:
    """Chooses among the devices of the cluster; what claims hold already is a parameter of each call."""

    def __init__(self, inputs: DeviceInputs, nodes: Sequence[NodeInput]) -> None:
        self._node_names = [node.name for node in nodes]
        self._pools = PoolTable(inputs.slices, nodes)
        self._offers = Offers(inputs, self._pools)

    def device_class(self, name: str) -> DeviceClass | None:
        """Return a device class by name."""
        return self._offers.device_class(name)

    def is_free(
        self,
        allocation: ClaimAllocation,
        node: int,
        holdings: Holdings,
        *,
        leaving: Iterable[AllocatedDevice] = (),
    ) -> bool:
        """Return whether an allocation made earlier can be held again on its node, besides all others."""
        in_use = InUse(holdings, leaving)
        for device in allocation.devices:
            candidate = self._pools.candidate(node, device.id)
            if device.is_admin:
                continue
            if candidate is None:  # its driver does not publish it any more
                if in_use.is_held(device.id):
                    return False
            elif not in_use.is_free(candidate, device.consumed):
                return False
            in_use.hold(device)
        return True

    def allocate(
        self,
        claims: Sequence[DeviceClaim],
        node: int,
        holdings: Holdings,
        *,
        leaving: Iterable[AllocatedDevice] = (),
        beside: Iterable[AllocatedDevice] = (),
    ) -> list[ClaimAllocation] | Refusal:
        """Choose devices of a node for all requests of some claims.

        Parameters
        ----------
        holdings : what all claims hold
        leaving : devices that these claims give up with the new allocation
        beside : devices that other claims of the task get

        Returns
        -------
        the allocations in the order of the claims, or why the node cannot serve them
        """
        in_use = InUse(holdings, leaving)
        for device in beside:
            in_use.hold(device)
        try:
            options = [
                [
                    [_without_exhausted(option, in_use) for option in options]
                    for options in (
                        self._offers.options(request, node) for request in claim.requests
                    )
                ]
                for claim in claims
            ]
            for claim, options_of_claim in zip(claims, options, strict=True):
                device_count = sum(
                    min(option.count for option in options_of_request)
                    for options_of_request in options_of_claim
                )
                if device_count > MAX_DEVICES:
                    return Refusal(
                        f"claim {claim.namespace}/{claim.name}: number of requested devices "
                        f"{device_count} exceeds the claim limit of {MAX_DEVICES}"
                    )
            picks = Search(claims, options, in_use).run()
        except RefusalError as refusal:
            return Refusal(str(refusal), isinstance(refusal, SearchOverrunError))
        if picks is None:
            has_problem = self._offers.has_problem_on(node)
            return Refusal("invalid resource pools were encountered") if has_problem else NOT_ENOUGH
        return [
            allocation_of(claim, picks_of_claim, self._node_names[node], self._offers)
            for claim, picks_of_claim in zip(claims, picks, strict=True)
        ]


def _without_exhausted(option: Option, in_use: InUse) -> Option:
    """Return an option that needs all devices without the shareable ones that have too little capacity left."""
    if not option.is_all or not option.may_repeat:
        return option
    offers = tuple(
        offer
        for offer in option.offers
        if not offer.candidate.device.is_shareable
        or in_use.is_free(offer.candidate, offer.consumed)
    )
    return replace(option, offers=offers, count=len(offers))
