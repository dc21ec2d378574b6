"""Reads the cluster of a scenario file: nodes, queues, zones, devices and claims."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any

from scheduler.core.cluster.constraints import Expression, NodeTerm, Operator
from scheduler.core.cluster.device_inputs import (
    AllocatedDevice,
    ClaimAllocation,
    Device,
    DeviceClaim,
    DeviceRequest,
    DeviceSlice,
)
from scheduler.core.cluster.inputs import (
    UNLIMITED_AMOUNTS,
    GpuModelBounds,
    NodeInput,
    NumaShare,
    NumaTopology,
    NumaZone,
    QueueAmounts,
    QueueInput,
)

Document = Mapping[str, Any]

GPU_DRIVER = "nvidia.com/gpu"
GPU_COUNT_LABEL = "nvidia.com/gpu.count"
DEFAULT_MAX_PODS = 110
DEFAULT_GPU_MEMORY_MIB = 100
AXIS_NAMES = {"cpu_millis": "cpu", "memory_bytes": "memory"}


def read_node(node: Document) -> NodeInput:
    """Read a node; all nodes are ready and without taints."""
    labels = dict(node.get("labels") or {})
    mig = node.get("mig") or {}
    allocatable = {
        "cpu": float(node.get("cpu_millis", 0)),
        "memory": float(node.get("memory_bytes", 0)),
        "gpu": float(node.get("gpu", 0)),
        "pods": float(node.get("max_pods", DEFAULT_MAX_PODS)),
    }
    allocatable.update({name: float(n) for name, n in (mig.get("instances") or {}).items()})
    count = labels.get(GPU_COUNT_LABEL, "")
    return NodeInput(
        name=node["name"],
        labels=labels,
        allocatable=allocatable,
        gpu_memory_mib=int(node.get("gpu_memory_mib", DEFAULT_GPU_MEMORY_MIB)),
        gpu_count_label=int(count) if count.isdigit() else None,
        dra_gpus=float(node.get("dra_gpus", 0)),
        mig_enabled=bool(mig),
        mig_strategy=mig.get("strategy", "none"),
        numa=_numa(node.get("numa")),
    )


def _numa(block: Document | None) -> NumaTopology | None:
    if not block:
        return None
    return NumaTopology(
        policy=block.get("policy", "none"),
        scope=block.get("scope", "container"),
        zones=tuple(
            NumaZone(
                zone=zone["id"],
                allocatable=_axis_amounts(zone.get("allocatable")),
                available=_axis_amounts(zone.get("available")),
            )
            for zone in block.get("zones") or ()
        ),
    )


def _axis_amounts(amounts: Mapping[str, float] | None) -> dict[str, float]:
    return {AXIS_NAMES.get(name, name): float(n) for name, n in (amounts or {}).items()}


def read_numa_shares(placement: Any) -> tuple[NumaShare, ...]:
    """Read what a task was seen to take from which zone."""
    return tuple(
        NumaShare(zone=entry["zone"], amounts=tuple(_axis_amounts(entry["amount"]).items()))
        for entry in placement
    )


def read_queue(queue: Document) -> QueueInput:
    """Read a queue; a missing block of CPU or memory is unlimited."""
    return QueueInput(
        name=queue["name"],
        parent=queue.get("parent") or "",
        priority=int(queue.get("priority", 100)),
        created=float(queue.get("created_offset_seconds", 0)),
        cpu=_queue_amounts(queue.get("cpu_millis")),
        memory=_queue_amounts(queue.get("memory_bytes")),
        gpu=_queue_amounts(queue.get("gpu")),
        preempt_min_runtime_s=optional_number(queue.get("preempt_min_runtime_seconds")),
        reclaim_min_runtime_s=optional_number(queue.get("reclaim_min_runtime_seconds")),
        user_fairness=bool(queue.get("user_fairness", False)),
        gpu_models=tuple(
            GpuModelBounds(
                model=model,
                quota=None if "quota" not in bounds else _unlimited(bounds["quota"]),
                limit=None if "limit" not in bounds else _unlimited(bounds["limit"]),
            )
            for model, bounds in (queue.get("gpu_models") or {}).items()
        ),
    )


def _queue_amounts(block: Document | None) -> QueueAmounts:
    if block is None:
        return UNLIMITED_AMOUNTS
    return QueueAmounts(
        quota=_unlimited(block.get("quota", 0)),
        limit=_unlimited(block.get("limit", 0)),
        over_quota_weight=float(block.get("over_quota_weight", 0)),
        usage=float(block.get("usage", 0)),
    )


def _unlimited(value: float) -> float:
    return inf if value == -1 else float(value)


def read_device_slice(entry: Document) -> DeviceSlice:
    """Read the devices one node publishes."""
    return DeviceSlice(
        driver=GPU_DRIVER,
        pool=entry["node"],
        node=entry["node"],
        devices=tuple(Device(name=str(number)) for number in range(int(entry["devices"]))),
    )


def read_device_claim(entry: Document) -> DeviceClaim:
    """Read a claim with its allocation and its consumers."""
    unknown = int(entry.get("reserved_for_unknown_pods", 0))
    return DeviceClaim(
        name=entry["name"],
        namespace=entry.get("namespace") or "",
        requests=(
            DeviceRequest(
                device_class=entry.get("device_class", ""), count=float(entry.get("count", 1))
            ),
        ),
        labels=dict(entry.get("labels") or {}),
        allocation=_claim_allocation(entry),
        reserved_for=(
            *(entry.get("reserved_for") or ()),
            *(f"unknown-pod-{number}" for number in range(unknown)),
        ),
    )


def _claim_allocation(entry: Document) -> ClaimAllocation | None:
    devices = entry.get("allocated_devices")
    if not devices:
        return None
    pools = sorted({device["pool"] for device in devices})
    hostname = Expression(key="metadata.name", operator=Operator.IN, values=tuple(pools))
    return ClaimAllocation(
        claim=entry["name"],
        namespace=entry.get("namespace") or "",
        devices=tuple(
            AllocatedDevice(
                driver=device["driver"],
                pool=device["pool"],
                device=device["device"],
                request="gpu",
            )
            for device in devices
        ),
        node_terms=(NodeTerm(fields=(hostname,)),),
    )


def optional_number(value: float | None) -> float | None:
    """Read a number that may be missing."""
    return None if value is None else float(value)
