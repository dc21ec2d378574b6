"""Each question of the order of queues, asked where all earlier ones are even."""

from __future__ import annotations

from math import inf

import pytest

from scheduler.core.fairshare.shares import is_weaker
from scheduler.core.session.policy import FairSharePolicy
from tests.scheduler.core.fairshare.ledgers import gpus, ledger, queue

NONE = (0.0, 0.0, 0.0)
FULL = (10.0, 10.0, 10.0)

CASES = {
    "within fair share before beyond it in everything": (
        queue("a", share=(1.0, 1.0, 1.0), held=(2.0, 2.0, 2.0)),
        queue("b", share=FULL, held=(9.0, 9.0, 9.0)),
        "b",
    ),
    "beyond fair share in one resource is not beyond it": (
        queue("a", share=(9.0, 9.0, 1.0), quota=(9.0, 9.0, 9.0), held=(2.0, 2.0, 2.0)),
        queue("b", share=FULL, quota=(1.0, 1.0, 1.0), held=(2.0, 2.0, 2.0)),
        "a",
    ),
    "within quota before beyond it": (
        queue("a", quota=1, share=5, held=1),
        queue("b", quota=9, share=9, held=8),
        "b",
    ),
    "higher priority first": (
        queue("a", priority=1, quota=5, share=5),
        queue("b", priority=2, quota=5, share=5, held=3),
        "b",
    ),
    "who has no share of a resource goes last": (
        queue("a", quota=(inf, inf, 0.0), share=(inf, inf, 0.0), held=gpus(0)),
        queue("b", quota=(inf, inf, 0.5), share=(inf, inf, 0.5), held=gpus(0)),
        "b",
    ),
    "smaller dominant share with the candidate first": (
        queue("a", quota=8, share=8, held=4),
        queue("b", quota=8, share=8, held=2),
        "b",
    ),
    "weaker queue first": (queue("a", quota=8, share=8), queue("b", quota=4, share=4), "b"),
    "older queue first": (queue("a", quota=4, share=4), queue("b", quota=4, share=4), "a"),
}


@pytest.mark.parametrize("case", CASES)
def test_each_question(case) -> None:
    left, right, first = CASES[case]
    queue_ledger = ledger(left, right)
    candidate = gpus(1) if "candidate" in case or "no share" in case or "quota" in case else NONE
    policy = FairSharePolicy(queue_ledger)
    keys = {name: policy.key(index, candidate) for index, name in enumerate(queue_ledger.names)}
    other = "b" if first == "a" else "a"
    assert keys[first] < keys[other]
    assert not keys[other] < keys[first]


def test_without_the_candidate_decides_between_equal_totals() -> None:
    queue_ledger = ledger(
        queue("a", quota=8, share=8, held=3), queue("b", quota=8, share=8, held=2)
    )
    policy = FairSharePolicy(queue_ledger)
    assert policy.key(1, gpus(2)) < policy.key(0, gpus(1))


def test_victims_count_as_gone() -> None:
    queue_ledger = ledger(
        queue("a", quota=4, share=4, held=8), queue("b", quota=4, share=4, held=7)
    )
    policy = FairSharePolicy(queue_ledger)
    assert policy.key(1, NONE) < policy.key(0, NONE)
    assert policy.key(0, NONE, gpus(2)) < policy.key(1, NONE)


def test_weaker_needs_to_be_below_everywhere() -> None:
    assert is_weaker((1, 1, 1), (1, 1, 2))
    assert not is_weaker((1, 1, 1), (1, 1, 1))
    assert not is_weaker((1, 2, 1), (2, 1, 1))
    assert is_weaker((1, 1, 5), (inf, inf, inf))


def test_float_noise_does_not_decide_between_queues() -> None:
    parts = 0.1 + 0.1 + 0.1
    assert parts > 0.3
    queue_ledger = ledger(
        queue("a", quota=0.3, share=0.3, held=parts), queue("b", quota=0.3, share=0.3, held=0.3)
    )
    policy = FairSharePolicy(queue_ledger)
    assert policy.key(0, NONE) < policy.key(1, NONE)
    assert policy.key(0, NONE)[1] is policy.key(1, NONE)[1] is False


def test_what_victims_leave_of_nothing_is_no_use_without_a_share() -> None:
    left = 0.1 + 0.2 - 0.3
    assert left > 0
    queue_ledger = ledger(queue("a", quota=0, share=0, held=left), queue("b", quota=0, share=0))
    policy = FairSharePolicy(queue_ledger)
    assert policy.key(0, NONE) < policy.key(1, NONE)
