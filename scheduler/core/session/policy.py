"""All questions about queues: which is served next, which may take more, which holds what.

With the proportion plugin the answers come from the ledger of fair shares. Without it there are no quotas,
shares or limits, and the oldest queue is served first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from scheduler.core.arrays import GPU_INDEX, NO_AMOUNTS, TOLERANCE, Amounts, Floats
from scheduler.core.cluster.changes import ChangeLog
from scheduler.core.cluster.journal import WHOLE, Journal
from scheduler.core.cluster.queues import Queues
from scheduler.core.fairshare.capacity import (
    CapacityReason,
    CapacityRefusal,
    refuse_at_gate,
    refuse_over_capacity,
)
from scheduler.core.fairshare.shares import QueueLedger, is_weaker

#: Dominant shares that differ by less than one of so many steps are equal, so that float noise does not decide.
SHARE_STEPS = 1e9


V = TypeVar("V")


class Comparable(Protocol):
    """Anything with an order."""

    def __lt__(self, other: Any, /) -> bool:
        """Return whether this comes first."""
        ...


@dataclass(frozen=True, slots=True)
class LossKeys:
    """The keys of a queue after each of several losses, in parts that are compared one after the other.

    Attributes
    ----------
    first : what comes before the dominant share, the same after every loss
    shares : shape (losses,); the dominant share after each loss, never larger than before it
    tie : what decides between equal ones, different for every queue
    """

    first: tuple[float, ...]
    shares: Floats
    tie: Comparable


class QueuePolicy:
    """The policy without quotas: everything may run, the oldest queue is served first.

    Attributes
    ----------
    ledger : what queues hold; kept even without quotas, because reports show it
    saturation_multiplier : how much more saturated a queue must be than the one that reclaims from it
    touched : the leaf queues whose allocation changed
    """

    is_active = False

    def __init__(self, ledger: QueueLedger, saturation_multiplier: float = 1.0) -> None:
        self.ledger = ledger
        self.saturation_multiplier = saturation_multiplier
        self.touched = ChangeLog()

    def charge(self, journal: Journal, queue: int, amounts: Amounts, *, preemptible: bool) -> None:
        """Add amounts (which may be negative) to a leaf queue and its ancestors; can be undone."""
        self._add(journal, self.ledger.allocated, queue, amounts)
        if not preemptible:
            self._add(journal, self.ledger.allocated_non_preemptible, queue, amounts)
        self.touched.append(queue)

    def charge_non_preemptible(self, journal: Journal, queue: int, amounts: Amounts) -> None:
        """Count more (or less) of what a leaf queue and its ancestors hold as non-preemptible; can be undone."""
        self._add(journal, self.ledger.allocated_non_preemptible, queue, amounts)
        self.touched.append(queue)

    def _add(self, journal: Journal, rows: list[list[float]], queue: int, amounts: Amounts) -> None:
        entries = journal.entries
        cpu, memory, gpu = amounts
        for index in self.ledger.paths[queue]:
            row = rows[index]
            entries.append((row, WHOLE, row[:]))
            row[0] += cpu
            row[1] += memory
            row[2] += gpu

    def charge_for_good(self, queue: int, amounts: Amounts, *, preemptible: bool) -> None:
        """Add amounts to a leaf queue and its ancestors without writing to the journal."""
        self.ledger.charge(queue, amounts, preemptible=preemptible)
        self.touched.append(queue)

    def refuse(
        self, queue: int, requested: Amounts, *, preemptible: bool
    ) -> CapacityRefusal | None:
        """Return why a queue may not take so much more; None if it may."""
        del queue, requested, preemptible
        return None

    def refuse_over_quota(self, queue: int, requested: Amounts) -> CapacityRefusal | None:
        """Return why a queue may not take so much more non-preemptible work; None if it may."""
        del queue, requested
        return None

    def can_refuse(self, queue: int, *, preemptible: bool) -> bool:
        """Return whether `refuse` could ever refuse here; if not, callers need not ask it."""
        del queue, preemptible
        return False

    def key(self, queue: int, candidate: Amounts, victims: Amounts = NO_AMOUNTS) -> Comparable:
        """Return the sort key of a queue among its siblings; the smallest is served first.

        Parameters
        ----------
        queue : at any level
        candidate : what the next pod group below the queue would take
        victims : what would be taken from the queue, when queues of victims are sorted (their order
            is this one reversed, without a candidate)
        """
        del candidate, victims
        return self.ledger.seniority[queue]

    def loss_keys(self, queue: int, losses: Floats) -> LossKeys:
        """Return what `key` says after each of several losses.

        losses : shape (losses, 3); what would have been taken from the queue by then
        """
        return LossKeys((), np.zeros(len(losses)), self.ledger.seniority[queue])


class _KeyTerms(NamedTuple):
    """What the key of a queue depends on besides its allocation.

    Attributes
    ----------
    share, quota : with the tolerance for float noise
    dominant_bound : what the dominant share is measured against: the allocatable share, or the cluster
        where that is unlimited
    negative_priority : so that the higher priority comes first
    """

    share: Amounts
    quota: Amounts
    allocatable: Amounts
    dominant_bound: Amounts
    negative_priority: int
    tie: _Tie


class FairSharePolicy(QueuePolicy):
    """The policy with fair shares, quotas and limits."""

    is_active = True

    def __init__(self, ledger: QueueLedger, saturation_multiplier: float = 1.0) -> None:
        super().__init__(ledger, saturation_multiplier)
        #: Whether queues hold or request parts of GPUs. Dominant shares then count in small steps, so that
        #: float noise does not decide between equal ones.
        self._has_parts = any(
            row[GPU_INDEX] % 1 for rows in (ledger.requests, ledger.allocated) for row in rows
        )
        self._key_terms = _ByQueue(self._key_terms_of)
        self._has_limit = _ByQueue(lambda queue: self._is_bounded(queue, ledger.limits))
        self._has_quota = _ByQueue(lambda queue: self._is_bounded(queue, ledger.quotas))

    def _key_terms_of(self, queue: int) -> _KeyTerms:
        ledger = self.ledger
        shares = ledger.allocatable[queue]
        return _KeyTerms(
            tuple(share + TOLERANCE for share in ledger.fair_shares[queue]),
            tuple(quota + TOLERANCE for quota in ledger.quotas[queue]),
            shares,
            tuple(
                total if share == inf else share
                for share, total in zip(shares, ledger.totals, strict=True)
            ),
            -ledger.priorities[queue],
            _Tie(shares, ledger.seniority[queue]),
        )

    def _is_bounded(self, queue: int, bounds: Sequence[Amounts]) -> bool:
        """Return whether one of the bounds limits a queue or one of its ancestors."""
        path = self.ledger.paths[queue]
        return any(amount != inf for index in path for amount in bounds[index])

    def refuse(
        self, queue: int, requested: Amounts, *, preemptible: bool
    ) -> CapacityRefusal | None:
        """Apply the limit gate, and to non-preemptible work the quota gate."""
        if not self.can_refuse(queue, preemptible=preemptible):
            return None
        return refuse_over_capacity(self.ledger, queue, requested, preemptible=preemptible)

    def refuse_over_quota(self, queue: int, requested: Amounts) -> CapacityRefusal | None:
        """Apply the quota gate only."""
        gate = CapacityReason.NON_PREEMPTIBLE_OVER_QUOTA
        return refuse_at_gate(gate, self.ledger, queue, requested, preemptible=False)

    def can_refuse(self, queue: int, *, preemptible: bool) -> bool:
        """Return whether any queue on the path has a limit, or a quota that binds this work."""
        return self._has_limit[queue] or (not preemptible and self._has_quota[queue])

    def key(self, queue: int, candidate: Amounts, victims: Amounts = NO_AMOUNTS) -> tuple[Any, ...]:
        """Return the key of the order of queues.

        In order: over its fair share in all resources; over its quota with the candidate; priority;
        use of a resource without a share of it; dominant share with the candidate (less the victims);
        dominant share without it; then the smaller allocatable share, and age.

        The dominant share is the largest ratio of allocated to allocatable. An unlimited share is
        measured against the cluster, also for a nested queue. Against a share of 0 every unit counts
        as 1000, so that a queue without a right to a resource comes last.

        Written out without calls and loops, which would cost more than the arithmetic: every turn
        measures every queue on a path. `plain_queue_order.py` in the tests says the same step by step.
        """
        held0, held1, held2 = self.ledger.allocated[queue]
        share, quota, allocatable, (bound0, bound1, bound2), priority, tie = self._key_terms[queue]
        with0, with1, with2 = held0 + candidate[0], held1 + candidate[1], held2 + candidate[2]
        is_over_share = share[0] < held0 and share[1] < held1 and share[2] < held2
        is_over_quota = with0 > quota[0] or with1 > quota[1] or with2 > quota[2]
        lacks_share = (
            (allocatable[0] == 0 and with0 > TOLERANCE)
            or (allocatable[1] == 0 and with1 > TOLERANCE)
            or (allocatable[2] == 0 and with2 > TOLERANCE)
        )
        if victims is not NO_AMOUNTS:
            with0, with1, with2 = with0 - victims[0], with1 - victims[1], with2 - victims[2]
        # The dominant share with the candidate (after) and without it (before).
        after = before = 0.0
        ratio = with0 / bound0 if bound0 else with0 * 1000.0
        if ratio > after:
            after = ratio
        ratio = with1 / bound1 if bound1 else with1 * 1000.0
        if ratio > after:
            after = ratio
        ratio = with2 / bound2 if bound2 else with2 * 1000.0
        if ratio > after:
            after = ratio
        ratio = held0 / bound0 if bound0 else held0 * 1000.0
        if ratio > before:
            before = ratio
        ratio = held1 / bound1 if bound1 else held1 * 1000.0
        if ratio > before:
            before = ratio
        ratio = held2 / bound2 if bound2 else held2 * 1000.0
        if ratio > before:
            before = ratio
        if self._has_parts:
            after = (after * SHARE_STEPS + 0.5) // 1.0
            before = (before * SHARE_STEPS + 0.5) // 1.0
        return (is_over_share, is_over_quota, priority, lacks_share, after, before, tie)

    def loss_keys(self, queue: int, losses: Floats) -> LossKeys:
        """Return what `key` says after each of several losses; only the dominant share depends on them."""
        key = self.key(queue, NO_AMOUNTS)
        bounds = np.array(self._key_terms[queue].dominant_bound)
        remaining = np.array(self.ledger.allocated[queue]) - losses
        ratios = np.where(
            bounds != 0, remaining / np.where(bounds != 0, bounds, 1.0), remaining * 1000.0
        )
        shares: Floats = np.maximum(ratios.max(axis=1), 0.0)
        if self._has_parts:
            shares = (shares * SHARE_STEPS + 0.5) // 1.0
        return LossKeys(key[:4], shares, key[5:])


class _ByQueue(dict[int, V]):
    """Values by queue, computed when first needed: most queues have nothing to do in most cycles."""

    def __init__(self, make: Callable[[int], V]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, queue: int) -> V:
        value = self[queue] = self._make(queue)
        return value


class _Tie:
    """Decides between queues of equal measures: the smaller allocatable share first, then the older.

    Shares are only comparable if one is nowhere above the other. Both stay the same for a whole session,
    so each pair is compared once.
    """

    __slots__ = ("_answers", "allocatable", "seniority")

    def __init__(self, allocatable: Amounts, seniority: int) -> None:
        self.allocatable = allocatable
        self.seniority = seniority
        #: Seniority of another queue -> whether this one comes before it.
        self._answers: dict[int, bool] = {}

    def __lt__(self, other: _Tie) -> bool:
        answer = self._answers.get(other.seniority)
        if answer is None:
            weaker = is_weaker(self.allocatable, other.allocatable)
            if weaker or is_weaker(other.allocatable, self.allocatable):
                answer = weaker
            else:
                answer = self.seniority < other.seniority
            self._answers[other.seniority] = answer
        return answer


def empty_ledger(queues: Queues) -> QueueLedger:
    """Return a ledger in which every queue is unlimited and holds nothing."""
    count = len(queues)
    unlimited = (inf, inf, inf)
    return QueueLedger(
        names=queues.names,
        display_names=queues.shown_names(),
        parents=queues.parent,
        priorities=queues.priorities(),
        seniority=list(range(count)),
        quotas=[unlimited] * count,
        limits=[unlimited] * count,
        fair_shares=[unlimited] * count,
        requests=[NO_AMOUNTS] * count,
        allocated=[[0.0, 0.0, 0.0] for _ in range(count)],
        allocated_non_preemptible=[[0.0, 0.0, 0.0] for _ in range(count)],
        totals=unlimited,
        paths=queues.paths(),
        allocatable=[unlimited] * count,
    )
