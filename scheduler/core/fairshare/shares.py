"""The ledger of queues: the quota, limit, fair share, request and allocation of each.

Division works on arrays of all queues. But the questions asked thousands of times in a cycle (may this
gang run, which queue is next, may this victim be taken) concern one queue each, and for three numbers
plain Python is several times faster than an array. So the ledger keeps `Amounts` per queue: CPU in
millicores, memory in bytes, GPUs. Unlimited is `inf`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from scheduler.core.arrays import (
    CPU_INDEX,
    GPU_INDEX,
    MEMORY_INDEX,
    TOLERANCE,
    Amounts,
    Floats,
)

RESOURCES = (CPU_INDEX, MEMORY_INDEX, GPU_INDEX)


@dataclass(slots=True, kw_only=True)
class QueueLedger:
    """All queues of one session, one row each; only the two `allocated` columns change.

    Parameters
    ----------
    names, display_names : the key and the name shown in messages
    parents : index of the parent queue, -1 for a top queue
    priorities : higher is served first
    seniority : rank by (created, name), 0 is the oldest
    quotas, limits, fair_shares, requests : amounts, inf where unlimited
    allocated, allocated_non_preemptible : amounts held now, changed by `charge`
    totals : what the cluster has
    paths : for each queue its own index and those of its ancestors, leaf to root; computed if not given
    allocatable : for each queue what it may count on, see `allocatable_share`; computed if not given
    """

    names: list[str]
    display_names: list[str]
    parents: list[int]
    priorities: list[int]
    seniority: list[int]
    quotas: list[Amounts]
    limits: list[Amounts]
    fair_shares: list[Amounts]
    requests: list[Amounts]
    allocated: list[list[float]]
    allocated_non_preemptible: list[list[float]]
    totals: Amounts
    paths: list[tuple[int, ...]] = None  # type: ignore[assignment]  # filled in __post_init__
    allocatable: list[Amounts] = None  # type: ignore[assignment]  # filled in __post_init__

    def __post_init__(self) -> None:
        """Compute paths and allocatable shares."""
        if self.paths is None:
            self.paths = [self._path(index) for index in range(len(self.names))]
        if self.allocatable is None:
            columns = zip(self.quotas, self.limits, self.fair_shares, strict=True)
            self.allocatable = [allocatable_share(*column) for column in columns]

    def _path(self, index: int) -> tuple[int, ...]:
        path = []
        while index >= 0:
            path.append(index)
            index = self.parents[index]
            if len(path) > len(self.parents):
                raise ValueError(f"queue '{self.names[path[0]]}' is its own ancestor")
        return tuple(path)

    def charge(self, queue: int, amounts: Amounts, *, preemptible: bool) -> None:
        """Add amounts to a leaf queue and all its ancestors; negative amounts are subtracted."""
        cpu, memory, gpu = amounts
        for index in self.paths[queue]:
            row = self.allocated[index]
            row[0] += cpu
            row[1] += memory
            row[2] += gpu
        if preemptible:
            return
        for index in self.paths[queue]:
            row = self.allocated_non_preemptible[index]
            row[0] += cpu
            row[1] += memory
            row[2] += gpu

    def copy_allocated(self) -> Holdings:
        """Return a copy of the allocations, for a check that must not see later changes."""
        return Holdings(
            allocated=_copy(self.allocated),
            allocated_non_preemptible=_copy(self.allocated_non_preemptible),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Holdings:
    """What some queues hold, by queue, as copied from a ledger."""

    allocated: Mapping[int, Amounts]
    allocated_non_preemptible: Mapping[int, Amounts]


def allocatable_share(quota: Amounts, limit: Amounts, fair_share: Amounts) -> Amounts:
    """Return what a queue may count on of each resource.

    It is the limit if the quota is unlimited, else the larger of quota and fair share, but at most the
    limit; inf where neither quota nor limit bounds the queue.
    """
    return tuple(
        upper if guaranteed == inf else min(max(guaranteed, fair), upper)
        for guaranteed, upper, fair in zip(quota, limit, fair_share, strict=True)
    )


def allocatable_shares(quotas: Floats, limits: Floats, fair_shares: Floats) -> Floats:
    """Return `allocatable_share` of all queues at once; arrays of shape (resources, queues)."""
    guaranteed = np.minimum(np.maximum(quotas, fair_shares), limits)
    shares: Floats = np.where(np.isinf(quotas), limits, guaranteed)
    return shares


def _copy(rows: Sequence[Sequence[float]]) -> dict[int, Amounts]:
    return {queue: (row[0], row[1], row[2]) for queue, row in enumerate(rows)}


def plus(left: Amounts, right: Amounts) -> Amounts:
    """Add two amounts."""
    return (left[0] + right[0], left[1] + right[1], left[2] + right[2])


def minus(left: Amounts, right: Amounts) -> Amounts:
    """Subtract the right amounts from the left ones."""
    return (left[0] - right[0], left[1] - right[1], left[2] - right[2])


def fits_within(amounts: Amounts, bound: Amounts) -> bool:
    """Return whether amounts stay at or below a bound in all three resources."""
    return not exceeds_somewhere(amounts, bound)


def exceeds_somewhere(amounts: Amounts, bound: Amounts) -> bool:
    """Return whether amounts are above a bound in at least one resource."""
    return (
        amounts[0] > bound[0] + TOLERANCE
        or amounts[1] > bound[1] + TOLERANCE
        or amounts[2] > bound[2] + TOLERANCE
    )


def is_weaker(left: Amounts, right: Amounts) -> bool:
    """Return whether the left share is nowhere above the right one, and below it somewhere."""
    return fits_within(left, right) and exceeds_somewhere(right, left)


def rows_of(columns: Floats) -> list[Amounts]:
    """Turn an array of shape (resources, queues) into the amounts of each queue."""
    return [tuple(row) for row in np.ascontiguousarray(columns.T).tolist()]
