"""The item of the overview: GPUs, nodes, pending workloads by reason, starved and borrowing queues."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db.models import Count, Sum
from django.utils import timezone

from kaiweb.items.amounts import rounded, timestamp
from queues.mirror.feed import last_contacts
from queues.models import Node, PodGroup, Queue, WorkloadState
from queues.selectors import tree
from queues.tree import hierarchy
from queues.tree.unlimited import UNLIMITED
from scheduler.models import QueueShare, SessionRecord

KEY = "cluster"
LISTED_QUEUES = 8
WAITING = (WorkloadState.PENDING, WorkloadState.GATED, WorkloadState.PARTIAL)


class _Node(NamedTuple):
    """Columns instead of rows, because this is read every second and a cluster may have 10,000 nodes."""

    model: str
    gpus: int
    gpus_healthy: int
    used_gpu: float
    is_ready: bool
    is_cordoned: bool


def cluster_item() -> dict[str, Any]:
    """Return the item as of now."""
    rows = Node.objects.order_by().values_list(*_Node._fields)
    nodes = [_Node(*row) for row in rows]
    queues = _queue_figures()
    now = timezone.now()
    return {
        "gpus": _gpus(nodes),
        "models": _models(nodes),
        "freeByNode": _free_by_node(nodes),
        "nodes": {
            "total": len(nodes),
            "ready": sum(node.is_ready for node in nodes),
            "cordoned": sum(node.is_cordoned for node in nodes),
        },
        "queues": {"total": len(queues), "orphans": sum(queue.is_orphan for queue in queues)},
        "workloads": _workloads(),
        "pendingByReason": _pending_by_reason(),
        "starved": _ranked(queues, _missing),
        "borrowing": _ranked(queues, _borrowed),
        "sessions": _sessions(now),
        "mirrorAt": timestamp(mirror_time()),
    }


def mirror_time() -> datetime | None:
    """Return when the mirror last had an answer from the cluster; None if it never had one.

    Of several workers it is the time of the one that is behind.
    """
    times = last_contacts().values()
    return None if None in times else min(time for time in times if time)


def _gpus(nodes: list[_Node]) -> dict[str, Any]:
    total = sum(node.gpus for node in nodes)
    allocated = sum(node.used_gpu for node in nodes)
    unusable = sum(_unusable(node) for node in nodes)
    return {
        "total": total,
        "allocated": rounded(allocated),
        "free": rounded(max(0.0, total - allocated - unusable)),
        "unusable": rounded(unusable),
    }


def _unusable(node: _Node) -> float:
    """Return the number of devices that are free but cannot be allocated."""
    free_gpus = max(0.0, node.gpus - node.used_gpu)
    if not node.is_ready or node.is_cordoned:
        return free_gpus
    return min(free_gpus, float(node.gpus - node.gpus_healthy))


def _models(nodes: list[_Node]) -> list[dict[str, Any]]:
    by_model: dict[str, list[_Node]] = defaultdict(list)
    for node in nodes:
        if node.gpus:
            by_model[node.model].append(node)
    return [{"model": model, **_gpus(of_model)} for model, of_model in sorted(by_model.items())]


def _free_by_node(nodes: list[_Node]) -> list[dict[str, Any]]:
    """Return how many nodes of each model have how many whole GPUs free, most first."""
    counts = Counter((node.model, _whole_free(node)) for node in nodes if node.gpus)
    return [
        {"model": model, "free": free, "nodes": count}
        for (model, free), count in sorted(
            counts.items(), key=lambda each: (each[0][0], -each[0][1])
        )
    ]


def _whole_free(node: _Node) -> int:
    return int(max(0.0, node.gpus - node.used_gpu - _unusable(node)))


def _workloads() -> dict[str, int]:
    rows = PodGroup.objects.values_list("state").annotate(count=Count("*")).order_by()
    count_of = dict(rows)
    pending = sum(count_of.get(state, 0) for state in (WorkloadState.PENDING, WorkloadState.GATED))
    return {
        "pending": pending,
        "running": count_of.get(WorkloadState.RUNNING, 0) + count_of.get(WorkloadState.PARTIAL, 0),
        "finished": count_of.get(WorkloadState.FINISHED, 0),
        "failed": count_of.get(WorkloadState.FAILED, 0),
    }


def _pending_by_reason() -> list[dict[str, Any]]:
    rows = (
        PodGroup.objects.filter(state__in=WAITING)
        .values_list("reason_code")
        .annotate(count=Count("*"), gpu=Sum("gpu"))
        .order_by("-count", "reason_code")
    )
    return [
        {"reason": code, "workloads": count, "gpu": rounded(gpu or 0)} for code, count, gpu in rows
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _QueueFigures:
    """The GPUs of a queue, and its place in the tree."""

    name: str
    allocated: float
    requested: float
    quota: float
    share: float
    is_leaf: bool
    is_orphan: bool


def _queue_figures() -> list[_QueueFigures]:
    shapes, shares = tree(), _gpu_shares()
    parents = {shape.parent for shape in shapes.values()}
    columns = ("name", "allocated_gpu", "requested_gpu", "quota_gpu")
    return [
        _QueueFigures(
            name=name,
            allocated=allocated,
            requested=requested,
            quota=quota or 0.0,
            share=shares.get(name, 0.0),
            is_leaf=name not in parents,
            is_orphan=name in shapes and bool(hierarchy.problem_of(shapes, name)),
        )
        for name, allocated, requested, quota in Queue.objects.order_by().values_list(*columns)
    ]


def _gpu_shares() -> dict[str, float]:
    rows = QueueShare.objects.order_by().values_list("queue").annotate(gpus=Sum("gpu"))
    return dict(rows)


def _missing(queue: _QueueFigures) -> float:
    """Return how many GPUs within its share a queue requests and does not hold; negative if it holds more."""
    return min(queue.share, queue.requested) - queue.allocated


def _borrowed(queue: _QueueFigures) -> float:
    """Return how many GPUs a queue holds above its quota; negative if it holds fewer."""
    return 0.0 if queue.quota == UNLIMITED else queue.allocated - queue.quota


def _ranked(
    queues: list[_QueueFigures], measure: Callable[[_QueueFigures], float]
) -> list[dict[str, Any]]:
    """Return the leaf queues with the largest positive value, largest first."""
    values = [(rounded(measure(queue)), queue.name) for queue in queues if queue.is_leaf]
    top = sorted((pair for pair in values if pair[0] > 0), key=lambda pair: (-pair[0], pair[1]))
    return [{"queue": name, "gpu": rounded(value)} for value, name in top[:LISTED_QUEUES]]


def _sessions(now: datetime) -> dict[str, Any]:
    records = SessionRecord.objects.only("started_at", "duration_ms").order_by("-id")
    recent = list(records.filter(started_at__gte=now - timedelta(minutes=1))[:600])
    last = recent[0] if recent else records.first()
    durations = sorted(row.duration_ms for row in recent)
    p95 = durations[min(len(durations) - 1, int(len(durations) * 0.95))] if durations else None
    return {
        "perMinute": len(recent),
        "lastId": last.pk if last else None,
        "lastDurationMs": rounded(last.duration_ms) if last else None,
        "lastStartedAt": timestamp(last.started_at) if last else None,
        "p95Ms": rounded(p95) if p95 is not None else None,
    }
