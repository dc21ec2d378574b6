"""Pure translation: one typed object in, one unsaved row out.

A field that cannot be read (a quantity that is none, an annotation of another kind) leaves its column at
the default: a single odd object must never stop the mirror.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from kube import keys
from kube.keys import (
    BIND_FAILURES,
    GPU_GROUP,
    LAST_EVICTION,
    LAST_START,
    NODE_GPU_MEMORY,
    NODE_GPU_PRODUCT,
    NVIDIA_GPU,
    RESERVATION,
)
from kube.node_placement import placement_of
from kube.objects.cluster import Event as EventObject
from kube.objects.meta import KubeObject, as_body
from kube.objects.node import Node as NodeObject
from kube.objects.pod import Pod as PodObject
from kube.objects.pod import Quantity
from kube.objects.podgroup import PodGroup as PodGroupObject
from kube.objects.podgroup import SchedulingCondition
from kube.store import version_of
from kube.values.numbers import int_or_none
from kube.values.quantity import parse_quantity
from kube.values.times import in_utc, time_or_none
from queues.mirror.views import OptionalAmounts, PriorityClassView, QueueView
from queues.models import (
    MAX_KEY,
    MAX_NAME,
    GroupingWarning,
    Node,
    Pod,
    PodGroup,
    PriorityClass,
    Queue,
)
from queues.tree.options import option_annotations
from queues.tree.unlimited import UNLIMITED
from queues.workloads.accounting import PodDemand, pod_demand, quota_gpus
from queues.workloads.bind_failures import row_of_failures
from queues.workloads.conditions import is_backed_off
from queues.workloads.holds import hold_of
from queues.workloads.owners import owner_of
from queues.workloads.users import user_of

ZONE_LABELS = ("topology.kubernetes.io/zone",)
RACK_LABELS = ("topology.kubernetes.io/rack", "kai.scheduler/rack", "rack")
MAX_PLACEMENT_BYTES = 16 * 1024
EPOCH = datetime.fromtimestamp(0, UTC)


def identity(value: KubeObject) -> dict[str, Any]:
    """Return the columns that every mirror row has."""
    return {
        "uid": value.metadata.uid,
        "version": version_of(value),
        "created_at": value.metadata.creation_timestamp or EPOCH,
    }


def _reference(name: str) -> str:
    """Return the name of another object, cut to the length of its column; valid names fit."""
    return name.replace("\x00", "\ufffd")[:MAX_NAME]


def queue_row(queue: QueueView) -> Queue:
    """Translate a queue."""
    resources, status = queue.spec.resources, queue.status
    return Queue(
        name=queue.metadata.name,
        **identity(queue),
        generation=queue.metadata.generation,
        display_name=queue.spec.display_name,
        parent=_reference(queue.spec.parent_queue),
        priority=queue.spec.priority,
        preempt_min_runtime=queue.spec.preempt_min_runtime[:64],
        reclaim_min_runtime=queue.spec.reclaim_min_runtime[:64],
        manager=queue.manager[:128],
        labels=queue.metadata.labels,
        options=option_annotations(queue.metadata.annotations),
        **_bounds("gpu", resources.gpu),
        **_bounds("cpu", resources.cpu),
        **_bounds("memory", resources.memory),
        **_used("allocated", status.allocated),
        **_used("non_preemptible", status.allocated_non_preemptible),
        **_used("requested", status.requested),
    )


def _bounds(resource: str, amounts: OptionalAmounts) -> dict[str, float | None]:
    weight = amounts.over_quota_weight
    return {
        f"quota_{resource}": _valid(amounts.quota),
        f"limit_{resource}": _valid(amounts.limit),
        f"weight_{resource}": weight if weight is None or weight >= 0 else None,
    }


def _valid(amount: float | None) -> float | None:
    return amount if amount is None or amount >= 0 or amount == UNLIMITED else None


def _used(prefix: str, amounts: Mapping[str, Quantity]) -> dict[str, float]:
    return {
        f"{prefix}_gpu": _gpus(amounts),
        f"{prefix}_cpu": 1000 * _amount(amounts.get("cpu")),
        f"{prefix}_memory": _amount(amounts.get("memory")),
    }


def _gpus(amounts: Mapping[str, Quantity]) -> float:
    """Return devices and MIG slices together, slices counted by size as in quota."""
    return sum(quota_gpus(name) * _amount(amount) for name, amount in amounts.items())


def _amount(quantity: Quantity | None) -> float:
    if quantity is None:
        return 0.0
    try:
        return float(parse_quantity(quantity))
    except (ValueError, OverflowError):
        return 0.0


def group_row(group: PodGroupObject) -> PodGroup:
    """Translate a pod group, without the sums over its pods, which the roll-up sets."""
    meta, spec = group.metadata, group.spec
    owner_kind, owner_name = owner_of(group)
    hold = hold_of(meta.annotations)
    allocated = group.status.resources_status.allocated
    return PodGroup(
        key=group.key,
        namespace=meta.namespace,
        name=meta.name,
        **identity(group),
        queue=_reference(spec.queue),
        owner_kind=owner_kind[:128],
        owner_name=owner_name,
        user=user_of(meta.labels, meta.annotations),
        pool=meta.labels.get(keys.NODE_POOL, ""),
        priority_class=spec.priority_class_name,
        preemptibility=spec.preemptibility,
        is_backed_off=is_backed_off(group, keys.NODE_POOL),
        is_held=hold is not None,
        hold_reason=hold.reason if hold else "",
        hold_until=hold.until if hold else None,
        held_by=hold.by if hold else "",
        run_deadline=time_or_none(meta.annotations.get(keys.RUN_DEADLINE)),
        binds_reset_at=time_or_none(meta.annotations.get(keys.BINDS_RESET_AT)),
        min_member=_min_member(group),
        sub_groups=[
            {"name": sub.name, "parent": sub.parent or None, "minMember": sub.min_member}
            for sub in spec.sub_groups
        ],
        conditions=[_condition(condition) for condition in group.status.scheduling_conditions],
        allocated_gpu=_gpus(allocated),
        last_start=time_or_none(meta.annotations.get(LAST_START)),
        last_eviction=time_or_none(meta.annotations.get(LAST_EVICTION)),
    )


def _min_member(group: PodGroupObject) -> int:
    """Return the minimum number of pods: the sum over the subgroups, else the group's own, by default 1 as in KAI."""
    leaves = [sub.min_member for sub in group.spec.sub_groups if sub.min_member is not None]
    if group.spec.sub_groups:
        return sum(leaves)
    return 1 if group.spec.min_member is None else group.spec.min_member


def _condition(condition: SchedulingCondition) -> dict[str, object]:
    since = condition.last_transition_time
    return {
        "nodePool": condition.node_pool,
        "reason": condition.reason,
        "message": condition.message,
        "transitionId": condition.transition_id,
        "since": in_utc(since).isoformat() if since else None,
        "reasons": [
            {"reason": reason.reason, "message": reason.message, "details": reason.details}
            for reason in condition.reasons
        ],
    }


def group_key(pod: PodObject) -> str:
    """Return the key of the pod group that a pod names; empty if it names none."""
    name = pod.metadata.annotations.get(keys.POD_GROUP, "")
    return f"{pod.metadata.namespace}/{_reference(name)}" if name else ""


def pod_row(pod: PodObject) -> Pod:
    """Translate a pod, without its GPU cells, which the roll-up of its node sets."""
    meta, spec = pod.metadata, pod.spec
    demand = _demand(pod)
    scheduled = pod.condition("PodScheduled")
    is_waiting = scheduled is not None and scheduled.status == "False"
    ready = pod.condition("Ready")
    is_reservation = meta.namespace == RESERVATION
    started = ready.last_transition_time if ready else None
    return Pod(
        key=pod.key,
        namespace=meta.namespace,
        name=meta.name,
        **identity(pod),
        group=group_key(pod),
        scheduler=spec.scheduler_name[:MAX_NAME],
        queue=_reference(meta.labels.get(keys.QUEUE, "")),
        skips_grouping=meta.annotations.get(keys.SKIP) == "true",
        node=spec.node_name,
        phase=pod.status.phase or "Pending",
        is_gated=bool(spec.scheduling_gates),
        is_deleting=meta.deletion_timestamp is not None,
        priority=spec.priority,
        cpu=1000 * float(demand.amounts.get("cpu", 0)),
        memory=float(demand.amounts.get("memory", 0)),
        gpu=float(demand.gpus + demand.gpu_fraction * demand.gpu_devices + demand.mig_gpus),
        gpu_kind=_gpu_kind(demand),
        gpu_share=float(demand.gpu_fraction),
        gpu_groups=[] if is_reservation else _gpu_groups(meta.labels),
        reserves_group=meta.labels.get(GPU_GROUP, "") if is_reservation else "",
        placement={} if spec.node_name else _placement(pod),
        reason=(scheduled.reason if scheduled and is_waiting else pod.status.reason)[:128],
        message=scheduled.message if scheduled and is_waiting else "",
        reason_since=scheduled.last_transition_time if scheduled and is_waiting else None,
        bind_failures={}
        if spec.node_name
        else row_of_failures(meta.annotations.get(BIND_FAILURES)),
        started_at=started if pod.status.phase != "Pending" else None,
    )


def warning_row(event: EventObject) -> GroupingWarning:
    """Translate a warning of the pod grouper."""
    about = event.involved_object
    return GroupingWarning(
        key=event.key,
        **identity(event),
        pod=f"{about.namespace}/{about.name}"[:MAX_KEY],
        message=event.message,
    )


def _placement(pod: PodObject) -> dict[str, Any]:
    """Return what a pod demands of its node, as `kube.node_placement.Placement`; {} if that is excessively long."""
    placement: dict[str, Any] = as_body(placement_of(pod.spec))
    return placement if len(msgspec.json.encode(placement)) <= MAX_PLACEMENT_BYTES else {}


def _demand(pod: PodObject) -> PodDemand:
    try:
        return pod_demand(pod)
    except (ValueError, OverflowError):
        return PodDemand(amounts={})


def _gpu_kind(demand: PodDemand) -> str:
    if demand.gpu_memory_mib:
        return "memory"
    if demand.gpu_fraction:
        return "fraction"
    return "whole" if demand.gpus or demand.mig else "none"


def _gpu_groups(labels: Mapping[str, str]) -> list[str]:
    """Return the GPU groups of a pod with fractions: from one label, or from one label per device."""
    several = sorted(value for key, value in labels.items() if key.startswith(GPU_GROUP + "/"))
    if several:
        return several
    return [labels[GPU_GROUP]] if labels.get(GPU_GROUP) else []


def node_row(node: NodeObject) -> Node:
    """Translate a node, without its usage, which the roll-up sets."""
    labels, status = node.metadata.labels, node.status
    ready = node.condition("Ready")
    capacity, healthy = int(_gpus(status.capacity)), int(_gpus(status.allocatable))
    memory = labels.get(NODE_GPU_MEMORY, "")
    return Node(
        name=node.metadata.name,
        **identity(node),
        pool=labels.get(keys.NODE_POOL, ""),
        model=labels.get(NODE_GPU_PRODUCT, "") or (NVIDIA_GPU if capacity else ""),
        zone=_first(labels, ZONE_LABELS),
        rack=_first(labels, RACK_LABELS),
        is_ready=ready is not None and ready.status == "True",
        is_cordoned=node.spec.unschedulable,
        gpus=max(capacity, healthy),
        gpus_healthy=healthy,
        gpu_memory_mib=int_or_none(memory, smallest=0) or 0,
        cpu=1000 * _amount(status.allocatable.get("cpu")),
        memory=_amount(status.allocatable.get("memory")),
        taints=[
            f"{taint.key}={taint.value}:{taint.effect}"
            if taint.value
            else f"{taint.key}:{taint.effect}"
            for taint in node.spec.taints
        ],
        labels=dict(labels),
    )


def _first(labels: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next((labels[name] for name in names if labels.get(name)), "")


def priority_class_row(priority_class: PriorityClassView) -> PriorityClass:
    """Translate a priority class."""
    return PriorityClass(
        name=priority_class.metadata.name,
        **identity(priority_class),
        value=priority_class.value,
        is_default=priority_class.global_default,
    )
