"""Which leaf queues have bounds per GPU model, so that what holds for one of them need not hold for another."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BoundedQueues:
    """The leaf queues with a bound of their own or of an ancestor; attached to the session if there are any."""

    leaves: frozenset[int]
