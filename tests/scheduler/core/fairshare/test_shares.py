"""The ledger: paths, charges at every level, and the shares derived from it."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

from scheduler.core.fairshare.shares import (
    allocatable_share,
    exceeds_somewhere,
    fits_within,
    minus,
    plus,
    rows_of,
)
from tests.scheduler.core.fairshare.ledgers import ledger, queue


def test_a_charge_reaches_every_ancestor() -> None:
    queue_ledger = ledger(
        queue("top"),
        queue("mid", parent="top"),
        queue("leaf", parent="mid"),
        queue("other", parent="top"),
    )
    queue_ledger.charge(2, (1000.0, 5.0, 2.0), preemptible=True)
    queue_ledger.charge(2, (1.0, 1.0, 1.0), preemptible=False)
    assert queue_ledger.paths[2] == (2, 1, 0)
    assert queue_ledger.allocated == [[1001.0, 6.0, 3.0]] * 3 + [[0.0, 0.0, 0.0]]
    assert queue_ledger.allocated_non_preemptible == [[1.0, 1.0, 1.0]] * 3 + [[0.0, 0.0, 0.0]]


def test_a_copy_does_not_follow_the_live_rows() -> None:
    queue_ledger = ledger(queue("a"))
    before = queue_ledger.copy_allocated()
    queue_ledger.charge(0, (0.0, 0.0, 4.0), preemptible=False)
    assert before.allocated[0] == (0.0, 0.0, 0.0)
    assert before.allocated_non_preemptible[0] == (0.0, 0.0, 0.0)
    assert queue_ledger.allocated[0] == [0.0, 0.0, 4.0]


def test_a_queue_above_itself_is_refused() -> None:
    with pytest.raises(ValueError, match="queue 'a' is its own ancestor"):
        ledger(queue("a", parent="b"), queue("b", parent="a"))


@pytest.mark.parametrize(
    ("quota", "limit", "share", "expected"),
    [
        (2, inf, 5, 5),
        (5, inf, 2, 5),
        (5, 3, 4, 3),
        (inf, 7, 2, 7),
        (inf, inf, 2, inf),
        (0, 0, 0, 0),
    ],
)
def test_what_a_queue_may_count_on(quota, limit, share, expected) -> None:
    assert allocatable_share((quota,) * 3, (limit,) * 3, (share,) * 3) == (expected,) * 3


def test_triples_add_and_compare() -> None:
    assert plus((1, 2, 3), (4, 5, 6)) == (5, 7, 9)
    assert minus((4, 5, 6), (1, 2, 3)) == (3, 3, 3)
    assert fits_within((1, 2, inf), (1, 2, inf))
    assert not fits_within((1, 2, 3), (1, 2, 2.5))
    assert exceeds_somewhere((0, 0, 3), (1, 1, 2))
    assert not exceeds_somewhere((1, 1, 2), (1, 1, 2))


def test_columns_turn_into_rows() -> None:
    assert rows_of(np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])) == [(1, 3, 5), (2, 4, 6)]
