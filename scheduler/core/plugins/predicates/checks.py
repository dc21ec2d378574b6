"""Checks of a task that need no node: its config maps exist, and some node could hold it at all."""

from __future__ import annotations

from scheduler.core.cluster.amount_text import human_amount, plain_amount
from scheduler.core.cluster.axis import (
    CPU_ROW,
    GPU_ROW,
    MEMORY_ROW,
    PODS_ROW,
    STORAGE,
)
from scheduler.core.cluster.classes import TaskClass
from scheduler.core.cluster.constraints import NodeTerm, Operator
from scheduler.core.cluster.device_backed import device_backed
from scheduler.core.cluster.state import ClusterState
from scheduler.core.session.fit import CheckFailure
from scheduler.core.session.hooks import NODE_AFFINITY


class ConfigMapCheck:
    """Every config map a task cannot start without must exist in its namespace."""

    name = "ConfigMap"

    def __init__(self, state: ClusterState) -> None:
        self._existing = state.cluster_input.config_maps

    def concerns(self, task_class: TaskClass) -> bool:
        """Return whether tasks need config maps, and it is known which exist."""
        return self._existing is not None and bool(task_class.constraints.config_maps)

    def check(self, task: int, task_class: TaskClass) -> CheckFailure | None:
        """Return a failure that names the missing config maps."""
        del task
        existing = self._existing or frozenset()
        missing = [
            name
            for name in task_class.constraints.config_maps
            if (task_class.namespace, name) not in existing
        ]
        if not missing:
            return None
        text = f"Missing required configmaps: [{' '.join(missing)}]"
        return CheckFailure(self.name, text, is_victim_invariant=True)


class NodeNameCheck:
    """Required node affinity by node names must allow at least one node."""

    name = NODE_AFFINITY

    def concerns(self, task_class: TaskClass) -> bool:
        """Return whether every required term contradicts itself: it demands that a node has two names."""
        terms = task_class.constraints.node_affinity
        return bool(terms) and all(_named_nodes(term) == frozenset() for term in terms or ())

    def check(self, task: int, task_class: TaskClass) -> CheckFailure | None:
        """Return the failure, in KAI's words."""
        del task, task_class
        return CheckFailure(self.name, "pod affinity terms conflict")


def _named_nodes(term: NodeTerm) -> frozenset[str] | None:
    """Return the node names that a term allows; None if it does not restrict names."""
    names: frozenset[str] | None = None
    for field in term.fields:
        if field.key == "metadata.name" and field.operator is Operator.IN:
            names = frozenset(field.values) if names is None else names & frozenset(field.values)
    return names


class LargestNodeCheck:
    """No part of a request may exceed what the largest node has of it."""

    name = "MaxNodePoolResources"

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        allocatable = state.nodes.allocatable
        self._largest = (
            allocatable.max(axis=1).tolist() if len(state.nodes) else [0.0] * len(state.axis)
        )
        row_of = state.axis.row_of
        # What device classes provide is not in the allocatable amounts of nodes, except GPUs.
        self._exempt = {
            row_of[n] for n in device_backed(state.cluster_input.devices) if n in row_of
        } - {GPU_ROW}
        #: Class index -> (row of a part that is too large for every node, the most that one node has of it); None if no part is.
        self._too_large_of: dict[int, tuple[int, float] | None] = {}

    def concerns(self, task_class: TaskClass) -> bool:
        """Return whether some part of the request is too large for every node."""
        if task_class.index not in self._too_large_of:
            self._too_large_of[task_class.index] = self._too_large(task_class)
        return self._too_large_of[task_class.index] is not None

    def check(self, task: int, task_class: TaskClass) -> CheckFailure | None:
        """Return which part is too large, and what the largest node has."""
        too_large = self._too_large(task_class)
        if too_large is None:
            return None
        row, most = too_large
        inputs = self._state.tasks.inputs[task]
        pool = self._state.cluster_input.node_pool
        word = _WORDS.get(row, self._state.axis.names[row])
        intro = f"The pod {inputs.namespace}/{inputs.name} requires {self._details(task_class)}. "
        if most == 0:
            text = f"{intro}No node in the {pool} node-pool has {word} resources"
        else:
            text = (
                f"{intro}Max {word} resources available in a single node in the {pool} "
                f"node-pool is topped at {self._amount(row, most)}{self._unit(row)}"
            )
        return CheckFailure(self.name, text, is_victim_invariant=True)

    def _too_large(self, task_class: TaskClass) -> tuple[int, float] | None:
        """Return the row of the first part that is too large, and the most that one node has of it."""
        for row in (GPU_ROW, CPU_ROW, MEMORY_ROW, *range(PODS_ROW + 1, len(self._largest))):
            if task_class.vector[row] > self._largest[row] and row not in self._exempt:
                return row, self._largest[row]
        return None

    def _details(self, task_class: TaskClass) -> str:
        names = self._state.axis.names
        parts = [
            f"GPU: {self._amount(GPU_ROW, task_class.gpu_amount + task_class.mig_units)}",
            f"CPU: {self._amount(CPU_ROW, task_class.vector[CPU_ROW])} (cores)",
            f"memory: {self._amount(MEMORY_ROW, task_class.vector[MEMORY_ROW])} (GB)",
            "pods: 1",
        ]
        mig = {name for name, _ in task_class.request.mig}
        others = [row for row in range(PODS_ROW + 1, len(names)) if task_class.vector[row]]
        for row in sorted(others, key=lambda row: names[row] in mig):
            prefix = "mig " if names[row] in mig else ""
            unit = " (GB)" if names[row] in STORAGE else ""
            amount = self._amount(row, task_class.vector[row])
            parts.append(f"{prefix}{names[row]}: {amount}{unit}")
        return ", ".join(parts)

    def _amount(self, row: int, amount: float) -> str:
        if row in (CPU_ROW, MEMORY_ROW, GPU_ROW):
            return human_amount(float(amount), row)
        name = self._state.axis.names[row]
        if name in STORAGE:
            return human_amount(float(amount), MEMORY_ROW)
        return plain_amount(name, float(amount))

    def _unit(self, row: int) -> str:
        if self._state.axis.names[row] in STORAGE:
            return " GB"
        return _UNITS.get(row, "")


_WORDS = {GPU_ROW: "GPU", CPU_ROW: "CPU", MEMORY_ROW: "memory"}
_UNITS = {CPU_ROW: " cores", MEMORY_ROW: " GB"}
