"""Compare two states of one snapshot, the kept one with one built anew: the self-check and tests use it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

from scheduler.core.cluster.classes import TaskClass
from scheduler.core.cluster.nodes import Nodes
from scheduler.core.cluster.state import ClusterState

GROUP_COLUMNS = (
    "inputs",
    "queue",
    "priority",
    "preemptible",
    "first_pod_set",
    "pod_set_count",
    "first_task",
    "task_count",
    "pending",
    "active_allocated",
    "last_start",
    "last_eviction",
    "stale_since",
    "only_pod_set",
    "semi_preemptible",
)
POD_SET_COLUMNS = (
    "name",
    "pod_group",
    "minimum",
    "pending",
    "gated",
    "nominated",
    "active_allocated",
    "active_used",
)
TASK_COLUMNS = (
    "inputs",
    "status",
    "is_virtual",
    "node",
    "left_node",
    "pod_set",
    "pod_group",
    "accepted",
    "gpu_groups",
    "numa",
    "claim_allocations",
    "reservations",
    "foreign",
    "bound_now",
)
NODE_COLUMNS = ("inputs", "names", "gpu_memory", "gpu_count", "whole_gpus_used", "shared_gpus")


def differences(kept: ClusterState, rebuilt: ClusterState) -> list[str]:
    """Return the names of the parts that differ; the numbers of classes and of resources may."""
    parts = chain(
        _columns("queue", kept.queues, rebuilt.queues, ("names", "inputs", "parent")),
        _columns("pod group", kept.pod_groups, rebuilt.pod_groups, GROUP_COLUMNS),
        _columns("pod set", kept.pod_groups.pod_sets, rebuilt.pod_groups.pod_sets, POD_SET_COLUMNS),
        _columns("task", kept.tasks, rebuilt.tasks, TASK_COLUMNS),
        _columns("node", kept.nodes, rebuilt.nodes, NODE_COLUMNS),
        _columns("count of queues", kept.queue_counts, rebuilt.queue_counts, ("held", "pending")),
        _others(kept, rebuilt),
    )
    return list(parts)


def _columns(part: str, kept: object, rebuilt: object, names: tuple[str, ...]) -> Iterator[str]:
    for name in names:
        if getattr(kept, name) != getattr(rebuilt, name):
            yield f"{part}: {name}"


def _others(kept: ClusterState, rebuilt: ClusterState) -> Iterator[str]:
    """Yield the differing parts that cannot be compared column by column."""
    if kept.now != rebuilt.now:
        yield "now"
    for kept_class, new_class in zip(kept.tasks.task_class, rebuilt.tasks.task_class, strict=False):
        if _meaning(kept_class, kept) != _meaning(new_class, rebuilt):
            yield "task: task_class"
            break
    kept_sets, new_sets = kept.pod_groups.pod_sets.tasks, rebuilt.pod_groups.pod_sets.tasks
    if [sorted(tasks) for tasks in kept_sets] != [sorted(tasks) for tasks in new_sets]:
        yield "pod set: tasks"
    if [list(tasks) for tasks in kept.nodes.tasks] != [
        list(tasks) for tasks in rebuilt.nodes.tasks
    ]:
        yield "node: tasks"
    if list(kept.nodes.sharing) != list(rebuilt.nodes.sharing):
        yield "node: sharing"
    for name in ("allocatable_rows", "idle_rows", "releasing_rows"):
        if _by_resource(kept, name) != _by_resource(rebuilt, name):
            yield f"node: {name}"
    for nodes in (kept.nodes, rebuilt.nodes):
        if not _agrees(nodes):
            yield "node: arrays and rows"
    if [_zero_names(kept, n) for n in range(len(kept.nodes))] != [
        _zero_names(rebuilt, n) for n in range(len(rebuilt.nodes))
    ]:
        yield "node: zero_rows"


def _meaning(task_class: TaskClass, state: ClusterState) -> tuple[Any, ...]:
    """Return what defines a class; its number, and those of the resources, may differ between states."""
    names = state.axis.names
    return (
        task_class.request,
        task_class.constraints,
        task_class.namespace,
        task_class.nominated_node,
        task_class.requested,
        task_class.gate_amounts,
        [(names[row], amount) for row, amount in task_class.charge],
    )


def _by_resource(state: ClusterState, rows: str) -> dict[str, list[float]]:
    """Return rows by resource; a resource that no node has and no task requests any more may still be on the axis."""
    return {
        name: row
        for name, row in zip(state.axis.names, getattr(state.nodes, rows), strict=True)
        if any(row)
    }


def _zero_names(state: ClusterState, node: int) -> set[str]:
    """Return the resources that some node has, but not this one."""
    rows = zip(state.axis.names, state.nodes.allocatable_rows, strict=True)
    return {
        name
        for row, (name, amounts) in enumerate(rows)
        if any(amounts) and row in state.nodes.zero_rows[node]
    }


def _agrees(nodes: Nodes) -> bool:
    """Return whether the arrays and the rows of the nodes hold the same amounts."""
    idle, releasing = nodes.idle.tolist(), nodes.releasing.tolist()
    return bool(idle == nodes.idle_rows and releasing == nodes.releasing_rows)
