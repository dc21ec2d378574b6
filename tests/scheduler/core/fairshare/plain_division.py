"""The division written as a plain loop over one pool, to check the array version against."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, inf

from scheduler.core.arrays import TOLERANCE, is_above


@dataclass
class PlainQueue:
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
    """Set `share` of every queue; return what is left."""
    rest = total
    for queue in queues:
        queue.share = min(total if queue.quota == inf else queue.quota, queue.requestable)
        rest -= queue.share
    if not is_above(rest, 0):
        return rest
    cut: dict[int, float] = {}
    priorities = sorted({queue.priority for queue in queues}, reverse=True)
    for priority in priorities:
        rest = _fill([q for q in queues if q.priority == priority], rest, k_value, cut)
    for priority in priorities:
        listed = [q for q in queues if q.priority == priority and id(q) in cut]
        for queue in sorted(listed, key=lambda q: (-cut[id(q)], q.seniority)):
            if not is_above(rest, 0):
                return rest
            give = min(1.0, rest)
            queue.share += give
            rest -= give
    return rest


def _fill(queues: list[PlainQueue], rest: float, k: float, cut: dict[int, float]) -> float:
    while is_above(rest, 0):
        hungry = [queue for queue in queues if queue.unsatisfied]
        weights = sum(queue.weight for queue in hungry)
        if weights == 0:
            return rest
        strength = {
            id(q): max(0.0, q.weight / weights + k * (q.weight / weights - q.usage)) for q in hungry
        }
        strengths = sum(strength.values())
        if strengths == 0:
            return rest
        pot, again = rest, False
        for queue in hungry:
            if queue.weight == 0:
                continue
            want = queue.requestable - queue.share
            offer = pot * (strength[id(queue)] / strengths)
            if not is_above(want, offer):
                give = want
                cut.pop(id(queue), None)
            else:
                give = float(floor(offer + TOLERANCE))
                if is_above(offer, give):
                    cut[id(queue)] = offer - give
            if give == 0:
                continue
            queue.share += give
            rest -= give
            again = again or is_above(offer, want)
        if not again:
            return rest
    return rest
