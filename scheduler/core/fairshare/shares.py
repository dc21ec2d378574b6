"""The ledger of queues: what each is entitled to, holds and asks for, as plain triples.

Division works on arrays of all queues; the questions asked thousands of times in a cycle (may
this gang run, which queue is next, may this victim be taken) look at one queue at a time. For
three numbers plain Python is several times faster than an array, so the ledger keeps a triple
`(cpu in millicores, memory in bytes, GPUs)` per queue. Unlimited is `inf` everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from scheduler.core.arrays import CPU_INDEX, GPU_INDEX, MEMORY_INDEX, Amounts, Floats

RESOURCES = (CPU_INDEX, MEMORY_INDEX, GPU_INDEX)


@dataclass(slots=True, kw_only=True)
class QueueLedger:
    """All queues of one session, one row each; only the two `allocated` rows ever change.

    Parameters
    ----------
    names, display_names : the key and the name shown in messages
    parents : index of the parent queue, -1 for a top queue
    priorities : higher is served first
    seniority : rank by (created, name), 0 is the oldest
    quotas, limits, fair_shares, requests : triples, inf where unlimited
    allocated, allocated_non_preemptible : live triples, moved by `charge`
    totals : what the cluster has
    paths : for each queue its own index and those of its ancestors, leaf to root; filled here
    allocatable : for each queue the share it may count on, see `allocatable_share`; filled here
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
        """Derive what depends on the rows given."""
        self.paths = [self._path(index) for index in range(len(self.names))]
        self.allocatable = [
            allocatable_share(quota, limit, share)
            for quota, limit, share in zip(self.quotas, self.limits, self.fair_shares, strict=True)
        ]

    def _path(self, index: int) -> tuple[int, ...]:
        path = []
        while index >= 0:
            path.append(index)
            index = self.parents[index]
            if len(path) > len(self.parents):
                raise ValueError(f"queue '{self.names[path[0]]}' is its own ancestor")
        return tuple(path)

    def charge(self, queue: int, amounts: Amounts, *, preemptible: bool) -> None:
        """Add amounts to a leaf queue and all its ancestors (negative amounts give back)."""
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
        """Copy the live rows, for a check that must not see what happens after."""
        return Holdings(
            allocated=[tuple(row) for row in self.allocated],
            allocated_non_preemptible=[tuple(row) for row in self.allocated_non_preemptible],
        )

    def holdings(self) -> Holdings:
        """Return a view of the live rows."""
        return Holdings(
            allocated=self.allocated, allocated_non_preemptible=self.allocated_non_preemptible
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Holdings:
    """What every queue holds: the live rows of a ledger, or a copy of them."""

    allocated: Sequence[Amounts]
    allocated_non_preemptible: Sequence[Amounts]


def allocatable_share(quota: Amounts, limit: Amounts, fair_share: Amounts) -> Amounts:
    """Return what a queue may count on: its limit if the quota is unlimited, else the larger
    of quota and fair share, cut by the limit.

    Parameters
    ----------
    quota, limit, fair_share : triples; inf is unlimited

    Returns
    -------
    a triple; inf where neither quota nor limit bounds the queue
    """
    return tuple(
        upper if guaranteed == inf else min(max(guaranteed, fair), upper)
        for guaranteed, upper, fair in zip(quota, limit, fair_share, strict=True)
    )


def dominant_share(allocated: Amounts, allocatable: Amounts, totals: Amounts) -> float:
    """Return the largest ratio of allocated to allocatable over the resources, at least 0.

    Notes
    -----
    An unlimited share is measured against the cluster, even for a nested queue; a share of
    nothing counts a thousandfold, so that a queue with no right to a resource comes last.
    """
    largest = 0.0
    for resource in RESOURCES:
        share, amount = allocatable[resource], allocated[resource]
        measure = totals[resource] if share == inf else share
        ratio = amount / measure if measure else amount * 1000.0
        if ratio > largest:
            largest = ratio
    return largest


def plus(left: Amounts, right: Amounts) -> Amounts:
    """Add two triples."""
    return (left[0] + right[0], left[1] + right[1], left[2] + right[2])


def minus(left: Amounts, right: Amounts) -> Amounts:
    """Subtract the right triple from the left one."""
    return (left[0] - right[0], left[1] - right[1], left[2] - right[2])


def total_of(chunks: Iterable[Amounts]) -> Amounts:
    """Add up any number of triples."""
    cpu = memory = gpu = 0.0
    for chunk in chunks:
        cpu += chunk[0]
        memory += chunk[1]
        gpu += chunk[2]
    return (cpu, memory, gpu)


def fits_within(amounts: Amounts, bound: Amounts) -> bool:
    """Tell whether amounts stay at or below a bound in all three resources."""
    return amounts[0] <= bound[0] and amounts[1] <= bound[1] and amounts[2] <= bound[2]


def exceeds_somewhere(amounts: Amounts, bound: Amounts) -> bool:
    """Tell whether amounts are above a bound in at least one resource."""
    return amounts[0] > bound[0] or amounts[1] > bound[1] or amounts[2] > bound[2]


def rows_of(columns: Floats) -> list[Amounts]:
    """Turn an array of shape (resources, queues) into one triple per queue."""
    return [tuple(row) for row in np.ascontiguousarray(columns.T).tolist()]
