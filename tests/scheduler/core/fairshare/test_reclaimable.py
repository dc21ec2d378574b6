"""The rules of taking from other queues, on the worked examples and at every level."""

from __future__ import annotations

from math import inf

import pytest

from scheduler.core.fairshare.reclaimable import (
    QuotaViolation,
    Reclaimer,
    SaturationViolation,
    StrategyViolation,
    can_reclaim,
    diverging_pair,
    find_violation,
    may_hold_victims,
    may_take_above_quota,
    may_take_above_share,
    stays_within_quota,
)
from tests.scheduler.core.fairshare.ledgers import gpus, ledger, queue


def reclaimer(index: int, wants: float = 1, *, preemptible: bool = True) -> Reclaimer:
    return Reclaimer(queue=index, required=gpus(wants), preemptible=preemptible)


def violation(queue_ledger, who, chunks, multiplier=1.0):
    return find_violation(queue_ledger, queue_ledger.copy_allocated(), who, chunks, multiplier)


def pair(a_held: float, b_held: float, *, a_share: float = 2, b_share: float = 2):
    return ledger(
        queue("A", quota=2, share=a_share, held=a_held),
        queue("B", quota=2, share=b_share, held=b_held),
    )


def test_only_a_queue_within_its_fair_share_may_look() -> None:
    assert can_reclaim(pair(1, 3), reclaimer(0))
    assert not can_reclaim(pair(2, 2), reclaimer(0))


def test_non_preemptible_work_must_also_stay_within_quota() -> None:
    queue_ledger = ledger(queue("A", quota=1, share=5, non_preemptible=1))
    assert can_reclaim(queue_ledger, reclaimer(0))
    assert not can_reclaim(queue_ledger, reclaimer(0, preemptible=False))


def test_a_share_of_cpu_that_is_too_small_refuses_a_gpu_claim() -> None:
    queue_ledger = ledger(queue("A", share=(1000.0, inf, 5.0)))
    who = Reclaimer(queue=0, required=(2000.0, 0.0, 1.0), preemptible=True)
    assert not can_reclaim(queue_ledger, who)


def ranked(own: int, other: int):
    """Return two queues at quota and share, with these priorities; A holds nothing yet."""
    return ledger(
        queue("A", quota=2, share=2, priority=own),
        queue("B", quota=2, share=2, held=2, priority=other),
    )


def by_priority(wants: float = 1) -> Reclaimer:
    return Reclaimer(queue=0, required=gpus(wants), preemptible=True, by_priority=True)


@pytest.mark.parametrize(
    ("own", "other", "is_allowed"), [(2, 1, True), (1, 1, False), (1, 2, False)]
)
def test_by_priority_only_a_higher_queue_takes_within_quota(own, other, is_allowed) -> None:
    broken = violation(ranked(own, other), by_priority(), {1: [gpus(1)]})
    assert (broken is None) is is_allowed
    assert isinstance(
        violation(ranked(own, other), reclaimer(0), {1: [gpus(1)]}), StrategyViolation
    )


def test_by_priority_nothing_is_taken_for_work_over_the_own_quota() -> None:
    queue_ledger = ledger(
        queue("A", quota=2, share=4, held=1, priority=9),
        queue("B", quota=2, share=2, held=2, priority=1),
    )
    assert violation(queue_ledger, by_priority(1), {1: [gpus(1)]}) is None
    assert isinstance(violation(queue_ledger, by_priority(2), {1: [gpus(1)]}), StrategyViolation)


def test_by_priority_a_queue_below_its_quota_may_hold_victims_too() -> None:
    queue_ledger = ledger(
        queue("A", quota=2, share=2, priority=9),
        queue("B", quota=2, share=2, held=1, priority=1),
    )
    assert may_hold_victims(queue_ledger, by_priority(), 1)
    assert not may_hold_victims(queue_ledger, reclaimer(0), 1)


def test_taking_what_is_above_the_share_is_just() -> None:
    assert violation(pair(1, 3), reclaimer(0), {1: [gpus(1)]}) is None


def test_taking_from_a_queue_at_its_share_is_not() -> None:
    violated = violation(pair(1, 2), reclaimer(0), {1: [gpus(1)]})
    assert violated == StrategyViolation(queue=1, remaining=(0.0, 0.0, 2.0))


def test_the_last_chunk_may_dive_below_the_share() -> None:
    assert violation(pair(0, 3), reclaimer(0, 2), {1: [gpus(2)]}) is None


def test_elastic_chunks_are_asked_one_by_one() -> None:
    queue_ledger = ledger(
        queue("A", quota=0, share=4, held=1), queue("B", quota=2, share=2, held=3)
    )
    violated = violation(queue_ledger, reclaimer(0, 2), {1: [gpus(1), gpus(1)]})
    assert violated == StrategyViolation(queue=1, remaining=(0.0, 0.0, 2.0))


def test_a_claim_within_quota_may_take_what_is_above_quota_though_within_share() -> None:
    queue_ledger = ledger(
        queue("A", quota=4, share=4, held=1), queue("B", quota=2, share=6, held=5)
    )
    assert violation(queue_ledger, reclaimer(0, 1), {1: [gpus(1)]}) is None
    assert violation(queue_ledger, reclaimer(0, 4), {1: [gpus(4)]}) is not None


def departments():
    return ledger(
        queue("d1", quota=4, share=4, held=4),
        queue("d2", quota=3, share=3, held=7),
        queue("d1/p1", parent="d1", quota=3, share=1),
        queue("d2/p1", parent="d2", quota=3, share=3, held=7),
    )


def test_queues_are_compared_where_their_paths_part() -> None:
    queue_ledger = departments()
    assert diverging_pair(queue_ledger, 2, 3) == (0, 1)
    assert violation(queue_ledger, reclaimer(2), {3: [gpus(1)]}) is None


def test_saturation_is_compared_at_every_level() -> None:
    violated = violation(departments(), reclaimer(2), {3: [gpus(1)]}, 2.0)
    assert violated == SaturationViolation(
        queue=0, sibling=1, resource=2, ratio=1.25, sibling_ratio=2.0
    )


def test_a_multiplier_below_one_counts_as_one() -> None:
    assert violation(departments(), reclaimer(2), {3: [gpus(1)]}, 0.1) is None


def test_non_preemptible_work_must_fit_into_the_quota_of_every_ancestor() -> None:
    queue_ledger = ledger(
        queue("top", quota=1, share=9),
        queue("a", parent="top", quota=5, share=5),
        queue("b", quota=0, share=1, held=5),
    )
    assert violation(queue_ledger, reclaimer(1, 2), {2: [gpus(2)]}) is None
    violated = violation(queue_ledger, reclaimer(1, 2, preemptible=False), {2: [gpus(2)]})
    assert violated == QuotaViolation(queue=0)


def test_a_zero_share_counts_as_infinitely_used() -> None:
    queue_ledger = ledger(
        queue("A", quota=0, share=(inf, inf, 0.0)), queue("B", quota=0, share=1, held=4)
    )
    violated = violation(queue_ledger, reclaimer(0), {1: [gpus(1)]})
    assert isinstance(violated, SaturationViolation)
    assert violated.ratio == inf


def test_resources_nobody_touches_are_not_compared() -> None:
    queue_ledger = ledger(
        queue("A", quota=(inf, inf, 4.0), share=(10.0, inf, 4.0), held=(50.0, 0.0, 0.0)),
        queue("B", quota=(inf, inf, 0.0), share=(10.0, inf, 0.0), held=(60.0, 0.0, 4.0)),
    )
    assert violation(queue_ledger, reclaimer(0), {1: [gpus(1)]}) is None


def test_nothing_taken_is_always_just() -> None:
    assert violation(pair(1, 2), reclaimer(0), {}) is None


FILTER = {
    "claim within quota, other above quota": (0, 3, True),
    "claim within quota, other at quota": (0, 2, True),
    "claim within quota, other below quota": (0, 1, False),
    "claim beyond quota, other above share": (2, 4, True),
    "claim beyond quota, other at share": (2, 3, False),
}


@pytest.mark.parametrize("case", FILTER)
def test_which_queues_are_worth_a_look(case) -> None:
    a_held, b_held, keeps = FILTER[case]
    queue_ledger = pair(a_held, b_held, a_share=4, b_share=3)
    assert may_hold_victims(queue_ledger, reclaimer(0), 1) is keeps


def test_the_rules_above_share_and_above_quota_alone() -> None:
    queue_ledger = pair(1, 3)
    assert may_take_above_share(queue_ledger, 1, gpus(2.5))
    assert not may_take_above_share(queue_ledger, 1, gpus(2))
    assert may_take_above_quota(queue_ledger, 1, gpus(3), is_within_quota=True)
    assert not may_take_above_quota(queue_ledger, 1, gpus(3), is_within_quota=False)
    assert not may_take_above_quota(queue_ledger, 1, gpus(2), is_within_quota=True)
    assert stays_within_quota(queue_ledger, 0, gpus(1), gpus(1))
    assert not stays_within_quota(queue_ledger, 0, gpus(2), gpus(1))


#: Three parts of 0.1 GPU; more than 0.3 in floats.
THREE_PARTS = 0.1 + 0.1 + 0.1


def test_a_queue_may_reclaim_up_to_a_share_that_its_parts_fill_exactly() -> None:
    queue_ledger = ledger(
        queue("A", quota=0.3, share=0.3, held=0.1 + 0.1, non_preemptible=0.1 + 0.1)
    )
    assert THREE_PARTS > 0.3
    assert can_reclaim(queue_ledger, reclaimer(0, 0.1, preemptible=False))
    assert not can_reclaim(queue_ledger, reclaimer(0, 0.101))


def test_a_queue_whose_parts_fill_its_quota_exactly_loses_nothing() -> None:
    queue_ledger = ledger(
        queue("A", quota=2, share=2, held=0),
        queue("B", quota=0.3, share=0.3, held=THREE_PARTS),
    )
    assert not may_take_above_share(queue_ledger, 1, gpus(THREE_PARTS))
    assert not may_take_above_quota(queue_ledger, 1, gpus(THREE_PARTS), is_within_quota=True)
    assert violation(queue_ledger, reclaimer(0), {1: [gpus(0.1)]}) is not None
    over = ledger(queue("A", quota=2), queue("B", quota=0.3, share=0.3, held=THREE_PARTS + 0.1))
    assert violation(over, reclaimer(0), {1: [gpus(0.1)]}) is None


def test_a_queue_held_just_at_its_quota_counts_neither_as_above_nor_as_below() -> None:
    below = ledger(queue("A", quota=2), queue("B", quota=THREE_PARTS, share=0.3, held=0.3))
    above = ledger(queue("A", quota=2), queue("B", quota=0.3, share=0.3, held=THREE_PARTS))
    assert may_hold_victims(below, reclaimer(0), 1) is may_hold_victims(above, reclaimer(0), 1)


def test_a_reclaimer_at_its_share_is_not_saturated_by_float_noise() -> None:
    queue_ledger = ledger(
        queue("A", quota=0.3, share=0.3, held=0.1 + 0.1),
        queue("B", quota=0.3, share=0.3, held=0.4),
    )
    assert violation(queue_ledger, reclaimer(0, 0.1), {1: [gpus(0.2)]}) is None
