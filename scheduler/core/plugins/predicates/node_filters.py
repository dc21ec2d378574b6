"""Filters that depend on the tasks on a node: host ports, and MIG tasks beside legacy MIG tasks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from scheduler.core.arrays import Bools
from scheduler.core.cluster.classes import TaskClass
from scheduler.core.cluster.matching import ports_clash
from scheduler.core.cluster.state import ClusterState
from scheduler.core.cluster.status import TaskStatus
from scheduler.core.session.fit import NodeReason, NodeReasonKind
from scheduler.core.session.hooks import Scope


def staying_tasks(state: ClusterState, node: int) -> Iterator[int]:
    """Yield the tasks on a node except those evicted in this cycle.

    A pod that was terminating already when the cycle began still counts for rules about neighbours,
    since it is not known when it will be gone.
    """
    tasks = state.tasks
    for task in state.nodes.tasks[node]:
        if tasks.node[task] == node and (
            tasks.status[task] != TaskStatus.RELEASING
            or tasks.inputs[task].status == TaskStatus.RELEASING
        ):
            yield task


class HostPorts:
    """Two tasks with one host port cannot share a node."""

    name = "PodFitsHostPorts"
    scope = Scope.NODE

    def __init__(self, state: ClusterState) -> None:
        self._state = state

    def concerns(self, task_class: TaskClass) -> bool:
        """Return whether tasks have host ports."""
        return bool(task_class.constraints.host_ports)

    def mask(self, task: int, task_class: TaskClass) -> Bools:
        """Return which nodes have the ports free."""
        nodes = range(len(self._state.nodes))
        return np.array([self.passes(task, task_class, node) for node in nodes], dtype=np.bool_)

    def passes(self, task: int, task_class: TaskClass, node: int) -> bool:
        """Return whether one node has the ports free.

        `task` may be any task of the class. The task to place is pending or evicted, so it is never
        among the staying tasks.
        """
        del task
        return not any(
            ports_clash(host_port, used_port)
            for other in staying_tasks(self._state, node)
            for used_port in self._state.tasks.task_class[other].constraints.host_ports
            for host_port in task_class.constraints.host_ports
        )

    def reasons(self, task: int, task_class: TaskClass, node: int) -> tuple[NodeReason, ...]:
        """Return the only reason of this filter."""
        del task, task_class, node
        return (NodeReason(NodeReasonKind.PORTS),)


class LegacyMigNeighbours:
    """Keeps MIG tasks off nodes with legacy MIG tasks, whose devices are not accounted for."""

    name = "LegacyMig"
    scope = Scope.NODE

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._has_legacy = any(task_class.is_legacy_mig for task_class in state.classes.classes)

    def concerns(self, task_class: TaskClass) -> bool:
        """Return whether tasks request MIG devices and there are legacy MIG tasks."""
        return task_class.is_mig and self._has_legacy

    def mask(self, task: int, task_class: TaskClass) -> Bools:
        """Return which nodes hold no legacy MIG task."""
        nodes = range(len(self._state.nodes))
        return np.array([self.passes(task, task_class, node) for node in nodes], dtype=np.bool_)

    def passes(self, task: int, task_class: TaskClass, node: int) -> bool:
        """Return whether one node holds no legacy MIG task."""
        del task, task_class
        return not self._legacy_on(node)

    def reasons(self, task: int, task_class: TaskClass, node: int) -> tuple[NodeReason, ...]:
        """Name the legacy tasks."""
        del task, task_class
        names = ", ".join(self._legacy_on(node))
        return (NodeReason(NodeReasonKind.MIG_BESIDE_LEGACY_MIG, names),)

    def _legacy_on(self, node: int) -> list[str]:
        tasks = self._state.tasks
        return sorted(
            f"{tasks.inputs[task].namespace}/{tasks.inputs[task].name}"
            for task in self._state.nodes.tasks[node]
            if tasks.task_class[task].is_legacy_mig
        )
