"""Show lone pods (pods of our scheduler without a pod group) as workloads, so that the dashboard lists them.

The pod grouper needs a moment for a new pod, so a pod counts as lone only after a few seconds, or at once if it is
certain that it gets no group. The rows are computed from all pods at intervals instead of from events, so that no
obsolete row can remain.
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
ROWS_PER_DELETE = 500
PREFIX = "pod:"
COLUMNS = (
    "uid", "version", "created_at", "queue", "owner_name", "state", "priority", "pods_pending", "pods_gated",
    "gpu", "gpu_kind", "reason_code", "reason_text",
)  # fmt: skip


def show_lone_pods(scheduler: str, now: datetime) -> int:
    """Bring the rows of lone pods up to date; return how many changed.

    Parameters
    ----------
    scheduler : the scheduler name of our pods
    """
    current = {row.key: row for row in map(_row, *_lone(scheduler, now))}
    stored = {row.key: row for row in PodGroup.objects.filter(is_lone_pod=True)}
    obsolete = sorted(stored.keys() - current.keys())
    changed = [
        row for key, row in current.items() if key not in stored or _differs(row, stored[key])
    ]
    if not obsolete and not changed:
        return 0
    with transaction.atomic():
        for first in range(0, len(obsolete), ROWS_PER_DELETE):
            rows = PodGroup.objects.filter(
                is_lone_pod=True, key__in=obsolete[first : first + ROWS_PER_DELETE]
            )
            rows.delete()
        bulk.upsert(PodGroup, changed, update=COLUMNS)
        live.record("workload", [*obsolete, *(row.key for row in changed)])
        live.record(
            "queue", {row.queue for row in (*changed, *map(stored.__getitem__, obsolete))} - {""}
        )
    return len(obsolete) + len(changed)


def pod_of(row: PodGroup) -> str:
    """Return the key of the pod behind the row of a lone pod."""
    return f"{row.namespace}/{row.name.removeprefix(PREFIX)}"


def _lone(scheduler: str, now: datetime) -> tuple[list[Pod], list[str]]:
    """Return the lone pods, and for each why it has no group."""
    managed = PodGroup.objects.filter(key=OuterRef("group"), is_lone_pod=False)
    warned = GroupingWarning.objects.filter(pod=OuterRef("key"))
    is_certain = Q(created_at__lt=now - GRACE) | Q(skips_grouping=True) | Exists(warned)
    waiting = Pod.objects.filter(node="", phase="Pending", scheduler=scheduler)
    pods = list(waiting.filter(is_certain).exclude(Exists(managed)).order_by("key"))
    warnings = _warnings([pod.key for pod in pods])
    return pods, [_text(pod, warnings.get(pod.key, "")) for pod in pods]


def _warnings(pods: Collection[str]) -> dict[str, str]:
    """Return the last warning of the pod grouper for each pod."""
    rows = GroupingWarning.objects.filter(pod__in=pods).order_by("version")
    return dict(rows.values_list("pod", "message"))


def _text(pod: Pod, warning: str) -> str:
    if pod.group:
        return f"Names pod group '{pod.group.partition('/')[2]}', which does not exist"
    if pod.skips_grouping:
        return (
            "Annotation kai.scheduler/skip-podgrouper excludes it from pod grouping, and no annotation "
            "pod-group-name names a pod group"
        )
    return warning or "The pod grouper has created no pod group for it"


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


def _differs(row: PodGroup, stored: PodGroup) -> bool:
    return any(getattr(row, name) != getattr(stored, name) for name in COLUMNS)
