"""Fair share written as a plain loop over the queues of one pool and one resource.

Tests check `scheduler.core.fairshare.division`, which divides all pools at once in arrays, against it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, inf

from scheduler.core.arrays import TOLERANCE, is_above


@dataclass
class PlainQueue:
    """One queue; `seniority` is its rank by age, 0 is the oldest."""

    quota: float
    limit: float
    weight: float
    request: float
    usage: float = 0.0
    priority: int = 100
    seniority: int = 0
    share: float = 0.0

    @property
    def requestable(self) -> float:
        return min(self.limit, self.request)

    @property
    def unsatisfied(self) -> bool:
        return is_above(self.requestable, self.share)


def divide_plainly(total: float, queues: list[PlainQueue], k_value: float) -> float:
    """Set `share` of every queue; return what is left.

    First each queue gets its quota, then the surplus goes to the queues of each priority by weight, in whole
    units. What rounding down leaves over goes one unit each to the queues that lost the largest fractions.
    """
    rest = total
    for queue in queues:
        queue.share = min(total if queue.quota == inf else queue.quota, queue.requestable)
        rest -= queue.share
    if not is_above(rest, 0):
        return rest
    remainders: dict[int, float] = {}
    priorities = sorted({queue.priority for queue in queues}, reverse=True)
    for priority in priorities:
        rest = _fill([q for q in queues if q.priority == priority], rest, k_value, remainders)
    for priority in priorities:
        candidates = [q for q in queues if q.priority == priority and id(q) in remainders]
        for queue in sorted(candidates, key=lambda q: (-remainders[id(q)], q.seniority)):
            if not is_above(rest, 0):
                return rest
            give = min(1.0, rest)
            queue.share += give
            rest -= give
    return rest


def _fill(
    queues: list[PlainQueue], rest: float, k_value: float, remainders: dict[int, float]
) -> float:
    """Offer what is left to queues of one priority, in rounds, until none wants less than its offer; return the rest.

    `remainders` gets the fraction that each queue lost in its last round, by the id of the queue.
    """
    while is_above(rest, 0):
        hungry = [queue for queue in queues if queue.unsatisfied]
        weights = sum(queue.weight for queue in hungry)
        if weights == 0:
            return rest
        strength = {
            id(q): max(0.0, q.weight / weights + k_value * (q.weight / weights - q.usage))
            for q in hungry
        }
        strengths = sum(strength.values())
        if strengths == 0:
            return rest
        pool, is_another_round_due = rest, False
        for queue in hungry:
            if queue.weight == 0:
                continue
            want = queue.requestable - queue.share
            offer = pool * (strength[id(queue)] / strengths)
            if not is_above(want, offer):
                give = want
                remainders.pop(id(queue), None)
            else:
                give = float(floor(offer + TOLERANCE))
                if is_above(offer, give):
                    remainders[id(queue)] = offer - give
            if give == 0:
                continue
            queue.share += give
            rest -= give
            is_another_round_due = is_another_round_due or is_above(offer, want)
        if not is_another_round_due:
            return rest
    return rest
