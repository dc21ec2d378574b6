"""A tree of 2,000 queues, as names and as objects of the cluster."""

from __future__ import annotations

from typing import Any

QUEUES = 2_000
ROOTS, MIDDLES = 10, 190


def queue_parents() -> dict[str, str]:
    """Return queue -> parent, parents first: 10 roots, 190 departments, 1,800 teams."""
    parents = {f"root-{number}": "" for number in range(ROOTS)}
    parents |= {f"dept-{number}": f"root-{number % ROOTS}" for number in range(MIDDLES)}
    teams = QUEUES - ROOTS - MIDDLES
    return parents | {f"team-{number}": f"dept-{number % MIDDLES}" for number in range(teams)}


def plain_queue(name: str, parent: str = "", quota: float = 0) -> dict[str, Any]:
    """Return a queue with a quota of GPUs and no limits."""
    amounts = {"quota": 0, "limit": -1, "overQuotaWeight": 1}
    resources = {"gpu": {**amounts, "quota": quota}, "cpu": amounts, "memory": amounts}
    spec = {"resources": resources, **({"parentQueue": parent} if parent else {})}
    kind = {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue"}
    return {**kind, "metadata": {"name": name}, "spec": spec}
