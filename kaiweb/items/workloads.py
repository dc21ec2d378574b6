"""Workload items: a pod group with its state, the reason why it waits, its pods and the explanation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db.models import Q
from django.utils import timezone

from binder.models import BindRequest
from kaiweb.items.amounts import rounded, timestamp
from kaiweb.items.explanation import explain
from kaiweb.items.utilisation import workload_fields
from kaiweb.utilisation.current import workload_rows
from kaiweb.utilisation.models import WorkloadUtilisation
from kube.objects.pod import FINISHED_PHASES
from kube.objects.podgroup import NON_PREEMPTIBLE, SEMI_PREEMPTIBLE
from kube.values.times import time_or_none
from queues.mirror.lone_pods import pod_of
from queues.models import Pod, PodGroup
from queues.workloads import reasons
from queues.workloads.holds import Hold

# Without `preemptibility`, pod groups of a lower priority are preemptible.
PREEMPTIBLE_BELOW = 100


def workload_items(keys: Collection[str] | None = None) -> list[dict[str, Any]]:
    """Return the items of these pod groups (`namespace/name`), or of all groups, sorted by key."""
    rows = PodGroup.objects.all() if keys is None else PodGroup.objects.filter(key__in=keys)
    return items_of(list(rows.order_by("key")), is_everything=keys is None)


def items_of(rows: Sequence[PodGroup], *, is_everything: bool = False) -> list[dict[str, Any]]:
    """Return the items of these rows."""
    utilisation = workload_rows(timezone.now())
    if not is_everything:
        utilisation = utilisation.filter(workload__in=[row.key for row in rows])
    by_key = {use.workload: use for use in utilisation}
    return [_item(row, by_key.get(row.key)) for row in rows]


def _item(row: PodGroup, use: WorkloadUtilisation | None) -> dict[str, Any]:
    return {
        "namespace": row.namespace,
        "name": row.name,
        "kind": row.owner_kind,
        "owner": row.owner_name,
        "user": row.user,
        "queue": row.queue,
        "priorityClass": row.priority_class,
        "priority": row.priority,
        "preemptible": is_preemptible(row),
        "protectsMinimum": row.preemptibility == SEMI_PREEMPTIBLE,
        "state": row.state,
        "minMember": row.min_member,
        "ready": row.pods_bound,
        "pods": row.pods,
        "gated": row.pods_gated,
        "gpu": rounded(row.gpu),
        "gpuKind": row.gpu_kind,
        **workload_fields(use),
        "nodes": row.nodes,
        "hold": _hold(row),
        "reason": row.reason_code,
        "reasonText": row.reason_text,
        "reasonSince": timestamp(row.reason_since),
        "position": row.position,
        "createdAt": timestamp(row.created_at),
        "startedAt": timestamp(row.started_at),
        "runDeadline": timestamp(row.run_deadline),
        "evictions": row.evictions,
        "rv": str(row.version),
    }


def _hold(row: PodGroup) -> dict[str, Any] | None:
    """Return the hold; None if there is none or it has ended, of which the cluster says nothing."""
    if not row.is_held or not Hold(row.hold_reason, row.hold_until).applies(timezone.now()):
        return None
    return {"reason": row.hold_reason, "until": timestamp(row.hold_until), "by": row.held_by}


def is_preemptible(row: PodGroup) -> bool:
    """Return whether pods of the group may be evicted for other work: by `preemptibility`, else by priority."""
    if row.preemptibility:
        return row.preemptibility != NON_PREEMPTIBLE
    return row.priority is None or row.priority < PREEMPTIBLE_BELOW


def detail_items(keys: Collection[str]) -> list[dict[str, Any]]:
    """Return the items of these pod groups with their pods and their explanation."""
    rows = list(PodGroup.objects.filter(key__in=keys).order_by("key"))
    pods = pod_items(keys)
    return [
        {
            **item,
            "subGroups": row.sub_groups,
            "podList": pods.get(row.key, []),
            "explain": explain(row),
        }
        for row, item in zip(rows, items_of(rows), strict=True)
    ]


def pod_items(keys: Collection[str]) -> Mapping[str, list[dict[str, Any]]]:
    """Return pod group key -> the items of its pods, oldest first."""
    lone_groups = PodGroup.objects.filter(key__in=keys, is_lone_pod=True)
    group_of_lone_pod = {pod_of(row): row.key for row in lone_groups}
    of_these_groups = Q(group__in=keys) | Q(key__in=group_of_lone_pod)
    rows = list(Pod.objects.filter(of_these_groups).order_by("created_at", "key"))
    request_of_pod = {
        request.pod: request
        for request in BindRequest.objects.filter(pod__in=[row.key for row in rows])
    }
    resets = PodGroup.objects.filter(key__in=keys, binds_reset_at__isnull=False)
    reset_at = dict(resets.values_list("key", "binds_reset_at"))
    items: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        group = group_of_lone_pod.get(row.key, row.group)
        items[group].append(_pod_item(row, request_of_pod.get(row.key), reset_at.get(group)))
    return items


def _pod_item(row: Pod, request: BindRequest | None, reset_at: datetime | None) -> dict[str, Any]:
    is_failing = request is not None and request.phase == "Failed"
    return {
        "name": row.name,
        "state": pod_state(row, is_binding=request is not None and not is_failing),
        "node": row.node,
        "gpu": rounded(row.gpu),
        "devices": row.devices,
        "reason": reasons.BIND_FAILING if is_failing else row.reason,
        "message": request.reason if request is not None and is_failing else row.message,
        "failedBinds": failed_binds(row, reset_at),
        "createdAt": timestamp(row.created_at),
        "startedAt": timestamp(row.started_at),
    }


def failed_binds(row: Pod, reset_at: datetime | None) -> dict[str, Any] | None:
    """Return how often a waiting pod could not be bound, and when it is tried next; None without failures.

    Parameters
    ----------
    reset_at : failures of its pod group up to this time are forgotten
    """
    failures = row.bind_failures
    last = time_or_none(failures.get("last"))
    if last is None or (reset_at is not None and last <= reset_at):
        return None
    return {
        "count": failures["count"],
        "lastAt": timestamp(last),
        "nextAt": timestamp(time_or_none(failures["next"])),
        "nodes": failures["nodes"],
        "error": failures["reason"],
    }


def pod_state(row: Pod, *, is_binding: bool) -> str:
    """Return pending, gated, binding, running, terminating, succeeded or failed."""
    if row.phase in FINISHED_PHASES:
        return row.phase.lower()
    if row.is_deleting:
        return "terminating"
    if row.node:
        # A bound pod whose containers have not started is shown as binding, like one with a bind request.
        return "running" if row.phase == "Running" else "binding"
    if row.is_gated:
        return "gated"
    return "binding" if is_binding else "pending"
