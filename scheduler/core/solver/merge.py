"""The order of all victims that are left, at once, where each pod group loses everything that it holds.

`victims.py` finds one batch after the other, because the next one depends on what queues have lost so far. If no pod
group comes back with a rest, then the key of a queue only falls, batch by batch. So its losses are sorted by key
already, and those of several queues can be merged by one sort over arrays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from scheduler.core.arrays import NO_AMOUNTS, Amounts, Floats, Ints
from scheduler.core.session.policy import Comparable, LossKeys, QueuePolicy

#: Among more siblings than this, comparing each pair costs more than the sort saves.
MANY_SIBLINGS = 32


@dataclass(frozen=True, slots=True)
class Losses:
    """What pod groups below a queue lose, in order.

    Attributes
    ----------
    numbers : the losses, as the caller numbers them
    held : shape (losses, 3); the amounts of each
    """

    numbers: Ints
    held: Floats


def merged(
    policy: QueuePolicy,
    children: Mapping[int, Sequence[int]],
    leaves: Mapping[int, Losses],
    lost: Mapping[int, Amounts],
    queue: int,
) -> Losses | None:
    """Return the losses below a queue in order; None if its siblings cannot be sorted.

    Parameters
    ----------
    children : queue -> its children that may have losses
    leaves : leaf queue -> its own losses, the first to go first
    lost : queue -> what it has lost before
    """
    if queue in leaves:
        return leaves[queue]
    parts: list[tuple[int, Losses]] = []
    for child in children[queue]:
        losses = merged(policy, children, leaves, lost, child)
        if losses is None:
            return None
        if len(losses.numbers):
            parts.append((child, losses))
    if not parts:
        return Losses(np.zeros(0, dtype=np.int64), np.zeros((0, 3)))
    if len(parts) == 1:
        return parts[0][1]
    keys = [
        policy.loss_keys(child, _sums(lost.get(child, NO_AMOUNTS), losses.held))
        for child, losses in parts
    ]
    order = _order(keys)
    if order is None:
        return None
    numbers = np.concatenate([losses.numbers for _, losses in parts])
    held_amounts = np.concatenate([losses.held for _, losses in parts])
    return Losses(numbers[order], held_amounts[order])


def _sums(lost_before: Amounts, losses: Floats) -> Floats:
    """Return shape (losses, 3): what a queue has lost with each loss and those before it."""
    sums: Floats = np.cumsum(np.concatenate([[lost_before], losses]), axis=0)[1:]
    return sums


def _order(keys: Sequence[LossKeys]) -> Ints | None:
    """Return the order of the losses of all siblings, the largest key first; None if siblings cannot be sorted."""
    ranks = _ranks([key.tie for key in keys])
    if ranks is None:
        return None
    firsts = sorted({key.first for key in keys})
    first = np.concatenate([np.full(len(key.shares), firsts.index(key.first)) for key in keys])
    shares = np.concatenate([key.shares for key in keys])
    tie = np.concatenate(
        [np.full(len(key.shares), rank) for key, rank in zip(keys, ranks, strict=True)]
    )
    return np.lexsort((-tie, -shares, -first))


def _ranks(ties: Sequence[Comparable]) -> list[int] | None:
    """Return the rank of each tie, the smallest 0; None if they are too many, or "before" goes in circles among them."""
    if len(ties) > MANY_SIBLINGS:
        return None
    before = [sum(other < tie for other in ties) for tie in ties]
    return before if sorted(before) == list(range(len(ties))) else None
