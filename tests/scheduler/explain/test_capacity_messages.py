"""The words of refusals by limit and quota, and amounts as text."""

from __future__ import annotations

from math import inf

import pytest

from scheduler.core.arrays import Amounts
from scheduler.core.cluster.amount_text import human_amount
from scheduler.core.fairshare.capacity import (
    CapacityReason,
    CapacityRefusal,
    refuse_at_gate,
    refuse_over_capacity,
)
from scheduler.core.fairshare.shares import QueueLedger
from scheduler.explain.capacity import capacity_message
from tests.scheduler.core.fairshare.ledgers import gpus, ledger, queue


def refused_by_quota(queue_ledger: QueueLedger, requested: Amounts) -> CapacityRefusal:
    gate = CapacityReason.NON_PREEMPTIBLE_OVER_QUOTA
    refusal = refuse_at_gate(gate, queue_ledger, 0, requested, preemptible=False)
    assert refusal is not None
    return refusal


def test_messages_are_those_kai_writes() -> None:
    queue_ledger = ledger(
        queue("leaf", shown="team A", limit=3, quota=2.5, held=3, non_preemptible=2)
    )
    over_limit = refuse_over_capacity(queue_ledger, 0, gpus(1.5), preemptible=True)
    assert capacity_message(over_limit, "team A") == (
        "team A quota has reached the allowable limit of GPUs. "
        "Limit is 3 GPUs, currently 3 GPUs allocated and workload requested 1.5 GPUs"
    )
    over_quota = refused_by_quota(queue_ledger, gpus(1))
    assert capacity_message(over_quota, "team A") == (
        "Non-preemptible workload is over quota. Workload requested 1 GPUs, but team A quota is "
        "2.5 GPUs, while 2 GPUs are already allocated for non-preemptible pods. "
        "Use a preemptible workload to go over quota."
    )


def test_messages_use_the_unit_of_the_resource() -> None:
    queue_ledger = ledger(
        queue(
            "leaf",
            limit=(1500.0, inf, inf),
            quota=(inf, 2.5e9, inf),
            held=(1000.0, 0.0, 0.0),
            non_preemptible=(0.0, 1e9, 0.0),
        )
    )
    assert capacity_message(
        refuse_over_capacity(queue_ledger, 0, (600.0, 0.0, 0.0), preemptible=True), "q"
    ).endswith("Limit is 1.5 cores, currently 1 cores allocated and workload requested 0.6 cores")
    assert "requested 2 GB memory, but q quota is 2.5 GB, while 1 GB" in capacity_message(
        refused_by_quota(queue_ledger, (0.0, 2e9, 0.0)), "q"
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
