"""The limit gate and the quota gate."""

from __future__ import annotations

from math import inf

import pytest

from scheduler.core.fairshare.capacity import (
    CapacityReason,
    refuse_at_gate,
    refuse_over_capacity,
)
from tests.scheduler.core.fairshare.ledgers import gpus, ledger, queue


def test_the_limit_of_an_ancestor_refuses() -> None:
    queue_ledger = ledger(
        queue("top", limit=3, held=3), queue("leaf", parent="top", limit=5, held=1)
    )
    refusal = refuse_over_capacity(queue_ledger, 1, gpus(1), preemptible=True)
    assert refusal is not None
    assert (refusal.reason, refusal.queue, refusal.resource) == (CapacityReason.OVER_LIMIT, 0, 2)
    assert (refusal.bound, refusal.held, refusal.requested) == (3.0, 3.0, 1.0)


def test_filling_a_limit_exactly_is_allowed() -> None:
    queue_ledger = ledger(queue("leaf", limit=3, held=2))
    assert refuse_over_capacity(queue_ledger, 0, gpus(1), preemptible=True) is None


def test_a_resource_that_is_not_asked_for_is_not_checked() -> None:
    queue_ledger = ledger(queue("leaf", limit=(inf, inf, 0.0), held=gpus(5)))
    assert refuse_over_capacity(queue_ledger, 0, (1000.0, 0.0, 0.0), preemptible=True) is None


def test_only_non_preemptible_work_must_fit_into_quota() -> None:
    queue_ledger = ledger(queue("leaf", quota=2, held=9, non_preemptible=2))
    assert refuse_over_capacity(queue_ledger, 0, gpus(1), preemptible=True) is None
    refusal = refuse_over_capacity(queue_ledger, 0, gpus(1), preemptible=False)
    assert refusal is not None
    assert refusal.reason is CapacityReason.NON_PREEMPTIBLE_OVER_QUOTA
    gate = CapacityReason.NON_PREEMPTIBLE_OVER_QUOTA
    assert refuse_at_gate(gate, queue_ledger, 0, gpus(0), preemptible=False) is None


@pytest.mark.parametrize(("held", "more", "bound"), [(0.1, 0.2, 0.3), (2.2, 1.1, 3.3)])
def test_float_noise_does_not_exceed_a_limit_or_quota(held, more, bound) -> None:
    assert held + more > bound
    queue_ledger = ledger(queue("leaf", limit=bound, quota=bound, held=held, non_preemptible=held))
    assert refuse_over_capacity(queue_ledger, 0, gpus(more), preemptible=False) is None
    assert refuse_over_capacity(queue_ledger, 0, gpus(more + 0.001), preemptible=False) is not None
