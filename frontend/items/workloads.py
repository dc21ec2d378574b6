"""Workload items: a pod group with its state and the one reason why it waits, plus its pods and stages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from django.db.models import Q

from binder.models import BindRequest
from frontend.items.amounts import moment, tidy
from queues import reasons
from queues.mirror.lone_pods import pod_of
from queues.models import Pod, PodGroup, WorkloadState

PREEMPTIBLE_BELOW = 100
NAMED_AHEAD = 5
FINISHED = ("Succeeded", "Failed")


def workload_items(keys: Collection[str] | None = None) -> list[dict[str, Any]]:
    """Return the items of these pod groups (`namespace/name`), or of all, by key."""
    rows = PodGroup.objects.all() if keys is None else PodGroup.objects.filter(key__in=keys)
    return [workload_item(row) for row in rows.order_by("key")]


def workload_item(row: PodGroup) -> dict[str, Any]:
    """Return one item."""
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
        "state": row.state,
        "minMember": row.min_member,
        "ready": row.pods_bound,
        "pods": row.pods,
        "gated": row.pods_gated,
        "gpu": tidy(row.gpu),
        "gpuKind": row.gpu_kind,
        "nodes": row.nodes,
        "reason": row.reason_code,
        "reasonText": row.reason_text,
        "reasonSince": moment(row.reason_since),
        "position": row.position,
        "createdAt": moment(row.created_at),
        "startedAt": moment(row.started_at),
        "evictions": row.evictions,
        "rv": str(row.version),
    }


def is_preemptible(row: PodGroup) -> bool:
    """Tell whether others may take its place: said outright, or by its priority."""
    if row.preemptibility:
        return row.preemptibility == "preemptible"
    return row.priority is None or row.priority < PREEMPTIBLE_BELOW


def detail_items(keys: Collection[str]) -> list[dict[str, Any]]:
    """Return the items of these pod groups with their pods and their explanation."""
    rows = PodGroup.objects.filter(key__in=keys).order_by("key")
    pods = pod_items(keys)
    return [
        {
            **workload_item(row),
            "subGroups": row.sub_groups,
            "podList": pods.get(row.key, []),
            "explain": explain(row),
        }
        for row in rows
    ]


def pod_items(groups: Collection[str]) -> Mapping[str, list[dict[str, Any]]]:
    """Return the pods of each workload, oldest first."""
    lone = PodGroup.objects.filter(key__in=groups, is_lone_pod=True)
    alone = {pod_of(row): row.key for row in lone}
    mine = Q(group__in=groups) | Q(key__in=alone)
    rows = list(Pod.objects.filter(mine).order_by("created_at", "key"))
    requests = {
        request.pod: request
        for request in BindRequest.objects.filter(pod__in=[row.key for row in rows])
    }
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        found[alone.get(row.key, row.group)].append(_pod_item(row, requests.get(row.key)))
    return found


def _pod_item(row: Pod, request: BindRequest | None) -> dict[str, Any]:
    is_failing = request is not None and request.phase == "Failed"
    return {
        "name": row.name,
        "state": pod_state(row, is_binding=request is not None and not is_failing),
        "node": row.node,
        "gpu": tidy(row.gpu),
        "devices": row.devices,
        "reason": reasons.BIND_FAILING if is_failing else row.reason,
        "message": request.reason if request is not None and is_failing else row.message,
        "createdAt": moment(row.created_at),
        "startedAt": moment(row.started_at),
    }


def pod_state(row: Pod, *, is_binding: bool) -> str:
    """Return the pod's state in one word."""
    if row.phase in FINISHED:
        return row.phase.lower()
    if row.is_deleting:
        return "terminating"
    if row.node:
        return "running" if row.phase == "Running" else "binding"
    if row.is_gated:
        return "gated"
    return "binding" if is_binding else "pending"


def explain(row: PodGroup) -> dict[str, Any]:
    """Return why the workload waits: the dominant reason, its evidence and how far it has come."""
    return {
        "reason": row.reason_code,
        "text": row.reason_text,
        "since": moment(row.reason_since),
        "evidence": _evidence(row.conditions),
        "others": _others(row),
        "order": _order(row),
        "stages": list(_stages(row)),
    }


def _order(row: PodGroup) -> dict[str, Any] | None:
    """Return its place in the order of turns and who is ahead; None while it has no place.

    The nearest are named, and those of its own queue counted: they are what its team can change.
    """
    if row.position is None:
        return None
    waiting = PodGroup.objects.filter(pool=row.pool, position__isnull=False)
    ahead = waiting.filter(position__lt=row.position)
    nearest = ahead.order_by("-position")[:NAMED_AHEAD]
    return {
        "position": row.position,
        "of": waiting.count(),
        "aheadInQueue": ahead.filter(queue=row.queue).count(),
        "ahead": [
            {
                "namespace": other.namespace,
                "name": other.name,
                "owner": other.owner_name,
                "queue": other.queue,
                "gpu": tidy(other.gpu),
                "position": other.position,
            }
            for other in nearest
        ],
    }


def _evidence(conditions: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Turn the details of the newest condition into rows: what was asked, what there was, where."""
    newest = next(iter(reversed(list(conditions))), None)
    rows: list[dict[str, Any]] = []
    for why in (newest or {}).get("reasons", []):
        details = (why.get("details") or {}).get("queueDetails") or {}
        asked = details.get("podGroupRequestedResources") or {}
        for resource, amount in sorted(asked.items()):
            rows.append(
                {
                    "name": f"{why.get('reason', '')}: {resource}",
                    "asked": str(amount),
                    "available": _available(why.get("reason", ""), details, resource),
                    "where": details.get("name", ""),
                }
            )
        if not asked and why.get("message"):
            rows.append(
                {
                    "name": why.get("reason", ""),
                    "asked": "",
                    "available": "",
                    "where": why["message"],
                }
            )
    return rows


def _available(reason: str, details: Mapping[str, Any], resource: str) -> str:
    bound_key, used_key = (
        ("queueResourceLimits", "queueAllocatedResources")
        if reason == "OverLimit"
        else ("queueDeservedResources", "queueAllocatedNonPreemptibleResources")
    )
    bound = (details.get(bound_key) or {}).get(resource, "0")
    used = (details.get(used_key) or {}).get(resource, "0")
    return f"{bound}, of which {used} in use"


def _others(row: PodGroup) -> list[dict[str, str]]:
    """Return further reasons of the newest condition, after the dominant one."""
    newest = row.conditions[-1] if row.conditions else {}
    return [
        {"reason": str(why.get("reason", "")), "text": str(why.get("message", ""))}
        for why in newest.get("reasons", [])
        if why.get("reason") != row.reason_code
    ]


# stage -> codes that block it; the stages before a blocked one are done, those after unknown.
STAGES: tuple[tuple[str, frozenset[str]], ...] = (
    ("managed", frozenset({reasons.UNMANAGED})),
    ("grouped", frozenset({reasons.GROUP_INCOMPLETE, reasons.GATED, reasons.HELD})),
    ("queue", frozenset({reasons.QUEUE_MISSING, reasons.QUEUE_ORPHAN})),
    ("quota", frozenset({reasons.NON_PREEMPTIBLE_OVER_QUOTA})),
    ("limit", frozenset({reasons.OVER_LIMIT})),
    (
        "order",
        frozenset({reasons.NOT_EVALUATED, reasons.ORDER_BEHIND, reasons.PREEMPTION_DELAY}),
    ),
    (
        "nodes",
        frozenset(
            {reasons.NEVER_FITS, reasons.NO_NODE, reasons.DEVICES, reasons.WAITING_FOR_VICTIMS}
        ),
    ),
    ("topology", frozenset({reasons.TOPOLOGY})),
    ("volumes", frozenset({reasons.VOLUME})),
    ("bind", frozenset({reasons.BIND_FAILING})),
    ("started", frozenset()),
)  # fmt: skip


# Codes that pass by themselves: somebody else's turn, somebody else's end.
WAITS = frozenset(
    {
        reasons.NOT_EVALUATED, reasons.GATED, reasons.ORDER_BEHIND, reasons.WAITING_FOR_VICTIMS,
        reasons.PREEMPTION_DELAY,
    }
)  # fmt: skip


def _stages(row: PodGroup) -> Iterable[dict[str, str]]:
    has_started = row.state not in (WorkloadState.PENDING, WorkloadState.GATED)
    is_blocked = False
    for stage, codes in STAGES:
        if has_started and row.state != WorkloadState.PARTIAL:
            yield {"stage": stage, "state": "ok", "text": ""}
        elif row.reason_code in codes:
            is_blocked = True
            waits = row.reason_code in WAITS
            state = "waiting" if waits else "blocked"
            yield {"stage": stage, "state": state, "text": row.reason_text}
        elif is_blocked or stage == "started":
            yield {"stage": stage, "state": "unknown", "text": ""}
        else:
            yield {"stage": stage, "state": "ok", "text": ""}
