"""Hierarchical division of the cluster among queues.

Three resources are divided down a tree of queues, each resource by itself. Among siblings every queue
first gets its quota, as far as it requests it. What is left is divided by priority and over-quota weight
in whole units, and the fractions that this cuts off are given out last.

One level of the tree is one flat problem: every (resource, queue) pair of the level is an entry, every
(resource, parent) pair a pool, and one round of water-filling is a handful of array operations over the
entries of all pools. Ten thousand siblings, or a thousand departments of ten queues, take about the same
few milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scheduler.core.arrays import TOLERANCE, Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class DivisionInput:
    """What queues may have and what they request.

    Parameters
    ----------
    quota, limit, weight, request, usage : shape (resources, queues)
        quota and limit are inf where unlimited; usage is past use as a share of the cluster
    priority : shape (queues,); higher is served first, after quotas
    seniority : shape (queues,); rank by (created, name), settles equal remainders
    """

    quota: Floats
    limit: Floats
    weight: Floats
    request: Floats
    usage: Floats
    priority: Ints
    seniority: Ints


def divide_tree(total: Floats, parent: Ints, queues: DivisionInput, k_value: float) -> Floats:
    """Divide the cluster among top queues, then each queue's share among its children.

    Parameters
    ----------
    total : shape (resources,); what the cluster has (millicores, bytes, GPUs)
    parent : shape (queues,); index of the parent queue, -1 for a top queue
    queues : in the same order as `parent`
    k_value : strength of the time-based term, >= 0 (negative counts as 0)

    Returns
    -------
    shape (resources, queues); the fair share of every queue at every level

    Raises
    ------
    ValueError : a parent chain that does not end at a top queue

    Notes
    -----
    A parent's own quota, limit, weight and priority count only among its siblings.
    """
    share = np.zeros_like(queues.request)
    for level in _levels(parent):
        parents, family = np.unique(parent[level], return_inverse=True)
        pools = np.empty((len(total), len(parents)))
        for column, index in enumerate(parents.tolist()):
            pools[:, column] = total if index < 0 else share[:, index]
        share[:, level] = divide_siblings(pools, family, _take(queues, level), k_value)
    return share


def divide_siblings(pools: Floats, family: Ints, queues: DivisionInput, k_value: float) -> Floats:
    """Divide pools among families of sibling queues, all resources and families at once.

    Parameters
    ----------
    pools : shape (resources, families); what the siblings of each family divide
    family : shape (queues,); the family of each queue
    queues : the queues
    k_value : strength of the time-based term, >= 0

    Returns
    -------
    shape (resources, queues); the fair shares

    Notes
    -----
    Quotas are never scaled down: their sum may exceed the pool, and then nothing is left over.
    Surplus is given in whole units unless less satisfies the queue. The last pass gives at most one
    unit to each queue whose share was rounded down, largest fraction first, without checking request
    and limit again; so a share may end up to one unit above the request.
    """
    return settle(pools, family, queues, k_value)[0]


def settle(
    pools: Floats, family: Ints, queues: DivisionInput, k_value: float, start: Floats | None = None
) -> tuple[Floats, Floats]:
    """Divide as `divide_siblings` does; return the shares and what is left of each pool.

    `start`, shape (resources, queues), is what the queues have already received.
    """
    resource_count, queue_count = queues.request.shape
    family_count = pools.shape[1]
    flat = _Entries(
        pool_of=(np.arange(resource_count)[:, None] * family_count + family[None, :]).ravel(),
        requestable=np.minimum(queues.limit, queues.request).ravel(),
        weight=queues.weight.ravel(),
        usage=queues.usage.ravel(),
        k_value=max(0.0, k_value),
    )
    total = pools.ravel()
    entitled = np.where(np.isinf(queues.quota.ravel()), total[flat.pool_of], queues.quota.ravel())
    share = np.minimum(entitled, flat.requestable)
    rest = total - _sum_by_pool(flat.pool_of, share, len(total))
    if start is not None:
        share += start.ravel()

    remainder = np.zeros(resource_count * queue_count)
    rank = np.tile(_priority_ranks(family, queues.priority), resource_count)
    for stage in range(int(rank.max(initial=-1)) + 1):
        _fill_stage(flat, np.flatnonzero(rank == stage), share, rest, remainder)
    _settle_remainders(
        flat, rank, np.tile(queues.seniority, resource_count), share, rest, remainder
    )
    return share.reshape(resource_count, queue_count), rest.reshape(pools.shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entries:
    """The (resource, queue) pairs of a level as flat arrays, shape (entries,).

    `pool_of` is the pool of each entry; `requestable` its request, cut by the limit.
    """

    pool_of: Ints
    requestable: Floats
    weight: Floats
    usage: Floats
    k_value: float


def _fill_stage(
    flat: _Entries, members: Ints, share: Floats, rest: Floats, remainder: Floats
) -> None:
    """Water-fill one priority of every pool; changes `share`, `rest` and `remainder` in place.

    All pools advance together. A pool leaves the loop as soon as its own stopping rule holds, so that
    every pool gets exactly the rounds it would get alone.
    """
    live = rest > TOLERANCE
    members = members[live[flat.pool_of[members]]]
    while members.size:
        want = flat.requestable[members] - share[members]
        members = members[want > TOLERANCE]
        want = want[want > TOLERANCE]
        pool = flat.pool_of[members]
        weight = flat.weight[members]
        weight_sum = _sum_by_pool(pool, weight, len(rest))
        normal = _ratio(weight, weight_sum[pool])
        strength = np.maximum(0.0, normal + flat.k_value * (normal - flat.usage[members]))
        strength_sum = _sum_by_pool(pool, strength, len(rest))
        offer = rest[pool] * _ratio(strength, strength_sum[pool])

        takes_part = (weight != 0) & (weight_sum[pool] != 0) & (strength_sum[pool] != 0)
        satisfied = takes_part & (want <= offer + TOLERANCE)
        rounded_down = takes_part & ~satisfied
        give = np.where(satisfied, want, np.where(rounded_down, np.floor(offer + TOLERANCE), 0.0))
        fraction = offer - give
        remainder[members[satisfied]] = 0.0
        has_fraction = rounded_down & (fraction > TOLERANCE)
        remainder[members[has_fraction]] = fraction[has_fraction]

        share[members] += give
        rest -= _sum_by_pool(pool, give, len(rest))
        goes_on = np.zeros(len(rest), dtype=np.bool_)
        goes_on[pool[satisfied & (give > 0) & (want < offer - TOLERANCE)]] = True
        goes_on &= rest > TOLERANCE
        members = members[goes_on[pool]]


def _settle_remainders(
    flat: _Entries,
    rank: Ints,
    seniority: Ints,
    share: Floats,
    rest: Floats,
    remainder: Floats,
) -> None:
    """Give one unit for each fraction cut off: by pool, priority, size of the fraction, age, name."""
    candidates = np.flatnonzero((remainder > 0) & (rest[flat.pool_of] > TOLERANCE))
    if not candidates.size:
        return
    order = np.lexsort(
        (seniority[candidates], -remainder[candidates], rank[candidates], flat.pool_of[candidates])
    )
    candidates = candidates[order]
    pool = flat.pool_of[candidates]
    starts = np.flatnonzero(np.r_[True, pool[1:] != pool[:-1]])
    position = np.arange(len(pool)) - np.repeat(starts, np.diff(np.r_[starts, len(pool)]))
    give = np.clip(rest[pool] - position, 0.0, 1.0)
    share[candidates] += give
    rest -= _sum_by_pool(pool, give, len(rest))


def _levels(parent: Ints) -> list[Ints]:
    """Group queue indices by their depth, top queues first."""
    depth = np.where(parent < 0, 0, -1)
    levels = []
    current = np.flatnonzero(depth == 0)
    while current.size:
        levels.append(current)
        inside = np.isin(parent, current) & (depth < 0)
        depth[inside] = len(levels)
        current = np.flatnonzero(depth == len(levels))
    if (depth < 0).any():
        unreached = np.flatnonzero(depth < 0).tolist()
        raise ValueError(f"queues {unreached} have no path to a top queue: a parent cycle")
    return levels


def _take(queues: DivisionInput, index: Ints) -> DivisionInput:
    return DivisionInput(
        quota=queues.quota[:, index],
        limit=queues.limit[:, index],
        weight=queues.weight[:, index],
        request=queues.request[:, index],
        usage=queues.usage[:, index],
        priority=queues.priority[index],
        seniority=queues.seniority[index],
    )


def _priority_ranks(family: Ints, priority: Ints) -> Ints:
    """Rank priorities inside each family: the highest gets 0, equal ones the same rank."""
    order = np.lexsort((-priority, family))
    sorted_family, sorted_priority = family[order], priority[order]
    is_first = np.r_[True, sorted_family[1:] != sorted_family[:-1]]
    step = np.r_[False, sorted_priority[1:] != sorted_priority[:-1]] & ~is_first
    running = np.cumsum(step)
    starts = np.flatnonzero(is_first)
    base = np.repeat(running[starts], np.diff(np.r_[starts, len(order)]))
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = running - base
    return ranks


def _sum_by_pool(pool: Ints, values: Floats, pools: int) -> Floats:
    return np.bincount(pool, weights=values, minlength=pools).astype(np.float64, copy=False)


def _ratio(part: Floats, whole: Floats) -> Floats:
    return np.divide(part, whole, out=np.zeros_like(part), where=whole != 0)
