"""Whether a queue may take resources back from other queues, and from which ones.

Three checks of increasing strictness. `can_reclaim`: may this pod group start a search at all (its leaf
queue must stay within fair share). `may_hold_victims`: is a queue worth searching (cheap, before any
simulation). `find_violation`: is a concrete set of victims allowed, chunk by chunk and then level by level
(after a simulation, on the allocations from before it).

Three rules allow taking a chunk, any one of them is enough: `may_take_above_share`, `may_take_above_quota` and
`may_take_in_quota`. A chunk is what is placed or evicted together: the reclaimer takes one, and the victims of a
pod group lose one for each elastic task and one for their gang.

Two queues are always compared at the level where their paths from the root diverge.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

from scheduler.core.arrays import Amounts, is_above
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
    """The pod group that reclaims.

    Attributes
    ----------
    queue : its leaf queue
    required : what the chunk requests that it wants to place
    by_priority : whether, within its own quota, it may take from siblings of lower priority what is within their quota
    """

    queue: int
    required: Amounts
    preemptible: bool
    by_priority: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyViolation:
    """No rule allows taking the next chunk from this queue, which still holds `remaining`."""

    queue: int
    remaining: Amounts


@dataclass(frozen=True, slots=True, kw_only=True)
class SaturationViolation:
    """A queue of the reclaimer would end at least as saturated as the sibling that it takes from."""

    queue: int
    sibling: int
    resource: int
    ratio: float
    sibling_ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaViolation:
    """Non-preemptible work would exceed the quota of this queue."""

    queue: int


Violation = StrategyViolation | SaturationViolation | QuotaViolation


def can_reclaim(ledger: QueueLedger, reclaimer: Reclaimer) -> bool:
    """Return whether a pod group may search for victims at all.

    Notes
    -----
    Its leaf queue must stay within fair share in all three resources, and within quota too if the pod
    group is non-preemptible. Ancestors are not checked here.
    """
    queue, required = reclaimer.queue, reclaimer.required
    if not fits_within(plus(ledger.allocated[queue], required), ledger.fair_shares[queue]):
        return False
    if reclaimer.preemptible:
        return True
    allocated = ledger.allocated_non_preemptible[queue]
    return stays_within_quota(ledger, queue, allocated, required)


def diverging_pair(ledger: QueueLedger, reclaimer: int, victim: int) -> tuple[int, int]:
    """Return the ancestors of two queues at the first level, seen from the root, where they differ.

    Queues of different trees differ at their top queues. If one queue is an ancestor of the other, the
    deepest level that both paths reach counts.
    """
    left = right = -1
    for left, right in zip(
        reversed(ledger.paths[reclaimer]), reversed(ledger.paths[victim]), strict=False
    ):
        if left != right:
            break
    return left, right


def may_hold_victims(ledger: QueueLedger, reclaimer: Reclaimer, victim_queue: int) -> bool:
    """Return whether a queue may hold victims for this pod group (an early, cheap filter).

    Notes
    -----
    A reclaimer that stays within its quota may take from every queue, unless that queue is below its
    own quota in one of the requested resources and above it in none. Any other reclaimer may only take
    from queues that are above their allocatable share in some resource. A reclaimer with `by_priority` that
    stays within its quota may take from every queue of lower priority.
    """
    own_queue, victim_ancestor = diverging_pair(ledger, reclaimer.queue, victim_queue)
    allocated = ledger.allocated[victim_ancestor]
    if not stays_within_quota(ledger, own_queue, ledger.allocated[own_queue], reclaimer.required):
        return exceeds_somewhere(allocated, ledger.allocatable[victim_ancestor])
    if may_take_in_quota(ledger, reclaimer, own_queue, victim_ancestor, is_within_quota=True):
        return True
    is_below = False
    quota = ledger.quotas[victim_ancestor]
    for resource in RESOURCES:
        if reclaimer.required[resource] <= 0 or quota[resource] == inf:
            continue
        if is_above(allocated[resource], quota[resource]):
            return True
        is_below = is_below or is_above(quota[resource], allocated[resource])
    return not is_below


def may_take_above_share(ledger: QueueLedger, queue: int, allocated: Amounts) -> bool:
    """Return whether the other queue holds more than its allocatable share in some resource.

    The first rule that allows taking a chunk (KAI: maintain fair share).

    Parameters
    ----------
    queue : the queue that loses
    allocated : what it holds before the chunk is taken
    """
    return exceeds_somewhere(allocated, ledger.allocatable[queue])


def may_take_above_quota(
    ledger: QueueLedger, queue: int, allocated: Amounts, *, is_within_quota: bool
) -> bool:
    """Return whether the reclaimer stays within its quota and the other queue is above its own.

    The second rule that allows taking a chunk (KAI: guarantee deserved quota).

    Parameters
    ----------
    queue : the queue that loses
    allocated : what it holds before the chunk is taken
    is_within_quota : whether the reclaimer's queue stays within quota (`stays_within_quota`)
    """
    return is_within_quota and exceeds_somewhere(allocated, ledger.quotas[queue])


def may_take_in_quota(
    ledger: QueueLedger,
    reclaimer: Reclaimer,
    own_queue: int,
    victim_queue: int,
    *,
    is_within_quota: bool,
) -> bool:
    """Return whether queue priority allows taking what the other queue holds within its quota.

    The third rule that allows taking a chunk; off unless the reclaimer takes by priority.

    Notes
    -----
    The loser can never take it back: the winner holds it within its quota, and the loser has the lower priority.
    """
    return (
        reclaimer.by_priority
        and is_within_quota
        and ledger.priorities[own_queue] > ledger.priorities[victim_queue]
    )


def stays_within_quota(
    ledger: QueueLedger, queue: int, allocated: Amounts, required: Amounts
) -> bool:
    """Return whether a queue that holds some amounts may take more within its quota."""
    return fits_within(plus(allocated, required), ledger.quotas[queue])


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
    reclaimer : the pod group that takes
    chunks_of_queue : leaf queue -> the chunks taken from it, in the order they are taken
    saturation_multiplier : how much more saturated the other queue must stay, at least 1

    Returns
    -------
    None if the set is allowed, else the first violation
    """
    remaining: dict[int, Amounts] = {}
    lost_resources: dict[int, set[int]] = {}
    for leaf, chunks in chunks_of_queue.items():
        violation = _take_chunks(ledger, before, reclaimer, leaf, chunks, remaining)
        if violation is not None:
            return violation
        resources = {r for chunk in chunks for r in RESOURCES if chunk[r] > 0}
        for index in ledger.paths[leaf]:
            lost_resources.setdefault(index, set()).update(resources)
    return _check_levels(
        ledger, before, reclaimer, remaining, lost_resources, max(1.0, saturation_multiplier)
    )


def _take_chunks(
    ledger: QueueLedger,
    before: Holdings,
    reclaimer: Reclaimer,
    leaf: int,
    chunks: Sequence[Amounts],
    remaining: dict[int, Amounts],
) -> StrategyViolation | None:
    """Subtract the chunks of one leaf queue from `remaining`, checking before each one."""
    own_queue, victim_queue = diverging_pair(ledger, reclaimer.queue, leaf)
    is_within_quota = stays_within_quota(
        ledger, own_queue, before.allocated[own_queue], reclaimer.required
    )
    for chunk in chunks:
        held = remaining.get(victim_queue, before.allocated[victim_queue])
        if not (
            may_take_above_share(ledger, victim_queue, held)
            or may_take_above_quota(ledger, victim_queue, held, is_within_quota=is_within_quota)
            or may_take_in_quota(
                ledger, reclaimer, own_queue, victim_queue, is_within_quota=is_within_quota
            )
        ):
            return StrategyViolation(queue=victim_queue, remaining=held)
        for index in ledger.paths[leaf]:
            remaining[index] = minus(remaining.get(index, before.allocated[index]), chunk)
    return None


def _check_levels(
    ledger: QueueLedger,
    before: Holdings,
    reclaimer: Reclaimer,
    remaining: Mapping[int, Amounts],
    lost_resources: Mapping[int, set[int]],
    multiplier: float,
) -> Violation | None:
    """Check the reclaimer's queue and each of its ancestors.

    Where one would be above its fair share, each sibling that lost something must stay more saturated than it.
    Non-preemptible work must stay within the quota of each.
    """
    requested = {r for r in RESOURCES if reclaimer.required[r] > 0}
    for own_queue in ledger.paths[reclaimer.queue]:
        allocated = plus(remaining.get(own_queue, before.allocated[own_queue]), reclaimer.required)
        for sibling in sorted(remaining):
            if sibling == own_queue or ledger.parents[sibling] != ledger.parents[own_queue]:
                continue
            for resource in sorted(lost_resources[sibling] | requested):
                ratio = _saturation(allocated[resource], ledger.fair_shares[own_queue][resource])
                sibling_share = ledger.fair_shares[sibling][resource]
                sibling_ratio = _saturation(remaining[sibling][resource], sibling_share)
                is_above_share = is_above(
                    allocated[resource], ledger.fair_shares[own_queue][resource]
                )
                is_sibling_ahead = is_above(sibling_ratio, ratio * multiplier)
                if is_above_share and sibling_share > 0 and not is_sibling_ahead:
                    return SaturationViolation(
                        queue=own_queue,
                        sibling=sibling,
                        resource=resource,
                        ratio=ratio,
                        sibling_ratio=sibling_ratio,
                    )
        if not reclaimer.preemptible:
            non_preemptible = before.allocated_non_preemptible[own_queue]
            if not stays_within_quota(ledger, own_queue, non_preemptible, reclaimer.required):
                return QuotaViolation(queue=own_queue)
    return None


def _saturation(amount: float, fair_share: float) -> float:
    if fair_share == inf:
        return 0.0
    if fair_share == 0:
        return inf if is_above(amount, 0.0) else 0.0
    return amount / fair_share
