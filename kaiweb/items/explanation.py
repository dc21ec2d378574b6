"""The explanation of a waiting workload: its reason with evidence, who is ahead, the stages it has passed.

Figures about nodes are read from the mirror on request. They change whenever any pod starts, so storing them
for every waiting workload would cost too many writes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import Max

from kaiweb.items.amounts import rounded, timestamp
from kube.keys import NVIDIA_GPU
from kube.node_placement import Placement, allows
from kube.objects.meta import convert
from kube.objects.node import Taint
from kube.values.quantity import parse_quantity
from queues.models import Node, Pod, PodGroup, WorkloadState
from queues.workloads import reasons
from scheduler.models import PlacementRecord

NAMED_AHEAD = 5
LISTED_PLACEMENTS = 100


@dataclass(frozen=True, slots=True)
class BoundDetails:
    """Where a condition of KAI keeps the amounts of a bound."""

    word: str
    bound_key: str
    used_key: str


LIMIT_DETAILS = BoundDetails("limit", "queueResourceLimits", "queueAllocatedResources")
QUOTA_DETAILS = BoundDetails(
    "quota", "queueDeservedResources", "queueAllocatedNonPreemptibleResources"
)
#: Resource of a condition -> (its name for people, how much of it is one of their units)
QUEUE_RESOURCES = {NVIDIA_GPU: ("GPUs", 1), "cpu": ("CPU cores", 1), "memory": ("memory (GB)", 1e9)}
# Codes about free resources on nodes: figures of nodes are their evidence.
ABOUT_NODES = frozenset(
    {reasons.NEVER_FITS, reasons.NO_NODE, reasons.DEVICES, reasons.ORDER_BEHIND, reasons.TOPOLOGY}
)
# Codes of workloads that would not start even if nobody were ahead of them.
UNAFFECTED_BY_ORDER = frozenset(
    {
        reasons.NEVER_FITS, reasons.NON_PREEMPTIBLE_OVER_QUOTA, reasons.OVER_LIMIT, reasons.VOLUME,
        reasons.QUEUE_MISSING, reasons.QUEUE_ORPHAN, reasons.BIND_FAILING, reasons.GPU_MODEL,
    }
)  # fmt: skip


def explain(row: PodGroup) -> dict[str, Any]:
    """Return why the workload waits: the dominant reason, its evidence and the stages."""
    return {
        "reason": row.reason_code,
        "text": row.reason_text,
        "since": timestamp(row.reason_since),
        "evidence": [*_queue_evidence(row), *_node_evidence(row)],
        "others": _others(row),
        "order": _order(row),
        "stages": list(_stages(row)),
    }


def placement_items(row: PodGroup) -> list[dict[str, Any]]:
    """Return why the pods of a workload are on their nodes, as far as it was recorded."""
    pods = {pod.key: pod for pod in Pod.objects.filter(group=row.key).exclude(node="")}
    records = [
        record
        for record in PlacementRecord.objects.filter(workload=row.key)
        # An earlier pod may have had the same name.
        if (pod := pods.get(record.pod)) is not None
        and pod.node == record.node
        and record.at >= pod.created_at
    ]
    return [
        {
            "pod": record.pod.partition("/")[2],
            "node": record.node,
            "at": timestamp(record.at),
            **record.reason,
        }
        for record in records[:LISTED_PLACEMENTS]
    ]


def _order(row: PodGroup) -> dict[str, Any] | None:
    """Return the workload's position in the scheduling order and who is ahead.

    None without a position, and for a workload that could not start even if it were next.

    The nearest ones are named. Those of its own queue are counted, because its team can change their order.
    """
    if row.position is None or row.reason_code in UNAFFECTED_BY_ORDER:
        return None
    placed = PodGroup.objects.filter(pool=row.pool, position__isnull=False)
    ahead = placed.filter(position__lt=row.position)
    nearest = ahead.order_by("-position")[:NAMED_AHEAD]
    return {
        "position": row.position,
        "of": placed.aggregate(last=Max("position"))["last"],
        "aheadInQueue": ahead.filter(queue=row.queue).count(),
        "ahead": [
            {
                "namespace": other.namespace,
                "name": other.name,
                "owner": other.owner_name,
                "queue": other.queue,
                "gpu": rounded(other.gpu),
                "position": other.position,
            }
            for other in nearest
        ],
    }


def newest_reasons(row: PodGroup) -> list[dict[str, Any]]:
    """Return the reasons of the newest scheduling condition, with their details."""
    newest = row.conditions[-1] if row.conditions else {}
    reasons_listed: list[dict[str, Any]] = newest.get("reasons", [])
    return reasons_listed


def _queue_evidence(row: PodGroup) -> list[dict[str, Any]]:
    """Return evidence from the newest condition: what was requested from a queue, and what was available.

    Only resources that were short are evidence: a bound of -1 (unlimited) refuses nothing.
    """
    rows: list[dict[str, Any]] = []
    for reason in newest_reasons(row):
        details = (reason.get("details") or {}).get("queueDetails") or {}
        bound = LIMIT_DETAILS if reason.get("reason") == reasons.OVER_LIMIT else QUOTA_DETAILS
        amounts = [details.get(key) or {} for key in (bound.bound_key, bound.used_key)]
        for resource, requested in sorted(
            (details.get("podGroupRequestedResources") or {}).items()
        ):
            needed, available, used = (
                _quantity(amount) for amount in (requested, *(a.get(resource, 0) for a in amounts))
            )
            if available < 0 or needed + used <= available:
                continue
            label, unit = QUEUE_RESOURCES.get(resource, (resource, 1))
            rows.append(
                {
                    "name": f"{bound.word} of {label}",
                    "asked": str(rounded(needed / unit)),
                    "available": f"{rounded(available / unit)}, of which {rounded(used / unit)} in use",
                    "where": details.get("name", ""),
                }
            )
    return rows


def _quantity(text: Any) -> float:
    try:
        return float(parse_quantity(text))
    except (ValueError, TypeError):
        return 0.0


def _node_evidence(row: PodGroup) -> list[dict[str, Any]]:
    """Return what one of its pods requests, and the most that is free on a single node that it may use."""
    if row.reason_code not in ABOUT_NODES:
        return []
    pod = Pod.objects.filter(group=row.key, node="").order_by("created_at", "key").first()
    if pod is None:
        return []
    nodes = list(Node.objects.filter(pool=row.pool, is_ready=True, is_cordoned=False))
    usable = _usable_nodes(pod, nodes)
    if nodes and not usable:
        return [
            {
                "name": "nodes it may use",
                "asked": "1",
                "available": "0",
                "where": f"{len(nodes)} nodes are ready; its node selector, its affinity or their taints exclude all",
            }
        ]
    free_by_node = [(_free(node), node.name) for node in usable]
    requested = {"GPUs": pod.gpu, "CPU cores": pod.cpu / 1000, "memory (GB)": pod.memory / 1e9}
    rows = []
    for name, amount in requested.items():
        if not amount:
            continue
        largest_free, roomiest_node = max(
            ((free[name], node) for free, node in free_by_node), default=(0.0, "")
        )
        place = roomiest_node if largest_free else "none"
        rows.append(
            {
                "name": f"{name} for one pod",
                "asked": str(rounded(amount)),
                "available": f"{rounded(largest_free)} at most",
                "where": f"{place}, of {_counted(usable, nodes)}",
            }
        )
    return rows


def _usable_nodes(pod: Pod, nodes: list[Node]) -> list[Node]:
    """Return the nodes that meet the pod's node selector and affinity, and whose taints it tolerates."""
    placement = convert(pod.placement, Placement)
    return [node for node in nodes if allows(placement, node.name, node.labels, _taints(node))]


def _taints(node: Node) -> list[Taint]:
    taints = []
    for text in node.taints:
        pair, _, effect = text.rpartition(":")
        key, _, value = pair.partition("=")
        taints.append(Taint(key=key, value=value, effect=effect))
    return taints


def _counted(usable: list[Node], nodes: list[Node]) -> str:
    if len(usable) == len(nodes):
        return f"{len(nodes)} nodes"
    return f"{len(usable)} nodes it may use ({len(nodes)} are ready)"


def _free(node: Node) -> dict[str, float]:
    return {
        "GPUs": max(0.0, node.gpus_healthy - node.used_gpu),
        "CPU cores": max(0.0, node.cpu - node.used_cpu) / 1000,
        "memory (GB)": max(0.0, node.memory - node.used_memory) / 1e9,
    }


def _others(row: PodGroup) -> list[dict[str, str]]:
    """Return further reasons of the newest condition; one without a code repeats the dominant reason."""
    is_about_queue = row.reason_code in reasons.KAI_CODES
    return [
        {"reason": str(reason.get("reason", "")), "text": str(reason.get("message", ""))}
        for reason in newest_reasons(row)
        if reason.get("reason") != row.reason_code
        and (is_about_queue or reason.get("reason") in reasons.KAI_CODES)
    ]


# stage -> codes that block it. The stages before a blocked one are passed, those after it unknown.
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


# Codes that pass without anybody acting: another workload is scheduled or ends.
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
