"""The limit gate and the quota gate, and the words of their refusals."""

from __future__ import annotations

from math import inf

import pytest

from scheduler.core.fairshare.capacity import (
    CapacityReason,
    capacity_message,
    human_amount,
    refuse_over_capacity,
    refuse_over_quota,
)
from tests.scheduler.core.fairshare.ledgers import gpus, ledger, queue


def test_the_limit_of_an_ancestor_refuses() -> None:
    books = ledger(queue("top", limit=3, held=3), queue("leaf", parent="top", limit=5, held=1))
    refusal = refuse_over_capacity(books, 1, gpus(1), preemptible=True)
    assert refusal is not None
    assert (refusal.reason, refusal.queue, refusal.resource) == (CapacityReason.OVER_LIMIT, 0, 2)
    assert (refusal.bound, refusal.held, refusal.requested) == (3.0, 3.0, 1.0)


def test_filling_a_limit_exactly_is_allowed() -> None:
    books = ledger(queue("leaf", limit=3, held=2))
    assert refuse_over_capacity(books, 0, gpus(1), preemptible=True) is None


def test_a_resource_that_is_not_asked_for_is_not_checked() -> None:
    books = ledger(queue("leaf", limit=(inf, inf, 0.0), held=gpus(5)))
    assert refuse_over_capacity(books, 0, (1000.0, 0.0, 0.0), preemptible=True) is None


def test_only_firm_work_must_fit_into_quota() -> None:
    books = ledger(queue("leaf", quota=2, held=9, firm=2))
    assert refuse_over_capacity(books, 0, gpus(1), preemptible=True) is None
    refusal = refuse_over_capacity(books, 0, gpus(1), preemptible=False)
    assert refusal is not None
    assert refusal.reason is CapacityReason.NON_PREEMPTIBLE_OVER_QUOTA
    assert refuse_over_quota(books, 0, gpus(0)) is None


def test_messages_are_those_kai_writes() -> None:
    books = ledger(queue("leaf", shown="team A", limit=3, quota=2.5, held=3, firm=2))
    over_limit = refuse_over_capacity(books, 0, gpus(1.5), preemptible=True)
    assert capacity_message(over_limit, "team A") == (
        "team A quota has reached the allowable limit of GPUs. "
        "Limit is 3 GPUs, currently 3 GPUs allocated and workload requested 1.5 GPUs"
    )
    over_quota = refuse_over_quota(books, 0, gpus(1))
    assert capacity_message(over_quota, "team A") == (
        "Non-preemptible workload is over quota. Workload requested 1 GPUs, but team A quota is "
        "2.5 GPUs, while 2 GPUs are already allocated for non-preemptible pods. "
        "Use a preemptible workload to go over quota."
    )


def test_messages_use_the_unit_of_the_resource() -> None:
    books = ledger(
        queue(
            "leaf",
            limit=(1500.0, inf, inf),
            quota=(inf, 2.5e9, inf),
            held=(1000.0, 0.0, 0.0),
            firm=(0.0, 1e9, 0.0),
        )
    )
    assert capacity_message(
        refuse_over_capacity(books, 0, (600.0, 0.0, 0.0), preemptible=True), "q"
    ).endswith("Limit is 1.5 cores, currently 1 cores allocated and workload requested 0.6 cores")
    assert "requested 2 GB memory, but q quota is 2.5 GB, while 1 GB" in capacity_message(
        refuse_over_quota(books, 0, (0.0, 2e9, 0.0)), "q"
    )


@pytest.mark.parametrize(
    ("amount", "resource", "text"),
    [
        (inf, 0, "Unlimited"),
        (1500, 0, "1.5"),
        (1234567890, 1, "1.234"),
        (0.6666, 2, "0.666"),
        (0, 2, "0"),
        (100, 2, "100"),
    ],
)
def test_amounts_are_cut_to_three_decimals(amount, resource, text) -> None:
    assert human_amount(amount, resource) == text
