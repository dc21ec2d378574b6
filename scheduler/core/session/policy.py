"""The one object that answers for queues: who is served next, who may take more, who holds what.

With the proportion plugin these answers come from the ledger of fair shares; without it there are no
quotas, shares or limits, and queues are served by age alone.
"""

from __future__ import annotations

from typing import Any, Protocol

from scheduler.core.arrays import NO_AMOUNTS, Amounts
from scheduler.core.cluster.changes import ChangeLog
from scheduler.core.cluster.journal import WHOLE, Journal
from scheduler.core.cluster.queues import Queues
from scheduler.core.fairshare.capacity import (
    CapacityRefusal,
    refuse_over_capacity,
    refuse_over_quota,
)
from scheduler.core.fairshare.queue_order import is_weaker
from scheduler.core.fairshare.shares import QueueLedger


class Comparable(Protocol):
    """Anything with an order."""

    def __lt__(self, other: Any, /) -> bool:
        """Tell whether this comes first."""
        ...


class QueuePolicy:
    """Queue questions answered without any quota: everyone may run, the oldest queue first.

    Attributes
    ----------
    ledger : what queues hold; kept also without quotas, because people look at it
    saturation_multiplier : of the reclaim rules
    touched : every change of what a queue holds appends the leaf queue; readers remember how far
        they have read
    """

    is_active = False

    def __init__(self, ledger: QueueLedger, saturation_multiplier: float = 1.0) -> None:
        self.ledger = ledger
        self.saturation_multiplier = saturation_multiplier
        self.touched = ChangeLog()

    def charge(self, journal: Journal, queue: int, amounts: Amounts, *, preemptible: bool) -> None:
        """Add amounts to a leaf queue and its ancestors (negative amounts give back), undoably."""
        ledger, cells = self.ledger, journal.entries
        cpu, memory, gpu = amounts
        for index in ledger.paths[queue]:
            row = ledger.allocated[index]
            cells.append((row, WHOLE, row[:]))
            row[0] += cpu
            row[1] += memory
            row[2] += gpu
        if not preemptible:
            for index in ledger.paths[queue]:
                row = ledger.allocated_non_preemptible[index]
                cells.append((row, WHOLE, row[:]))
                row[0] += cpu
                row[1] += memory
                row[2] += gpu
        self.touched.append(queue)

    def charge_for_good(self, queue: int, amounts: Amounts, *, preemptible: bool) -> None:
        """Add amounts to a leaf queue and its ancestors, with no way back."""
        self.ledger.charge(queue, amounts, preemptible=preemptible)
        self.touched.append(queue)

    def refuse(
        self, queue: int, requested: Amounts, *, preemptible: bool
    ) -> CapacityRefusal | None:
        """Return why a queue may not take so much more, or None."""
        del queue, requested, preemptible
        return None

    def refuse_non_preemptible(self, queue: int, requested: Amounts) -> CapacityRefusal | None:
        """Return why a queue may not take so much more work that cannot be preempted, or None."""
        del queue, requested
        return None

    def can_refuse(self, queue: int, *, preemptible: bool) -> bool:
        """Tell whether `refuse` could ever refuse here; False saves asking."""
        del queue, preemptible
        return False

    def key(self, queue: int, candidate: Amounts, victims: Amounts = NO_AMOUNTS) -> Comparable:
        """Return a queue's place among its siblings; the smaller is served first."""
        del candidate, victims
        return self.ledger.seniority[queue]


class FairSharePolicy(QueuePolicy):
    """Queue questions answered from fair shares, quotas and limits."""

    is_active = True

    def __init__(self, ledger: QueueLedger, saturation_multiplier: float = 1.0) -> None:
        super().__init__(ledger, saturation_multiplier)
        unlimited = float("inf")
        #: Per queue, what its key is made of besides what it holds. The dominant share is measured
        #: against the cluster where a share is unlimited.
        self._fixed = [
            (
                ledger.fair_shares[queue],
                ledger.quotas[queue],
                shares,
                tuple(
                    total if share == unlimited else share
                    for share, total in zip(shares, ledger.totals, strict=True)
                ),
                -ledger.priorities[queue],
                _Tie(shares, ledger.seniority[queue]),
            )
            for queue, shares in enumerate(ledger.allocatable)
        ]
        self._has_limit = [
            any(amount != unlimited for index in path for amount in ledger.limits[index])
            for path in ledger.paths
        ]
        self._has_quota = [
            any(amount != unlimited for index in path for amount in ledger.quotas[index])
            for path in ledger.paths
        ]

    def refuse(
        self, queue: int, requested: Amounts, *, preemptible: bool
    ) -> CapacityRefusal | None:
        """Apply the limit gate, and the quota gate to work that cannot be preempted."""
        if not self.can_refuse(queue, preemptible=preemptible):
            return None
        return refuse_over_capacity(self.ledger, queue, requested, preemptible=preemptible)

    def refuse_non_preemptible(self, queue: int, requested: Amounts) -> CapacityRefusal | None:
        """Apply the quota gate alone."""
        return refuse_over_quota(self.ledger, queue, requested)

    def can_refuse(self, queue: int, *, preemptible: bool) -> bool:
        """Tell whether any queue on the path has a limit (or a quota that binds this work)."""
        return self._has_limit[queue] or (not preemptible and self._has_quota[queue])

    def key(self, queue: int, candidate: Amounts, victims: Amounts = NO_AMOUNTS) -> Comparable:
        """Return the key of the order of queues.

        The same questions as `fairshare.queue_order.queue_key`, written out flat: it is asked at
        every turn for every queue on the path, and calls cost more than the arithmetic. The test
        that compares the two is `test_policy.py`.
        """
        held0, held1, held2 = self.ledger.allocated[queue]
        share, quota, limit, (bound0, bound1, bound2), priority, tie = self._fixed[queue]
        with0, with1, with2 = held0 + candidate[0], held1 + candidate[1], held2 + candidate[2]
        is_over = share[0] < held0 and share[1] < held1 and share[2] < held2
        is_beyond = with0 > quota[0] or with1 > quota[1] or with2 > quota[2]
        lacks_share = (limit[0] == 0 < with0) or (limit[1] == 0 < with1) or (limit[2] == 0 < with2)
        if victims is not NO_AMOUNTS:
            with0, with1, with2 = with0 - victims[0], with1 - victims[1], with2 - victims[2]
        # The dominant share with the candidate and without it, see `dominant_share`.
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
        return (is_over, is_beyond, priority, lacks_share, after, before, tie)


class _Tie:
    """What decides between queues of equal measures: the weaker share, then age.

    Both stay the same for a whole session, so each pair is worked out once.
    """

    __slots__ = ("_answers", "allocatable", "seniority")

    def __init__(self, allocatable: Amounts, seniority: int) -> None:
        self.allocatable = allocatable
        self.seniority = seniority
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
    unlimited = (float("inf"),) * 3
    return QueueLedger(
        names=queues.names,
        display_names=[given.display_name or given.name for given in queues.inputs],
        parents=queues.parent,
        priorities=[given.priority for given in queues.inputs],
        seniority=list(range(count)),
        quotas=[unlimited] * count,
        limits=[unlimited] * count,
        fair_shares=[unlimited] * count,
        requests=[NO_AMOUNTS] * count,
        allocated=[[0.0, 0.0, 0.0] for _ in range(count)],
        allocated_non_preemptible=[[0.0, 0.0, 0.0] for _ in range(count)],
        totals=unlimited,
    )
