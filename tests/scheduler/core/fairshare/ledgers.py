"""Ledgers of a few queues in one line each, for tests of queue arithmetic."""

from __future__ import annotations

from math import inf
from typing import Any

from scheduler.core.fairshare.shares import QueueLedger

UNLIMITED = (inf, inf, inf)


def gpus(amount: float) -> tuple[float, float, float]:
    """A triple with GPUs only; CPU and memory do not matter."""
    return (0.0, 0.0, float(amount))


def bound(amount: float) -> tuple[float, float, float]:
    """A bound on GPUs only."""
    return (inf, inf, float(amount))


def queue(name: str, **values: Any) -> dict[str, Any]:
    """One queue: quota, share, limit, held, non_preemptible as GPUs, or as triples."""
    return {"name": name, **values}


def ledger(*rows: dict[str, Any], total: float = 100.0) -> QueueLedger:
    """Build a ledger; unnamed bounds are unlimited, what is held is nothing."""
    names = [row["name"] for row in rows]

    def triples(key: str, default: Any, lift: Any) -> list[Any]:
        values = [row.get(key, default) for row in rows]
        return [value if isinstance(value, tuple) else lift(value) for value in values]

    return QueueLedger(
        names=names,
        display_names=[row.get("shown", row["name"]) for row in rows],
        parents=[names.index(row["parent"]) if row.get("parent") else -1 for row in rows],
        priorities=[row.get("priority", 100) for row in rows],
        seniority=list(range(len(rows))),
        quotas=triples("quota", UNLIMITED, bound),
        limits=triples("limit", UNLIMITED, bound),
        fair_shares=triples("share", UNLIMITED, bound),
        requests=triples("request", 0, gpus),
        allocated=[list(amounts) for amounts in triples("held", 0, gpus)],
        allocated_non_preemptible=[
            list(amounts) for amounts in triples("non_preemptible", 0, gpus)
        ],
        totals=(1000.0, 1000.0, total),
    )
