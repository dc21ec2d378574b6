"""How the fair share of a queue came about: the steps of the division among its siblings, for each resource.

The steps are computed anew from the mirror with the arithmetic of the scheduler. The scheduler also knows past use
and divides each node pool by itself; what that changes is the last step, so the steps always add up to its share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from math import inf
from typing import Any

import numpy as np
from django.db.models import Q

from kaiweb.items.amounts import CPU, GPU, MEMORY, rounded
from kaiweb.items.queues import items_of
from queues.models import Node, Queue
from queues.tree.unlimited import UNLIMITED_WORD
from scheduler.core.arrays import Floats
from scheduler.core.fairshare.division import DivisionInput, settle
from scheduler.load.queues import DEFAULT_PRIORITY

RESOURCES = (GPU, CPU, MEMORY)
#: Below this a step is noise of the arithmetic.
TINY = 0.0005
Item = Mapping[str, Any]


def share_item(name: str) -> dict[str, Any] | None:
    """Return how the share of a queue is divided; None if the mirror has no such queue."""
    row = Queue.objects.filter(name=name).first()
    if row is None:
        return None
    family_rows = Queue.objects.filter(Q(parent=row.parent) | Q(name=row.parent)).order_by("name")
    by_name = {item["name"]: item for item in items_of(list(family_rows))}
    queue = by_name[name]
    parent = by_name.get(queue["parent"] or "")
    siblings = [item for item in by_name.values() if item["parent"] == queue["parent"]]
    family = _family(siblings, _pools(parent))
    return {
        "queue": name,
        "parent": queue["parent"],
        "resources": {
            resource: _resource(family, row, siblings.index(queue))
            for row, resource in enumerate(RESOURCES)
        },
    }


def _pools(parent: Item | None) -> dict[str, float]:
    """Return what the siblings divide: the parent's share, or what healthy nodes have."""
    if parent is not None:
        share = parent["share"] or {}
        return {resource: float(share.get(resource, 0)) for resource in RESOURCES}
    nodes = Node.objects.filter(is_ready=True, is_cordoned=False)
    totals = {GPU: 0.0, CPU: 0.0, MEMORY: 0.0}
    for gpus, cpu, memory in nodes.values_list("gpus_healthy", "cpu", "memory"):
        totals[GPU] += gpus
        totals[CPU] += cpu
        totals[MEMORY] += memory
    return totals


@dataclass(frozen=True, slots=True)
class _Family:
    """The queues with one parent, what they divide, and how.

    Attributes
    ----------
    inputs : of the division, with the requests that the queues have now
    shares : what the division gives, shape (resources, queues)
    """

    siblings: Sequence[Item]
    pools: Mapping[str, float]
    inputs: DivisionInput
    shares: Floats

    def divide(self, request: Floats) -> Floats:
        """Return what the division would give for other requests."""
        return _divide(self.pools, replace(self.inputs, request=request))


def _family(siblings: Sequence[Item], pools: Mapping[str, float]) -> _Family:
    inputs = _inputs(siblings)
    return _Family(siblings, pools, inputs, _divide(pools, inputs))


def _inputs(siblings: Sequence[Item]) -> DivisionInput:
    ages = sorted((datetime.fromisoformat(queue["createdAt"]), queue["name"]) for queue in siblings)
    rank = {name: position for position, (_, name) in enumerate(ages)}
    request = _column(siblings, "requested")
    return DivisionInput(
        quota=_column(siblings, "quota"),
        limit=_column(siblings, "limit"),
        weight=_column(siblings, "weight"),
        request=request,
        usage=np.zeros_like(request),
        priority=np.array([_priority(queue) for queue in siblings], dtype=np.int64),
        seniority=np.array([rank[queue["name"]] for queue in siblings], dtype=np.int64),
    )


def _column(siblings: Sequence[Item], part: str) -> Floats:
    """Return one part of the items, shape (resources, queues)."""
    return np.array([[_bound(queue[part].get(name)) for queue in siblings] for name in RESOURCES])


def _divide(pools: Mapping[str, float], inputs: DivisionInput) -> Floats:
    pool_of = np.zeros(len(inputs.priority), dtype=np.int64)
    return settle(np.array([[pools[name]] for name in RESOURCES]), pool_of, inputs, 0.0)[0]


def _bound(value: Any) -> float:
    if value is None:
        return 0.0
    return inf if value == UNLIMITED_WORD else float(value)


def _priority(queue: Item) -> int:
    return DEFAULT_PRIORITY if queue["priority"] is None else int(queue["priority"])


def _resource(family: _Family, row: int, position: int) -> dict[str, Any]:
    """Return the division of one resource as seen by the queue at a position."""
    resource = RESOURCES[row]
    queue = family.siblings[position]
    unlimited_request = family.inputs.request.copy()
    unlimited_request[row, position] = inf
    share = (queue["share"] or {}).get(resource)
    computed = float(family.shares[row, position])
    steps = _steps(family, row, position)
    if share is not None and abs(share - computed) >= TINY:
        steps.append({"kind": "other", "amount": rounded(share - computed)})
    return {
        "pool": rounded(family.pools[resource]),
        "requested": queue["requested"][resource],
        "share": share,
        "wouldGet": rounded(float(family.divide(unlimited_request)[row, position])),
        "steps": steps,
        "siblings": [
            {
                "queue": sibling["name"],
                "priority": _priority(sibling),
                "weight": sibling["weight"].get(resource, 0),
                "requested": sibling["requested"][resource],
                "share": (sibling["share"] or {}).get(resource),
            }
            for sibling in family.siblings
        ],
    }


def _steps(family: _Family, row: int, position: int) -> list[dict[str, Any]]:
    """Return quota, the part by weight, what demand or limit cut off, and the rest, which add up to the share."""
    pool = family.pools[RESOURCES[row]]
    inputs = family.inputs
    limit, request = inputs.limit[row], inputs.request[row]
    capped_request = np.minimum(limit, request)
    quotas = np.minimum(
        np.where(np.isinf(inputs.quota[row]), pool, inputs.quota[row]), capped_request
    )
    steps: list[dict[str, Any]] = [{"kind": "quota", "amount": rounded(float(quotas[position]))}]
    missing = float(capped_request[position] - quotas[position])
    weight = inputs.weight[row]
    received = 0.0
    if missing > TINY and weight[position] > 0:
        peers = (inputs.priority == inputs.priority[position]) & (capped_request - quotas > TINY)
        offer = _rest_for(family, row, position) * float(weight[position] / weight[peers].sum())
        received = min(offer, missing)
        steps.append({"kind": "weight", "amount": rounded(offer)})
        if offer - missing > TINY:
            kind = "limit" if limit[position] < request[position] else "demand"
            steps.append({"kind": kind, "amount": rounded(missing - offer)})
    remainder = float(family.shares[row, position] - quotas[position]) - received
    if abs(remainder) >= TINY:
        steps.append({"kind": "rest", "amount": rounded(remainder)})
    return steps


def _rest_for(family: _Family, row: int, position: int) -> float:
    """Return what is left for the queues of the same priority, after all quotas and higher priorities."""
    inputs = family.inputs
    quota, request = inputs.quota[row], inputs.request[row]
    pool = family.pools[RESOURCES[row]]
    quotas = np.minimum(np.where(np.isinf(quota), pool, quota), request)
    not_higher = inputs.priority <= inputs.priority[position]
    higher_only = inputs.request.copy()
    higher_only[row] = np.where(not_higher, quotas, request)
    return max(0.0, pool - float(family.divide(higher_only)[row].sum()))
