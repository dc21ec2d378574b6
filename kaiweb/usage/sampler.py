"""Take a sample of the mirror: what each queue, user and GPU model holds at this moment.

A sample counts for the time since the sample before. If that was too long ago (a restart, a mirror that does not
hear from the cluster), the time between is unknown and stays a gap; the sample then only starts the clock again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Max, Q, Sum

from kaiweb.items.cluster import mirror_time
from kaiweb.usage.models import Clock, ModelUse, OwnerUse, QueueBounds, QueueUse, Span
from kaiweb.usage.tiers import RAW
from kaiweb.utilisation.current import Use, use_by_pod
from kaiweb.utilisation.models import UtilisationUse
from queues.models import Node, PodGroup, Queue, WorkloadState
from queues.tree import hierarchy
from queues.tree.shape import QueueShape
from queues.tree.unlimited import UNLIMITED
from scheduler.models import QueueShare

#: Samples that may be missing in a row before the time counts as unknown.
MISSED_SAMPLES = 2
MAX_MIRROR_AGE = timedelta(seconds=30)
ENDED = (WorkloadState.FINISHED, WorkloadState.FAILED)


@dataclass(slots=True)
class Held:
    """GPUs that are allocated, and GPUs that are waited for.

    Attributes
    ----------
    known : allocated GPUs whose utilisation is known
    idle : those of them that are not used
    """

    allocated: float = 0.0
    waiting: float = 0.0
    known: float = 0.0
    idle: float = 0.0


@dataclass(frozen=True, slots=True)
class HolderKey:
    """Whose GPUs they are: a queue, a user of it, and the model (empty while waiting)."""

    queue: str
    owner: str
    model: str


def longest_interval() -> timedelta:
    """Return the longest time between two samples that still counts as observed."""
    return timedelta(seconds=settings.KAIWEB_USAGE_SAMPLE_S * (MISSED_SAMPLES + 1))


def sample(now: datetime) -> bool:
    """Write a sample; return False if none is due or the mirror is too old to be sampled."""
    seen_at = mirror_time()
    if seen_at is None or now - seen_at > MAX_MIRROR_AGE:
        return False
    with transaction.atomic():
        clock = Clock.objects.select_for_update().first() or Clock(sampled_at=now)
        elapsed = now - clock.sampled_at
        if timedelta() < elapsed < timedelta(seconds=settings.KAIWEB_USAGE_SAMPLE_S / 2):
            return False  # another worker has just taken it
        start, clock.sampled_at = clock.sampled_at, now
        clock.save()
        queues = list(Queue.objects.all())
        _note_bounds(queues, now)
        # The first sample has no time before it; a late one leaves a gap.
        if timedelta() < elapsed <= longest_interval():
            _write(start, now, queues)
    return True


def _write(start: datetime, now: datetime, queues: list[Queue]) -> None:
    seconds = (now - start).total_seconds()
    tree = {row.name: QueueShape(name=row.name, parent=row.parent) for row in queues}
    quota = {row.name: _quota(row) for row in queues}
    holders = _holders(now)
    by_queue = _with_ancestors(holders, tree)
    in_quota = {
        name: min(usage.allocated, quota.get(name, 0.0)) for name, usage in by_queue.items()
    }
    shares = dict(QueueShare.objects.order_by().values_list("queue").annotate(gpu=Sum("gpu")))
    Span.objects.create(tier=RAW, start=start, covered_s=seconds)
    QueueUse.objects.bulk_create(
        QueueUse(
            tier=RAW,
            start=start,
            queue=name,
            allocated=usage.allocated * seconds,
            in_quota=in_quota[name] * seconds,
            waiting=usage.waiting * seconds,
            share=shares.get(name, 0.0) * seconds,
        )
        for name, usage in by_queue.items()
    )
    OwnerUse.objects.bulk_create(
        OwnerUse(
            tier=RAW,
            start=start,
            queue=key.queue,
            owner=key.owner,
            model=key.model,
            allocated=usage.allocated * seconds,
            in_quota=usage.allocated * seconds * _ratio(in_quota, by_queue, key.queue),
            waiting=usage.waiting * seconds,
        )
        for key, usage in holders.items()
    )
    ModelUse.objects.bulk_create(_model_rows(start, seconds))
    UtilisationUse.objects.bulk_create(
        UtilisationUse(
            tier=RAW,
            start=start,
            queue=key.queue,
            owner=key.owner,
            model=key.model,
            known=usage.known * seconds,
            idle=usage.idle * seconds,
        )
        for key, usage in holders.items()
        if usage.known
    )


def _quota(row: Queue) -> float:
    """Return the GPU quota as a number: an unset one guarantees nothing, an unlimited one everything."""
    if row.quota_gpu is None:
        return 0.0
    return float("inf") if row.quota_gpu == UNLIMITED else row.quota_gpu


def _ratio(in_quota: Mapping[str, float], by_queue: Mapping[str, Held], queue: str) -> float:
    allocated = by_queue[queue].allocated
    return in_quota[queue] / allocated if allocated else 0.0


def _holders(now: datetime) -> dict[HolderKey, Held]:
    """Return what the workloads of each queue, user and model hold and wait for."""
    groups = PodGroup.objects.filter(
        Q(allocated_gpu__gt=0) | Q(pods_pending__gt=0, gpu__gt=0)
    ).exclude(state__in=ENDED)
    columns = ("key", "queue", "user", "gpu", "allocated_gpu", "pods_pending")
    models = _models_of_groups(now)
    holders: dict[HolderKey, Held] = defaultdict(Held)
    for key, queue, user, gpu, allocated, pending in groups.order_by().values_list(*columns):
        if allocated:
            parts = models.get(key, {"": Use(held=1.0)})
            factor = allocated / sum(part.held for part in parts.values())
            for model, part in parts.items():
                holder = holders[HolderKey(queue, user, model)]
                holder.allocated += part.held * factor
                holder.known += part.known * factor
                holder.idle += part.idle * factor
        if pending and gpu > allocated:
            holders[HolderKey(queue, user, "")].waiting += gpu - allocated
    return holders


def _models_of_groups(now: datetime) -> dict[str, dict[str, Use]]:
    """Return for each pod group how its bound pods are spread over GPU models; only the proportions matter."""
    model_of_node = dict(Node.objects.order_by().values_list("name", "model"))
    spread: dict[str, dict[str, Use]] = defaultdict(lambda: defaultdict(Use))
    for group, node, use in use_by_pod(now).values():
        if group:
            spread[group][model_of_node.get(node, "")].add(use)
    return spread


def _with_ancestors(
    holders: Mapping[HolderKey, Held], tree: Mapping[str, QueueShape]
) -> dict[str, Held]:
    """Return the sums of each queue with all queues below it; a queue that does not exist stands alone."""
    sums: dict[str, Held] = defaultdict(Held)
    for key, usage in holders.items():
        for name in hierarchy.ancestors(tree, key.queue) or [key.queue]:
            sums[name].allocated += usage.allocated
            sums[name].waiting += usage.waiting
    return sums


def _model_rows(start: datetime, seconds: float) -> list[ModelUse]:
    nodes = Node.objects.filter(gpus__gt=0).order_by().values_list("model")
    sums = nodes.annotate(capacity=Sum("gpus"), allocated=Sum("used_gpu"))
    return [
        ModelUse(
            tier=RAW,
            start=start,
            model=model,
            capacity=capacity * seconds,
            allocated=allocated * seconds,
        )
        for model, capacity, allocated in sums
    ]


def _note_bounds(queues: list[Queue], now: datetime) -> None:
    """Write quota and limit of queues where they differ from the last row."""
    last = QueueBounds.objects.order_by().values("queue").annotate(last=Max("id")).values("last")
    rows = QueueBounds.objects.filter(pk__in=last).order_by()
    noted = {row.queue: (row.quota, row.limit) for row in rows}
    QueueBounds.objects.bulk_create(
        QueueBounds(queue=row.name, at=now, quota=row.quota_gpu, limit=row.limit_gpu)
        for row in queues
        if noted.get(row.name) != (row.quota_gpu, row.limit_gpu)
    )
