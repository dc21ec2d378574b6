"""The key of the order of queues, one question after the other: what `FairSharePolicy.key` must equal."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler.core.arrays import NO_AMOUNTS, Amounts, is_above
from scheduler.core.fairshare.shares import (
    QueueLedger,
    fits_within,
    is_weaker,
    minus,
    plus,
)

RESOURCES = (0, 1, 2)


@dataclass(frozen=True)
class QueueKey:
    """One queue's place in the order; the smaller one is served first."""

    measured: tuple[bool, bool, int, bool, float, float]
    allocatable: Amounts
    seniority: int

    def __lt__(self, other: QueueKey) -> bool:
        if self.measured != other.measured:
            return self.measured < other.measured
        weaker = is_weaker(self.allocatable, other.allocatable)
        if weaker or is_weaker(other.allocatable, self.allocatable):
            return weaker
        return self.seniority < other.seniority


def queue_key(
    ledger: QueueLedger, queue: int, candidate: Amounts, victims: Amounts = NO_AMOUNTS
) -> QueueKey:
    """Measure a queue as `FairSharePolicy.key` does."""
    allocated = ledger.allocated[queue]
    share = ledger.fair_shares[queue]
    allocatable = ledger.allocatable[queue]
    with_candidate = plus(allocated, candidate)
    measured = (
        all(is_above(allocated[resource], share[resource]) for resource in RESOURCES),
        not fits_within(with_candidate, ledger.quotas[queue]),
        -ledger.priorities[queue],
        any(
            allocatable[resource] == 0 and is_above(with_candidate[resource], 0)
            for resource in RESOURCES
        ),
        steps(ledger, dominant_share(minus(with_candidate, victims), allocatable, ledger.totals)),
        steps(ledger, dominant_share(allocated, allocatable, ledger.totals)),
    )
    return QueueKey(measured, allocatable, ledger.seniority[queue])


def steps(ledger: QueueLedger, share: float) -> float:
    """Count in billionths where there are parts of GPUs, so that float noise makes no difference."""
    if any(row[2] % 1 for row in (*ledger.requests, *ledger.allocated)):
        return (share * 1e9 + 0.5) // 1.0
    return share


def dominant_share(allocated: Amounts, allocatable: Amounts, totals: Amounts) -> float:
    """Return the largest ratio of allocated to allocatable over the resources, at least 0."""
    largest = 0.0
    for resource in RESOURCES:
        share, amount = allocatable[resource], allocated[resource]
        measure = totals[resource] if share == float("inf") else share
        largest = max(largest, amount / measure if measure else amount * 1000.0)
    return largest
