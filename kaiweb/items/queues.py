"""Queue items: quota, limit, weight, use, share, and the workloads of the subtree."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Count

from kaiweb.items.amounts import CPU, GPU, MEMORY, amounts, bounds, rounded, timestamp
from kaiweb.items.model_use import model_use
from kube.keys import GPU_MODELS
from queues.editing.tags import tag_of_row
from queues.models import PodGroup, Queue, WorkloadState
from queues.selectors import options_of, tree
from queues.tree import hierarchy
from queues.tree.options import rest_models
from queues.tree.shape import QueueShape
from scheduler.models import QueueShare

# Managers shown as no manager: kaiweb itself, and "" for queues without one.
OUR_MANAGERS = frozenset({"", "kaiweb", "kaiweb-bootstrap"})
# A partly running workload counts as pending and as running, because some of its pods still wait.
PENDING_STATES = (WorkloadState.PENDING, WorkloadState.GATED, WorkloadState.PARTIAL)
#: Up to so many queues are named in a query; for more, all rows are read.
FEW_QUEUES = 500
RUNNING_STATES = (WorkloadState.RUNNING, WorkloadState.PARTIAL)


@dataclass(slots=True)
class _Counts:
    """Numbers of workloads; a partly running one counts as pending and as running."""

    pending: int = 0
    running: int = 0
    total: int = 0

    def add(self, other: _Counts) -> None:
        self.pending += other.pending
        self.running += other.running
        self.total += other.total


@dataclass(slots=True)
class _Relations:
    """What an item needs beyond its row, by queue name: the tree, workload counts of subtrees, and shares."""

    #: By the name of the queue.
    shapes: Mapping[str, QueueShape]
    #: Queue -> the names of its children.
    children: Mapping[str, list[str]]
    counts: Mapping[str, _Counts] = field(default_factory=dict)
    shares: Mapping[str, dict[str, float]] = field(default_factory=dict)
    #: Queue -> GPU model -> GPUs that it holds.
    model_use: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


def queue_items(names: Collection[str] | None = None) -> list[dict[str, Any]]:
    """Return the items of these queues, or of all, in the order of their names."""
    rows = Queue.objects.all() if names is None else Queue.objects.filter(name__in=names)
    queues = list(rows.order_by("name"))
    relations = _read_relations(queues)
    return [_item(row, relations) for row in queues]


def items_of(rows: Sequence[Queue]) -> list[dict[str, Any]]:
    """Return the items of these rows, in their order; the mirror need not contain the rows yet."""
    relations = _read_relations(rows)
    relations.shapes = {**relations.shapes, **_places(rows)}
    return [_item(row, relations) for row in rows]


def bare_item(row: Queue) -> dict[str, Any]:
    """Return the item of a row without what the database adds: related queues, workloads, shares."""
    return _item(row, _Relations(shapes=_places([row]), children={}))


def _places(rows: Sequence[Queue]) -> dict[str, QueueShape]:
    """Return the places of these rows in the tree, by queue name; an item reads the rest from its row."""
    return {row.name: QueueShape(name=row.name, parent=row.parent) for row in rows}


def _read_relations(rows: Sequence[Queue]) -> _Relations:
    """Read what the items of these queues need."""
    names = [row.name for row in rows]
    bounds_models = any(GPU_MODELS in row.options for row in rows)
    shapes = tree()
    children: dict[str, list[str]] = defaultdict(list)
    for shape in shapes.values():
        children[shape.parent].append(shape.name)
    return _Relations(
        shapes=shapes,
        children=children,
        counts=_subtree_counts(shapes, children, names),
        shares=_shares(names),
        model_use=model_use(shapes) if bounds_models else {},
    )


def _subtree_counts(
    shapes: Mapping[str, QueueShape], children: Mapping[str, list[str]], names: Sequence[str]
) -> dict[str, _Counts]:
    """Return by queue name the workloads of each queue and all queues below it; right for these queues only."""
    counts: dict[str, _Counts] = defaultdict(_Counts)
    pod_groups = PodGroup.objects.all()
    below = hierarchy.below(names, children)
    if len(below) < FEW_QUEUES:
        pod_groups = pod_groups.filter(queue__in=below)
    # Counting rows instead of keys lets the database read the index on queue and state only.
    rows = pod_groups.order_by().values_list("queue", "state").annotate(count=Count("*"))
    own_counts: dict[str, _Counts] = defaultdict(_Counts)
    for queue, state, count in rows:
        own = own_counts[queue]
        own.pending += count if state in PENDING_STATES else 0
        own.running += count if state in RUNNING_STATES else 0
        own.total += count
    for queue, own in own_counts.items():
        for name in hierarchy.ancestors(shapes, queue):
            counts[name].add(own)
    return counts


def _shares(names: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return the fair shares by queue name, summed over the shards: each shard divides its own node pool."""
    shares: dict[str, dict[str, float]] = {}
    rows = QueueShare.objects.order_by().values_list("queue", "gpu", "cpu", "memory")
    if len(names) < FEW_QUEUES:
        rows = rows.filter(queue__in=names)
    for queue, gpu, cpu, memory in rows:
        share = shares.setdefault(queue, {GPU: 0.0, CPU: 0.0, MEMORY: 0.0})
        share[GPU] += gpu
        share[CPU] += cpu
        share[MEMORY] += memory
    return shares


def _item(row: Queue, relations: _Relations) -> dict[str, Any]:
    counts = relations.counts.get(row.name, _Counts())
    share = relations.shares.get(row.name)
    problem = hierarchy.problem_of(relations.shapes, row.name)
    children = sorted(relations.children.get(row.name, []))
    options, gpus_by_model = options_of(row.options), relations.model_use.get(row.name, {})
    return {
        "name": row.name,
        "displayName": row.display_name,
        "parent": row.parent or None,
        "depth": len(hierarchy.ancestors(relations.shapes, row.name)) - 1,
        "children": children,
        "leaf": not children,
        "priority": row.priority,
        "preemptMinRuntime": row.preempt_min_runtime or None,
        "reclaimMinRuntime": row.reclaim_min_runtime or None,
        "quota": bounds(row, "quota"),
        "limit": bounds(row, "limit"),
        "weight": bounds(row, "weight"),
        "allocated": amounts(row, "allocated"),
        "allocatedNonPreemptible": amounts(row, "non_preemptible"),
        "requested": amounts(row, "requested"),
        "share": {name: rounded(value) for name, value in share.items()} if share else None,
        "pendingWorkloads": counts.pending,
        "runningWorkloads": counts.running,
        "totalWorkloads": counts.total,
        "orphan": bool(problem),
        "problems": [problem] if problem else [],
        "userFairness": options.user_fairness,
        "gpuModels": {
            model: {**bounds, "allocated": rounded(gpus_by_model.get(model, 0.0))}
            for model, bounds in rest_models(options.gpu_models).items()
        },
        "maxRunTime": options.max_run_time or None,
        "requeueDelay": options.requeue_delay or None,
        "managedBy": "" if row.manager in OUR_MANAGERS else row.manager,
        "labels": row.labels,
        "createdAt": timestamp(row.created_at),
        "generation": row.generation,
        "etag": f'"{tag_of_row(row)}"',
    }
