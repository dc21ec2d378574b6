"""Node items: what a node has, what is allocated, and one cell for each of its GPUs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from django.utils import timezone

from kaiweb.items.amounts import rounded, timestamp
from kaiweb.items.utilisation import device_fields, node_fields
from kaiweb.items.workloads import pod_state
from kaiweb.utilisation.current import devices_by_pod, of_cell
from kaiweb.utilisation.models import DeviceUtilisation
from kube.objects.pod import FINISHED_PHASES
from queues.models import Node, Pod, PodGroup
from scheduler.models import RestingNode

MIB = 1 << 20
#: A node with more GPUs than any machine has does not fill every answer and frame.
MAX_SHOWN_DEVICES = 1024
Devices = Mapping[str, list[DeviceUtilisation]]


def node_items(names: Collection[str] | None = None) -> list[dict[str, Any]]:
    """Return the items of these nodes, or of all, by name."""
    rows = Node.objects.all() if names is None else Node.objects.filter(name__in=names)
    return items_of(list(rows.order_by("name")), is_everything=names is None)


def items_of(nodes: Sequence[Node], *, is_everything: bool = False) -> list[dict[str, Any]]:
    """Return the items of these rows."""
    pods: dict[str, list[Pod]] = defaultdict(list)
    with_devices = (
        Pod.objects.exclude(node="").exclude(phase__in=FINISHED_PHASES).exclude(devices=[])
    )
    names = None if is_everything else [node.name for node in nodes]
    if names is not None:
        with_devices = with_devices.filter(node__in=names)
    for pod in with_devices.order_by("created_at", "key"):
        pods[pod.node].append(pod)
    groups = {pod.group for on_node in pods.values() for pod in on_node if pod.group}
    queues = _queues(groups, is_everything)
    resting = {row.name: row for row in RestingNode.objects.filter(until__gt=timezone.now())}
    devices = devices_by_pod(timezone.now(), names)
    return [_item(node, pods[node.name], queues, devices, resting.get(node.name)) for node in nodes]


def pods_of(node: str) -> list[dict[str, Any]]:
    """Return the pods on a node that have not finished, those with most GPUs first."""
    pods = list(Pod.objects.filter(node=node).exclude(phase__in=FINISHED_PHASES))
    groups = PodGroup.objects.in_bulk({pod.group for pod in pods if pod.group})
    pods.sort(key=lambda pod: (-pod.gpu, pod.key))
    return [_pod(pod, groups.get(pod.group)) for pod in pods]


def _pod(pod: Pod, group: PodGroup | None) -> dict[str, Any]:
    return {
        "namespace": pod.namespace,
        "name": pod.name,
        "workload": pod.group,
        "queue": group.queue if group is not None else "",
        "user": group.user if group is not None else "",
        "state": pod_state(pod, is_binding=False),
        "gpu": rounded(pod.gpu),
        "cpuMilli": rounded(pod.cpu),
        "memoryBytes": rounded(pod.memory),
        "devices": pod.devices,
        "startedAt": timestamp(pod.started_at),
    }


def _queues(groups: Collection[str], is_everything: bool) -> Mapping[str, str]:
    """Return the queue of each pod group; for all nodes read every row, because the IN list would be huge."""
    rows = PodGroup.objects.all() if is_everything else PodGroup.objects.filter(key__in=groups)
    return dict(rows.order_by().values_list("key", "queue"))


def _item(
    node: Node,
    pods: list[Pod],
    queues: Mapping[str, str],
    devices: Devices,
    rest: RestingNode | None,
) -> dict[str, Any]:
    cells = _cells(node, pods, queues, devices)
    return {
        "name": node.name,
        "model": node.model,
        "pool": node.pool,
        "zone": node.zone,
        "rack": node.rack,
        "ready": node.is_ready,
        "cordoned": node.is_cordoned,
        "rest": {"until": timestamp(rest.until), "pods": rest.pods} if rest else None,
        "gpuTotal": node.gpus,
        "gpuAllocated": rounded(node.used_gpu),
        "gpuMemoryBytes": node.gpu_memory_mib * MIB,
        "cpu": {"allocatable": rounded(node.cpu), "allocated": rounded(node.used_cpu)},
        "memory": {"allocatable": rounded(node.memory), "allocated": rounded(node.used_memory)},
        "pods": node.pods,
        "taints": node.taints,
        **node_fields(cells),
        "devices": cells,
    }


def _cells(
    node: Node, pods: list[Pod], queues: Mapping[str, str], devices: Devices
) -> list[dict[str, Any]]:
    cells: list[dict[str, Any]] = [
        {
            "index": index,
            "state": "free",
            "used": 0,
            "group": "",
            "holders": [],
            **device_fields(None),
        }
        for index in range(min(node.gpus, MAX_SHOWN_DEVICES))
    ]
    for pod in pods:
        for position, index in enumerate(pod.devices):
            if index < len(cells):
                _fill(cells[index], pod, position, queues)
                row = of_cell(devices.get(pod.key, []), position)
                if row is not None:
                    cells[index] |= device_fields(row)
    # Kubernetes counts unhealthy devices without naming them, so the last free cells stand for them.
    broken = node.gpus - node.gpus_healthy
    for cell in reversed(cells):
        if broken and cell["state"] == "free":
            cell["state"] = "unhealthy"
            broken -= 1
    return cells


def _fill(cell: dict[str, Any], pod: Pod, position: int, queues: Mapping[str, str]) -> None:
    if pod.reserves_group:
        cell["group"] = pod.reserves_group
        cell["state"] = "shared" if cell["holders"] else "reserved"
        return
    is_part = bool(pod.gpu_groups)
    share = pod.gpu_share if is_part else 1
    cell["state"] = "shared" if is_part else "whole"
    if is_part:
        cell["group"] = pod.gpu_groups[position]
    cell["used"] = rounded(min(1.0, cell["used"] + share))
    cell["holders"].append(
        {
            "pod": pod.key,
            "workload": pod.group,
            "queue": queues.get(pod.group, ""),
            "gpu": rounded(share),
        }
    )
