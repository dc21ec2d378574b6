"""Which queue is served next: seven questions that look at one queue, one that looks at two.

Every one-sided question becomes an element of a key, so that ordering queues is comparing
tuples. Only the question whether one queue's allocatable share lies below the other's in every
resource (a partial order, so it has no key) needs both sides; it stands between the last
measured element and age, and is asked only when the measured elements are equal.
"""

from __future__ import annotations

from dataclasses import dataclass

from scheduler.core.arrays import NO_AMOUNTS, Amounts
from scheduler.core.fairshare.shares import (
    QueueLedger,
    dominant_share,
    exceeds_somewhere,
    fits_within,
    minus,
    plus,
)

Measured = tuple[bool, bool, int, bool, float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueKey:
    """One queue's place in the order; the smaller one is served first.

    `measured` holds, in order: over fair share in all resources; over quota with the candidate;
    priority (negated); uses a resource without a share of it; dominant share with the candidate;
    dominant share without it.
    """

    measured: Measured
    allocatable: Amounts
    seniority: int

    def __lt__(self, other: QueueKey) -> bool:
        """Tell whether this queue is served before the other."""
        if self.measured != other.measured:
            return self.measured < other.measured
        weaker = is_weaker(self.allocatable, other.allocatable)
        if weaker or is_weaker(other.allocatable, self.allocatable):
            return weaker
        return self.seniority < other.seniority


def queue_key(
    ledger: QueueLedger, queue: int, candidate: Amounts, victims: Amounts = NO_AMOUNTS
) -> QueueKey:
    """Measure a queue for the order in which queues are served.

    Parameters
    ----------
    ledger : the queues with what they hold now
    queue : the queue to measure, at any level
    candidate : triple; what the next pod group of the queue's subtree would take
    victims : triple; what would be taken from the queue, when queues of victims are ordered
        (such an order is this one reversed, with nothing as the candidate)

    Returns
    -------
    a key to compare with those of the sibling queues

    Notes
    -----
    Over fair share must hold in all resources to count; being over in one is not enough.
    """
    held = ledger.allocated[queue]
    share = ledger.fair_shares[queue]
    allocatable = ledger.allocatable[queue]
    with_candidate = plus(held, candidate)
    measured = (
        share[0] < held[0] and share[1] < held[1] and share[2] < held[2],
        not fits_within(with_candidate, ledger.quotas[queue]),
        -ledger.priorities[queue],
        (allocatable[0] == 0 < with_candidate[0])
        or (allocatable[1] == 0 < with_candidate[1])
        or (allocatable[2] == 0 < with_candidate[2]),
        dominant_share(minus(with_candidate, victims), allocatable, ledger.totals),
        dominant_share(held, allocatable, ledger.totals),
    )
    return QueueKey(measured=measured, allocatable=allocatable, seniority=ledger.seniority[queue])


def is_weaker(left: Amounts, right: Amounts) -> bool:
    """Tell whether the left share is nowhere above the right one and somewhere below it."""
    return fits_within(left, right) and exceeds_somewhere(right, left)
