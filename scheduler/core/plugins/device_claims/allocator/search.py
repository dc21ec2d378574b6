"""The search for devices: one position after the other, turning back where no device is left.

Positions are the devices that the requests of all claims need. At each position the devices are tried in the
order of the pools, so the first solution is the one that Kubernetes' allocator finds. Three things keep the
search small. The devices of one request are interchangeable, so they are only taken in ascending order. A
matching of positions to devices shows at once whether there are enough devices at all. And in a long search a
state that led nowhere is remembered, however it was reached. What is left is bounded: a search of more than
`MAX_STEPS` steps is given up with a reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from scheduler.core.cluster.device_inputs import DeviceClaim, DeviceRequest, Quantities
from scheduler.core.plugins.device_claims.allocator.constraints import Constraint
from scheduler.core.plugins.device_claims.allocator.in_use import InUse
from scheduler.core.plugins.device_claims.allocator.offers import Offer, Option, RefusalError
from scheduler.core.plugins.device_claims.allocator.pools import Candidate

#: A step tries the devices for one position. Real claims need one for each device.
MAX_STEPS = 5_000
#: Steps after which states that lead nowhere are remembered; most searches are shorter.
SHORT_SEARCH = 100
#: Devices that one claim may hold; the API server refuses more.
MAX_DEVICES = 32


class SearchOverrunError(RefusalError):
    """The search took too many steps."""


@dataclass(frozen=True, slots=True)
class Pick:
    """A device chosen for a request."""

    request: DeviceRequest
    candidate: Candidate
    consumed: Quantities


@dataclass(frozen=True, slots=True)
class _Position:
    """What is to be chosen next: an option for a request if `option` is None, else a device for the option.

    Attributes
    ----------
    number : how many devices the option has already
    start : index of the first offer to try
    """

    claim: int
    request: int = 0
    option: Option | None = None
    number: int = 0
    start: int = 0


class Search:
    """One search for the devices of several claims on one node.

    Parameters
    ----------
    options : for each claim and each of its requests the ways to serve it, best first
    """

    def __init__(
        self,
        claims: Sequence[DeviceClaim],
        options: Sequence[Sequence[Sequence[Option]]],
        in_use: InUse,
    ) -> None:
        self._options = options
        self._in_use = in_use
        self._constraints = [[Constraint(item) for item in claim.constraints] for claim in claims]
        self._picks: list[list[Pick]] = [[] for _ in claims]
        self._steps = 0

    def run(self) -> list[list[Pick]] | None:
        """Return the devices of each claim; None if there is no solution.

        Raises
        ------
        SearchOverrunError : the search took too many steps
        """
        option = self._only_option()
        if option is not None:
            return self._first_free(option)
        if not self._has_matching():
            return None
        #: States from which no solution can be reached.
        hopeless: set[object] = set()
        #: The positions of the current choice, each with its state and the positions still to try after it.
        path: list[tuple[object, Iterator[_Position]]] = [(None, self._following(_Position(0)))]
        while path:
            state, following = path[-1]
            position = next(following, None)
            if position is None:
                path.pop()
                hopeless.add(state)
            elif position.claim == len(self._options):
                return self._picks
            else:
                state = self._state(position) if self._steps > SHORT_SEARCH else None
                if state is None or state not in hopeless:
                    path.append((state, self._following(position)))
        return None

    def _only_option(self) -> Option | None:
        """Return the only option of the only request, if no constraint or counter makes its devices affect each other."""
        options = [option for claim in self._options for item in claim for option in item]
        if len(options) != 1 or self._constraints[0] or options[0].request.is_admin:
            return None
        option = options[0]
        return option if option.is_plain and 0 < option.count <= MAX_DEVICES else None

    def _first_free(self, option: Option) -> list[list[Pick]] | None:
        """Return the first free devices for the only option, as the search would."""
        free = [
            Pick(option.request, offer.candidate, offer.consumed)
            for offer in option.offers
            if not offer.is_repelled and self._in_use.is_free(offer.candidate, offer.consumed)
        ]
        return [free[: option.count]] if len(free) >= option.count else None

    def _state(self, position: _Position) -> object:
        """Return everything that decides whether a position leads to a solution."""
        picks = self._picks[position.claim] if position.claim < len(self._picks) else []
        return (
            position.claim,
            position.request,
            id(position.option),
            position.number,
            position.start,
            len(picks),
            tuple(pick.candidate.id for pick in picks if pick.request.is_admin),
            self._in_use.state(),
            tuple(item.state() for item in self._constraints[position.claim]),
        )

    def _following(self, position: _Position) -> Iterator[_Position]:
        """Yield the positions that may follow. The device that leads to one is held until the next is requested."""
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise SearchOverrunError(f"the search for devices took more than {MAX_STEPS} steps")
        option = position.option
        if position.request == len(self._options[position.claim]):
            yield _Position(position.claim + 1)
        elif option is None:
            devices_left = MAX_DEVICES - len(self._picks[position.claim])
            for item in self._options[position.claim][position.request]:
                if item.count <= devices_left and item.offers:
                    yield _Position(position.claim, position.request, item)
        elif position.number == option.count:
            yield _Position(position.claim, position.request + 1)
        else:
            yield from self._devices(position, option)

    def _devices(self, position: _Position, option: Option) -> Iterator[_Position]:
        """Yield a position for each device that can be taken."""
        lacking = option.count - position.number
        claim, request, number = position.claim, position.request, position.number + 1
        if option.is_all:
            offer = option.offers[position.start]
            if self._is_possible(position, option, offer):
                yield from self._with(
                    offer, _Position(claim, request, option, number, position.start + 1)
                )
            return
        possible = [
            index
            for index in range(position.start, len(option.offers))
            if self._is_possible(position, option, option.offers[index])
        ]
        for rank, index in enumerate(possible):
            if len(possible) - rank < lacking and not option.may_repeat:
                return
            offer = option.offers[index]
            is_again_possible = offer.candidate.device.is_shareable
            start = index if is_again_possible else index + 1
            yield from self._with(offer, _Position(claim, request, option, number, start))

    def _is_possible(self, position: _Position, option: Option, offer: Offer) -> bool:
        candidate, request = offer.candidate, option.request
        if offer.is_repelled:
            return False
        if not request.is_admin and not self._in_use.is_free(candidate, offer.consumed):
            return False
        if any(
            pick.candidate is candidate and (request.is_admin or pick.request.is_admin)
            for pick in self._picks[position.claim]
        ):
            return False
        return all(item.accepts(request, candidate) for item in self._constraints[position.claim])

    def _with(self, offer: Offer, following: _Position) -> Iterator[_Position]:
        """Take a device, yield the position, give the device back."""
        option = following.option
        assert option is not None
        request, constraints = option.request, self._constraints[following.claim]
        give_back = (
            None if request.is_admin else self._in_use.choose(offer.candidate, offer.consumed)
        )
        for constraint in constraints:
            constraint.add(request, offer.candidate)
        self._picks[following.claim].append(Pick(request, offer.candidate, offer.consumed))
        yield following
        self._picks[following.claim].pop()
        for constraint in constraints:
            constraint.remove_last(request)
        if give_back is not None:
            give_back()

    def _has_matching(self) -> bool:
        """Return whether all requests without alternatives can have different devices, apart from constraints."""
        #: For each position the devices that may take it.
        devices_of: list[list[Candidate]] = []
        for options in (item for claim in self._options for item in claim):
            option = options[0]
            if option.request.is_admin or len(options) > 1 or option.may_repeat:
                continue
            free = [
                offer.candidate
                for offer in option.offers
                if not offer.is_repelled and self._in_use.is_free(offer.candidate, offer.consumed)
            ]
            if len(free) < option.count:
                return False
            devices_of += [free] * option.count
        return _can_be_matched(devices_of)


def _can_be_matched(devices_of: list[list[Candidate]]) -> bool:
    """Return whether each position can have one of its devices, no two the same (augmenting paths)."""
    holder: dict[Candidate, int] = {}

    def assign(position: int, visited: set[Candidate]) -> bool:
        for device in devices_of[position]:
            if device not in holder:
                holder[device] = position
                return True
        for device in devices_of[position]:
            if device not in visited:
                visited.add(device)
                if assign(holder[device], visited):
                    holder[device] = position
                    return True
        return False

    return all(assign(position, set()) for position in range(len(devices_of)))
