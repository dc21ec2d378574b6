"""Tables of queue arithmetic: each row is a small set of queues, a question and its answer."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any

import numpy as np

from scheduler.core.arrays import Amounts
from scheduler.core.fairshare.capacity import (
    CapacityReason,
    refuse_at_gate,
    refuse_over_capacity,
)
from scheduler.core.fairshare.division import DivisionInput, divide_tree, settle
from scheduler.core.fairshare.reclaimable import (
    Reclaimer,
    can_reclaim,
    find_violation,
    may_hold_victims,
    may_take_above_quota,
    may_take_above_share,
    stays_within_quota,
)
from scheduler.core.fairshare.shares import QueueLedger
from scheduler.core.session.policy import FairSharePolicy
from scheduler.tools.conformance.verdict import Mismatch, compare_numbers, compare_values

Case = Mapping[str, Any]

KINDS = ("cpu_millis", "memory_bytes", "gpu")


def flat_division(case: Case) -> list[Mismatch]:
    """Divide one pool of each resource among siblings."""
    queues: Mapping[str, Any] = case["queues"]
    names = list(queues)
    mismatches: list[Mismatch] = []
    for kind, block in case["resources"].items():
        rows = [block["queues"].get(name, {}) for name in names]
        start = np.array([[row.get("initial_fair_share", 0) for row in rows]], dtype=float)
        share, remainder = settle(
            np.array([[block["total"]]], dtype=float),
            np.zeros(len(names), dtype=np.int64),
            _demand(queues, [rows]),
            float(case.get("k_value", 0)),
            start,
        )
        for name, actual in zip(names, share[0], strict=True):
            expected = block["expected_fair_share"].get(name, 0)
            mismatches += compare_numbers(f"{kind} fair share of {name}", expected, actual)
        if "expected_remaining" in block:
            remaining = max(0.0, float(remainder[0, 0]))
            mismatches += compare_numbers(
                f"{kind} remaining", block["expected_remaining"], remaining
            )
    return mismatches


def hierarchical_fair_share(case: Case) -> list[Mismatch]:
    """Divide the cluster among a tree of queues."""
    queues: Mapping[str, Any] = case["queues"]
    names = list(queues)
    blocks = [[queues[name].get(kind, {}) for name in names] for kind in KINDS]
    share = divide_tree(
        np.array([case["total"].get(kind, 0) for kind in KINDS], dtype=float),
        np.array(_parents(queues, names), dtype=np.int64),
        _demand(queues, blocks),
        float(case.get("k_value", 0)),
    )
    mismatches: list[Mismatch] = []
    for name, expected in case["expected_fair_share"].items():
        for kind, amount in expected.items():
            actual = float(share[KINDS.index(kind), names.index(name)])
            mismatches += compare_numbers(f"{kind} fair share of {name}", amount, actual)
    return mismatches


def queue_order(case: Case) -> list[Mismatch]:
    """Order two sibling queues; equal in everything and equally old, the right one goes first."""
    queues = {"right": case["right"], "left": case["left"]}
    ledger = read_ledger(queues, case["total"], tree=False)
    policy = FairSharePolicy(ledger)
    left = policy.key(1, _triple(case["left_job_request"]))
    right = policy.key(0, _triple(case["right_job_request"]))
    return compare_values(
        "order", case["expected"], "left_first" if left < right else "right_first"
    )


def can_reclaim_table(case: Case) -> list[Mismatch]:
    """Judge whether this pod group may look for victims at all."""
    ledger = read_ledger(case["queues"])
    actual = can_reclaim(ledger, _reclaimer(case["reclaimer"], ledger))
    return compare_values("can reclaim", case["expected"], actual)


def victim_filter(case: Case) -> list[Mismatch]:
    """Judge whether this queue may hold victims for the pod group."""
    ledger = read_ledger(case["queues"])
    victim = ledger.names.index(case["victim_queue"])
    actual = may_hold_victims(ledger, _reclaimer(case["reclaimer"], ledger), victim)
    return compare_values("keeps victim", case["expected"], actual)


def reclaimable(case: Case) -> list[Mismatch]:
    """Judge whether these victims may be evicted for the pod group."""
    ledger = read_ledger(case["queues"])
    chunks = {
        ledger.names.index(name): [_triple(chunk) for chunk in taken]
        for name, taken in case["victims_by_queue"].items()
    }
    violation = find_violation(
        ledger,
        ledger.copy_allocated(),
        _reclaimer(case["reclaimer"], ledger),
        chunks,
        float(case.get("saturation_multiplier", 1)),
    )
    mismatches = compare_values("reclaimable", case["expected"], violation is None)
    return [
        Mismatch(where=f"{miss.where} ({violation})", expected=miss.expected, actual=miss.actual)
        for miss in mismatches
    ]


def reclaim_strategies(case: Case) -> list[Mismatch]:
    """Judge one of the two rules that allow evicting a chunk."""
    queues = {"reclaimer": case["reclaimer_queue"], "reclaimee": case["reclaimee_queue"]}
    ledger = read_ledger(queues, tree=False)
    remaining = _triple(case["reclaimee_remaining"])
    if case["strategy"] == "maintain_fair_share":
        actual = may_take_above_share(ledger, 1, remaining)
    else:
        required = _triple(case["reclaimer_request"])
        is_within_quota = stays_within_quota(ledger, 0, ledger.allocated[0], required)
        actual = may_take_above_quota(ledger, 1, remaining, is_within_quota=is_within_quota)
    return compare_values(case["strategy"], case["expected"], actual)


def capacity_policy(case: Case) -> list[Mismatch]:
    """Judge the limit and quota checks."""
    ledger = read_ledger(case["queues"])
    queue = ledger.names.index(case["job_queue"])
    requested, preemptible = _triple(case["requested"]), bool(case["job_preemptible"])
    if case["check"] == "non_preemptible_over_quota":
        gate = CapacityReason.NON_PREEMPTIBLE_OVER_QUOTA
        refusal = (
            None
            if preemptible
            else refuse_at_gate(gate, ledger, queue, requested, preemptible=False)
        )
    else:
        refusal = refuse_over_capacity(ledger, queue, requested, preemptible=preemptible)
    expected = case["expected"]
    mismatches = compare_values("schedulable", expected["schedulable"], refusal is None)
    if refusal is not None and "reason" in expected:
        mismatches += compare_values("reason", expected["reason"], str(refusal.reason))
    return mismatches


def read_ledger(
    queues: Mapping[str, Any], total: Mapping[str, Any] | None = None, *, tree: bool = True
) -> QueueLedger:
    """Build a ledger from the queue attributes of a table row; what is missing is 0."""
    names = list(queues)
    rows = list(queues.values())

    def triples(key: str, unlimited: float = inf) -> list[tuple[float, ...]]:
        return [
            tuple(_amount(row.get(kind, {}).get(key, 0), unlimited) for kind in KINDS)
            for row in rows
        ]

    return QueueLedger(
        names=names,
        display_names=names,
        parents=_parents(queues, names) if tree else [-1] * len(names),
        priorities=[int(row.get("priority", 100)) for row in rows],
        seniority=_seniority(queues),
        quotas=list(triples("quota")),
        limits=list(triples("limit")),
        fair_shares=list(triples("fair_share")),
        requests=list(triples("request", -1)),
        allocated=[list(row) for row in triples("allocated", -1)],
        allocated_non_preemptible=[list(row) for row in triples("allocated_non_preemptible", -1)],
        totals=_triple(total or {}),
    )


def _demand(queues: Mapping[str, Any], blocks: list[list[Mapping[str, Any]]]) -> DivisionInput:
    def columns(key: str, unlimited: float = -1) -> np.ndarray[Any, np.dtype[np.float64]]:
        return np.array(
            [[_amount(block.get(key, 0), unlimited) for block in row] for row in blocks],
            dtype=float,
        )

    return DivisionInput(
        quota=columns("quota", inf),
        limit=columns("limit", inf),
        weight=columns("over_quota_weight"),
        request=columns("request"),
        usage=columns("usage"),
        priority=np.array([row.get("priority", 100) for row in queues.values()], dtype=np.int64),
        seniority=np.array(_seniority(queues), dtype=np.int64),
    )


def _amount(value: float | None, unlimited: float) -> float:
    if value is None:
        return 0.0
    return unlimited if value == -1 else float(value)


def _triple(amounts: Mapping[str, Any]) -> Amounts:
    cpu, memory, gpu = (float(amounts.get(kind, 0)) for kind in KINDS)
    return (cpu, memory, gpu)


def _parents(queues: Mapping[str, Any], names: list[str]) -> list[int]:
    above = [queues[name].get("parent") for name in names]
    return [names.index(parent) if parent in queues else -1 for parent in above]


def _seniority(queues: Mapping[str, Any]) -> list[int]:
    """Rank by (created, name); in `queue_order` the names left and right settle a tie."""
    names = list(queues)
    tie = {"right": "0", "left": "1"}
    order = sorted(names, key=lambda name: (queues[name].get("created") or "", tie.get(name, name)))
    return [order.index(name) for name in names]


def _reclaimer(block: Mapping[str, Any], ledger: QueueLedger) -> Reclaimer:
    return Reclaimer(
        queue=ledger.names.index(block["queue"]),
        required=_triple(block["required"]),
        preemptible=bool(block["preemptible"]),
    )
