"""Compare two states of one snapshot, the kept one with one built anew: the self-check and tests use it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from itertools import chain
from typing import Any

from scheduler.core.cluster.classes import TaskClass
from scheduler.core.cluster.nodes import Nodes
from scheduler.core.cluster.podgroups import PodGroups, PodSets
from scheduler.core.cluster.state import ClusterState
from scheduler.core.cluster.tasks import Tasks

#: Columns that are left out here are compared by `_others`, or are caches of a session.
GROUP_COLUMNS = tuple(
    part.name for part in fields(PodGroups) if part.name not in ("version", "trees", "pod_sets")
)
POD_SET_COLUMNS = tuple(part.name for part in fields(PodSets) if part.name != "tasks")
TASK_COLUMNS = tuple(part.name for part in fields(Tasks) if part.name != "task_class")
NODE_COLUMNS = ("inputs", "names", "gpu_memory", "gpu_count", "whole_gpus_used", "shared_gpus")


def differences(kept_state: ClusterState, rebuilt: ClusterState) -> list[str]:
    """Return the names of the parts that differ; the numbers of classes and of resources may."""
    old_groups, new_groups = kept_state.pod_groups, rebuilt.pod_groups
    old_counts, new_counts = kept_state.queue_counts, rebuilt.queue_counts
    parts = chain(
        _columns("queue", kept_state.queues, rebuilt.queues, ("names", "inputs", "parent")),
        _columns("pod group", old_groups, new_groups, GROUP_COLUMNS),
        _columns("pod set", old_groups.pod_sets, new_groups.pod_sets, POD_SET_COLUMNS),
        _columns("task", kept_state.tasks, rebuilt.tasks, TASK_COLUMNS),
        _columns("node", kept_state.nodes, rebuilt.nodes, NODE_COLUMNS),
        _columns("count of queues", old_counts, new_counts, ("held", "pending")),
        _others(kept_state, rebuilt),
    )
    return list(parts)


def _columns(part: str, old: object, new: object, names: tuple[str, ...]) -> Iterator[str]:
    for name in names:
        if getattr(old, name) != getattr(new, name):
            yield f"{part}: {name}"


def _others(kept_state: ClusterState, rebuilt: ClusterState) -> Iterator[str]:
    """Yield the differing parts that cannot be compared column by column."""
    if kept_state.now != rebuilt.now:
        yield "now"
    old_classes, new_classes = kept_state.tasks.task_class, rebuilt.tasks.task_class
    for old_class, new_class in zip(old_classes, new_classes, strict=False):
        if _meaning(old_class, kept_state) != _meaning(new_class, rebuilt):
            yield "task: task_class"
            break
    old_sets, new_sets = kept_state.pod_groups.pod_sets.tasks, rebuilt.pod_groups.pod_sets.tasks
    if [sorted(tasks) for tasks in old_sets] != [sorted(tasks) for tasks in new_sets]:
        yield "pod set: tasks"
    if [list(tasks) for tasks in kept_state.nodes.tasks] != [
        list(tasks) for tasks in rebuilt.nodes.tasks
    ]:
        yield "node: tasks"
    if list(kept_state.nodes.sharing) != list(rebuilt.nodes.sharing):
        yield "node: sharing"
    for name in ("allocatable_rows", "idle_rows", "releasing_rows"):
        if _by_resource(kept_state, name) != _by_resource(rebuilt, name):
            yield f"node: {name}"
    for nodes in (kept_state.nodes, rebuilt.nodes):
        if not _agrees(nodes):
            yield "node: arrays and rows"
    if [_zero_names(kept_state, n) for n in range(len(kept_state.nodes))] != [
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
