"""Whether a queue may take resources back from other queues, and from which ones.

Three questions with different strictness. `can_reclaim`: may this pod group start a search at
all (its leaf queue stays within fair share). `keeps_victim`: is a queue worth looking at
(cheap, before any simulation). `find_violation`: is a concrete set of victims just, chunk by
chunk and then level by level (after a simulation, on the state from before it).

Two queues are always compared at the level where their paths from the root part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

from scheduler.core.arrays import Amounts
from scheduler.core.fairshare.shares import (
    RESOURCES,
    Holdings,
    QueueLedger,
    exceeds_somewhere,
    fits_within,
    minus,
    plus,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reclaimer:
    """The pod group that wants room: its leaf queue and what its next chunk takes."""

    queue: int
    required: Amounts
    preemptible: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyViolation:
    """No rule allows taking the next chunk from this queue."""

    queue: int
    remaining: Amounts


@dataclass(frozen=True, slots=True, kw_only=True)
class SaturationViolation:
    """The reclaimer's side would end at least as full as the sibling it takes from."""

    queue: int
    sibling: int
    resource: int
    ratio: float
    sibling_ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaViolation:
    """Non-preemptible work would pass the quota of this queue."""

    queue: int


Violation = StrategyViolation | SaturationViolation | QuotaViolation


def can_reclaim(ledger: QueueLedger, reclaimer: Reclaimer) -> bool:
    """Tell whether a pod group may look for victims at all.

    Notes
    -----
    Its leaf queue must stay within fair share in all three resources, and within quota too if
    the pod group is non-preemptible. Ancestors are not asked here.
    """
    queue, required = reclaimer.queue, reclaimer.required
    if not fits_within(plus(ledger.allocated[queue], required), ledger.fair_shares[queue]):
        return False
    if reclaimer.preemptible:
        return True
    held = ledger.allocated_non_preemptible[queue]
    return fits_within(plus(held, required), ledger.quotas[queue])


def leveled_pair(ledger: QueueLedger, reclaimer: int, victim: int) -> tuple[int, int]:
    """Return the ancestors at which the paths of two queues part, seen from the root.

    Different trees part at their top queues; if one queue lies above the other, the deepest
    level that both paths reach counts.
    """
    left = right = -1
    for left, right in zip(
        reversed(ledger.paths[reclaimer]), reversed(ledger.paths[victim]), strict=False
    ):
        if left != right:
            break
    return left, right


def keeps_victim(ledger: QueueLedger, reclaimer: Reclaimer, victim_queue: int) -> bool:
    """Tell whether a queue may hold victims for this pod group (an early, cheap filter).

    Notes
    -----
    A claim within quota may look at every queue that is not merely below its own quota in what
    is asked for; any other claim only at queues above their allocatable share somewhere.
    """
    side, other = leveled_pair(ledger, reclaimer.queue, victim_queue)
    held = ledger.allocated[other]
    if not _claims_quota(ledger, side, ledger.allocated[side], reclaimer.required):
        return exceeds_somewhere(held, ledger.allocatable[other])
    below = False
    quota = ledger.quotas[other]
    for resource in RESOURCES:
        if reclaimer.required[resource] <= 0 or quota[resource] == inf:
            continue
        if held[resource] > quota[resource]:
            return True
        below = below or held[resource] < quota[resource]
    return not below


def maintains_fair_share(ledger: QueueLedger, other: int, remaining: Amounts) -> bool:
    """First rule: the queue still holds more than its allocatable share in some resource."""
    return exceeds_somewhere(remaining, ledger.allocatable[other])


def guarantees_quota(
    ledger: QueueLedger,
    side: int,
    side_held: Amounts,
    required: Amounts,
    other: int,
    remaining: Amounts,
) -> bool:
    """Second rule: the reclaimer stays within quota, the other holds more than its quota."""
    return _claims_quota(ledger, side, side_held, required) and exceeds_somewhere(
        remaining, ledger.quotas[other]
    )


def find_violation(
    ledger: QueueLedger,
    before: Holdings,
    reclaimer: Reclaimer,
    chunks_of_queue: Mapping[int, Sequence[Amounts]],
    saturation_multiplier: float = 1.0,
) -> Violation | None:
    """Check a set of victims against the rules of reclaim.

    Parameters
    ----------
    ledger : the queues; only quotas, shares and paths are read
    before : what the queues held before the search began
    reclaimer : who takes
    chunks_of_queue : leaf queue -> the triples taken from it, in the order they are taken
    saturation_multiplier : how much fuller the other side must stay, at least 1

    Returns
    -------
    None if the set is just, else the first violation
    """
    remaining: dict[int, Amounts] = {}
    involved: dict[int, set[int]] = {}
    for leaf, chunks in chunks_of_queue.items():
        violation = _take_chunks(ledger, before, reclaimer, leaf, chunks, remaining)
        if violation is not None:
            return violation
        resources = {r for chunk in chunks for r in RESOURCES if chunk[r] > 0}
        for index in ledger.paths[leaf]:
            involved.setdefault(index, set()).update(resources)
    return _check_boundaries(
        ledger, before, reclaimer, remaining, involved, max(1.0, saturation_multiplier)
    )


def _take_chunks(
    ledger: QueueLedger,
    before: Holdings,
    reclaimer: Reclaimer,
    leaf: int,
    chunks: Sequence[Amounts],
    remaining: dict[int, Amounts],
) -> StrategyViolation | None:
    """Subtract chunk by chunk; the rule is asked before each one is taken."""
    side, other = leveled_pair(ledger, reclaimer.queue, leaf)
    claims_quota = _claims_quota(ledger, side, before.allocated[side], reclaimer.required)
    for chunk in chunks:
        left = remaining.get(other, before.allocated[other])
        allowed = maintains_fair_share(ledger, other, left) or (
            claims_quota and exceeds_somewhere(left, ledger.quotas[other])
        )
        if not allowed:
            return StrategyViolation(queue=other, remaining=left)
        for index in ledger.paths[leaf]:
            remaining[index] = minus(remaining.get(index, before.allocated[index]), chunk)
    return None


def _check_boundaries(
    ledger: QueueLedger,
    before: Holdings,
    reclaimer: Reclaimer,
    remaining: Mapping[int, Amounts],
    involved: Mapping[int, set[int]],
    multiplier: float,
) -> Violation | None:
    """At each level upward compare the reclaimer's saturation with the siblings that lost."""
    asked = {r for r in RESOURCES if reclaimer.required[r] > 0}
    for level in ledger.paths[reclaimer.queue]:
        held = plus(remaining.get(level, before.allocated[level]), reclaimer.required)
        for sibling in sorted(remaining):
            if sibling == level or ledger.parents[sibling] != ledger.parents[level]:
                continue
            for resource in sorted(involved[sibling] | asked):
                ratio = _saturation(held[resource], ledger.fair_shares[level][resource])
                sibling_share = ledger.fair_shares[sibling][resource]
                sibling_ratio = _saturation(remaining[sibling][resource], sibling_share)
                if ratio > 1 and sibling_share > 0 and ratio * multiplier >= sibling_ratio:
                    return SaturationViolation(
                        queue=level,
                        sibling=sibling,
                        resource=resource,
                        ratio=ratio,
                        sibling_ratio=sibling_ratio,
                    )
        if not reclaimer.preemptible:
            firm = plus(before.allocated_non_preemptible[level], reclaimer.required)
            if not fits_within(firm, ledger.quotas[level]):
                return QuotaViolation(queue=level)
    return None


def _claims_quota(ledger: QueueLedger, side: int, held: Amounts, required: Amounts) -> bool:
    return fits_within(plus(held, required), ledger.quotas[side])


def _saturation(amount: float, fair_share: float) -> float:
    if fair_share == inf:
        return 0.0
    if fair_share == 0:
        return inf if amount > 0 else 0.0
    return amount / fair_share
