"""Drain queues whose new limit is below what they use: requeue preemptible workloads until the rest fits.

The workloads of the lowest priority go first, and of these the youngest, as when the scheduler evicts for others.
Workloads that nothing would create again, non-preemptible and semi-preemptible ones stay.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, Sum

from kaiweb.items.workloads import is_preemptible
from kaiweb.planning.plan import Plan
from kube.errors import KubeError
from kube.gateway import Gateway
from kube.objects.pod import FINISHED_PHASES
from kube.objects.podgroup import SEMI_PREEMPTIBLE
from queues import selectors
from queues.editing.workload_writes import annotate
from queues.editing.write_requests import WriteRequest
from queues.models import AuditAction, Pod, PodGroup
from queues.selectors import USE_FACTORS
from queues.tree import hierarchy
from queues.tree.amounts import TOLERANCE
from queues.tree.shape import Finding, Severity
from queues.workloads import holds

log = logging.getLogger(__name__)

Amounts = Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A running workload that may be requeued.

    Attributes
    ----------
    queues : its queue and all above it
    amounts : what its pods hold, in the units of a queue's object
    """

    key: str
    queues: frozenset[str]
    amounts: Amounts


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """The workloads to requeue, and what stays above its limit nevertheless: queue -> resource -> amount."""

    rows: tuple[PodGroup, ...] = ()
    left: Mapping[str, Amounts] | None = None

    def as_items(self) -> list[dict[str, Any]]:
        """Return the workloads as REST shows them."""
        return [
            {"workload": row.key, "queue": row.queue, "gpu": round(row.gpu, 6), "error": None}
            for row in self.rows
        ]


def warnings_of(drain: Drain) -> list[Finding]:
    """Return a warning for each limit that a queue still exceeds after the drain."""
    return [
        Finding(
            pointer="",
            code="drain-incomplete",
            message=f"queue '{queue}': {amount:g} of {resource} above the limit cannot be requeued: the work is not preemptible, or nothing would create it again",
            severity=Severity.WARNING,
        )
        for queue, amounts in (drain.left or {}).items()
        for resource, amount in amounts.items()
    ]


def choose(
    excess: Mapping[str, Amounts], candidates: Iterable[Candidate]
) -> tuple[list[str], dict[str, dict[str, float]]]:
    """Return the keys of the workloads to requeue, and what is left above the limits.

    Parameters
    ----------
    excess : queue -> resource -> what it uses above its limit
    candidates : in the order in which they go
    """
    excess_left = {queue: dict(amounts) for queue, amounts in excess.items()}
    workload_keys = []
    for candidate in candidates:
        above_limits = [excess_left[queue] for queue in candidate.queues if queue in excess_left]
        if not any(_helps(candidate.amounts, amounts) for amounts in above_limits):
            continue
        workload_keys.append(candidate.key)
        for amounts in above_limits:
            for resource in amounts:
                amounts[resource] -= candidate.amounts.get(resource, 0.0)
    remaining_excess = {
        queue: {resource: amount for resource, amount in amounts.items() if amount > TOLERANCE}
        for queue, amounts in excess_left.items()
    }
    return workload_keys, {queue: amounts for queue, amounts in remaining_excess.items() if amounts}


def _helps(workload_amounts: Amounts, excess: Amounts) -> bool:
    """Return whether a workload holds some of a resource that is still above the limit."""
    return any(
        amount > TOLERANCE and workload_amounts.get(resource) for resource, amount in excess.items()
    )


def drain_of(plan: Plan) -> Drain:
    """Return what a plan would requeue now."""
    excess = {queue: amounts for queue, amounts in plan.excess.items() if amounts}
    if not excess:
        return Drain()
    tree = selectors.tree()
    below = set().union(*(hierarchy.subtree(tree, queue) for queue in excess))
    rows = PodGroup.objects.filter(queue__in=below, pods_bound__gt=0, is_lone_pod=False)
    # A requeue evicts all pods, so it would not leave semi-preemptible work its minimum.
    rows = rows.exclude(owner_kind="Pod").exclude(preemptibility=SEMI_PREEMPTIBLE)
    running = [row for row in rows if is_preemptible(row)]
    running.sort(key=lambda row: (row.priority or 0, -_started(row), row.key))
    amounts = _held_by([row.key for row in running])
    candidates = (
        Candidate(
            key=row.key,
            queues=frozenset(hierarchy.ancestors(tree, row.queue)),
            amounts=amounts.get(row.key, {}),
        )
        for row in running
    )
    keys, remaining_excess = choose(excess, candidates)
    by_key = {row.key: row for row in running}
    return Drain(rows=tuple(by_key[key] for key in keys), left=remaining_excess)


def _started(row: PodGroup) -> float:
    started_at = row.started_at or row.created_at
    return started_at.timestamp()


def _held_by(keys: Sequence[str]) -> dict[str, Amounts]:
    """Return workload -> what its pods on nodes hold, in the units of a queue's object."""
    on_nodes = Pod.objects.filter(~Q(node=""), group__in=keys)
    sums = (
        on_nodes.exclude(phase__in=FINISHED_PHASES)
        .values("group")
        .annotate(sum_gpu=Sum("gpu"), sum_cpu=Sum("cpu"), sum_memory=Sum("memory"))
        .order_by()
        .values_list("group", "sum_gpu", "sum_cpu", "sum_memory")
    )
    return {
        group: {
            "gpu": gpu * USE_FACTORS["gpu"],
            "cpu": cpu * USE_FACTORS["cpu"],
            "memory": memory * USE_FACTORS["memory"],
        }
        for group, gpu, cpu, memory in sums
    }


def carry_out(gateway: Gateway, drain: Drain, request: WriteRequest) -> list[dict[str, Any]]:
    """Requeue the workloads; return them as REST shows them, with the error of those that could not be."""
    items = drain.as_items()
    annotations = holds.annotations_of_requeue(request.now)
    for row, item in zip(drain.rows, items, strict=True):
        try:
            annotate(gateway, row, AuditAction.REQUEUE, annotations, request)
        except KubeError as error:
            log.warning("cannot requeue %s: %s", row.key, error)
            item["error"] = str(error)
    return items
