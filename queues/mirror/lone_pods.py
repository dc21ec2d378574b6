"""Pods of our scheduler that no pod group manages, shown as workloads so that nobody waits unseen.

The pod grouper needs a moment for every new pod, in a burst a little more, so a pod counts that is still alone
after a few seconds, or of which is known at once that it will stay so. They are looked for once in a while instead of followed: what this finds is made anew from the
pods each time, so nothing can be left behind.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from queues import live
from queues.mirror import bulk
from queues.models import GroupingWarning, Pod, PodGroup, WorkloadState
from queues.workloads.reasons import UNMANAGED

GRACE = timedelta(seconds=10)
ROWS = 500
PREFIX = "pod:"
COLUMNS = (
    "uid", "version", "created_at", "queue", "owner_name", "state", "priority", "pods_pending", "pods_gated",
    "gpu", "gpu_kind", "reason_code", "reason_text",
)  # fmt: skip


def show_lone_pods(scheduler: str, now: datetime) -> int:
    """Make the rows of lone pods what they should be; return how many changed.

    Parameters
    ----------
    scheduler : the name by which pods ask for our scheduler
    """
    wanted = {row.key: row for row in map(_row, *_lone(scheduler, now))}
    known = {row.key: row for row in PodGroup.objects.filter(is_lone_pod=True)}
    gone = sorted(known.keys() - wanted.keys())
    fresh = [row for key, row in wanted.items() if key not in known or _differs(row, known[key])]
    if not gone and not fresh:
        return 0
    with transaction.atomic():
        for first in range(0, len(gone), ROWS):
            rows = PodGroup.objects.filter(is_lone_pod=True, key__in=gone[first : first + ROWS])
            rows.delete()
        bulk.upsert(PodGroup, fresh, update=COLUMNS)
        live.record("workload", [*gone, *(row.key for row in fresh)])
        live.record("queue", {row.queue for row in (*fresh, *map(known.__getitem__, gone))} - {""})
    return len(gone) + len(fresh)


def pod_of(row: PodGroup) -> str:
    """Return the key of the pod behind the row of a lone pod."""
    return f"{row.namespace}/{row.name.removeprefix(PREFIX)}"


def _lone(scheduler: str, now: datetime) -> tuple[list[Pod], list[str]]:
    """Return the lone pods, and why each is."""
    managed = PodGroup.objects.filter(key=OuterRef("group"), is_lone_pod=False)
    warned = GroupingWarning.objects.filter(pod=OuterRef("key"))
    is_certain = Q(created_at__lt=now - GRACE) | Q(skips_grouping=True) | Exists(warned)
    waiting = Pod.objects.filter(node="", phase="Pending", scheduler=scheduler)
    pods = list(waiting.filter(is_certain).exclude(Exists(managed)).order_by("key"))
    warnings = _warnings([pod.key for pod in pods])
    return pods, [_text(pod, warnings.get(pod.key, "")) for pod in pods]


def _warnings(pods: Collection[str]) -> dict[str, str]:
    """Return what the pod grouper said last of each pod."""
    rows = GroupingWarning.objects.filter(pod__in=pods).order_by("version")
    return dict(rows.values_list("pod", "message"))


def _text(pod: Pod, warning: str) -> str:
    if pod.group:
        return f"Names pod group '{pod.group.partition('/')[2]}', which does not exist"
    if pod.skips_grouping:
        return (
            "Annotation kai.scheduler/skip-podgrouper keeps the pod grouper away, and no annotation "
            "pod-group-name names a pod group"
        )
    return warning or "The pod grouper has made no pod group of it"


def _row(pod: Pod, text: str) -> PodGroup:
    return PodGroup(
        key=f"{pod.namespace}/{PREFIX}{pod.name}",
        is_lone_pod=True,
        namespace=pod.namespace,
        name=f"{PREFIX}{pod.name}",
        uid=pod.uid,
        version=pod.version,
        created_at=pod.created_at,
        queue=pod.queue,
        owner_kind="Pod",
        owner_name=pod.name,
        state=WorkloadState.GATED if pod.is_gated else WorkloadState.PENDING,
        priority=pod.priority,
        pods=1,
        pods_pending=int(not pod.is_gated),
        pods_gated=int(pod.is_gated),
        gpu=pod.gpu,
        gpu_kind=pod.gpu_kind,
        reason_code=UNMANAGED,
        reason_text=text,
        reason_since=pod.created_at,
    )


def _differs(row: PodGroup, known: PodGroup) -> bool:
    return any(getattr(row, name) != getattr(known, name) for name in COLUMNS)
