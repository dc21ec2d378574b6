"""Checks of a task that need no node: what it mounts exists, and some node could ever be meant or hold it."""

from __future__ import annotations

from scheduler.core.cluster.axis import (
    CPU_ROW,
    GPU_ROW,
    MEMORY_ROW,
    PODS_ROW,
    STORAGE,
    plain_amount,
)
from scheduler.core.cluster.classes import TaskClass
from scheduler.core.cluster.constraints import NodeTerm, Operator
from scheduler.core.cluster.device_backed import device_backed
from scheduler.core.cluster.state import ClusterState
from scheduler.core.fairshare.capacity import human_amount
from scheduler.core.session.fit import CheckFailure
from scheduler.core.session.hooks import NODE_AFFINITY


class ConfigMapCheck:
    """Every config map a task cannot start without must exist in its namespace."""

    name = "ConfigMap"

    def __init__(self, state: ClusterState) -> None:
        self._known = state.given.config_maps

    def concerns(self, klass: TaskClass) -> bool:
        """Check tasks that need config maps, if it is known which exist."""
        return self._known is not None and bool(klass.constraints.config_maps)

    def check(self, task: int, klass: TaskClass) -> CheckFailure | None:
        """Return the missing ones."""
        del task
        known = self._known or frozenset()
        missing = [
            name for name in klass.constraints.config_maps if (klass.namespace, name) not in known
        ]
        if not missing:
            return None
        text = f"Missing required configmaps: [{' '.join(missing)}]"
        return CheckFailure(self.name, text, is_victim_invariant=True)


class NodeNameCheck:
    """Terms of node affinity that name nodes must leave at least one of them."""

    name = NODE_AFFINITY

    def concerns(self, klass: TaskClass) -> bool:
        """Check tasks whose every alternative names nodes, and none that both of its parts allow."""
        terms = klass.constraints.node_affinity
        return bool(terms) and all(_named_nodes(term) == frozenset() for term in terms or ())

    def check(self, task: int, klass: TaskClass) -> CheckFailure | None:
        """Say that the terms contradict each other."""
        del task, klass
        return CheckFailure(self.name, "pod affinity terms conflict")


def _named_nodes(term: NodeTerm) -> frozenset[str] | None:
    """Return the nodes that a term names; None if it names none, and so leaves them open."""
    found: frozenset[str] | None = None
    for one in term.fields:
        if one.key == "metadata.name" and one.operator is Operator.IN:
            found = frozenset(one.values) if found is None else found & frozenset(one.values)
    return found


class LargestNodeCheck:
    """No part of a request may exceed what the largest node has of it."""

    name = "MaxNodePoolResources"

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        allocatable = state.nodes.allocatable
        self._largest = (
            allocatable.max(axis=1).tolist() if len(state.nodes) else [0.0] * len(state.axis)
        )
        #: What device classes hand out is not in what nodes say they have; GPUs are counted in.
        row_of = state.axis.row_of
        self._exempt = {row_of[n] for n in device_backed(state.given.devices) if n in row_of} - {
            GPU_ROW
        }
        self._known: dict[int, tuple[int, float] | None] = {}

    def concerns(self, klass: TaskClass) -> bool:
        """Check every class that has a part which is too large."""
        if klass.index not in self._known:
            self._known[klass.index] = self._too_large(klass)
        return self._known[klass.index] is not None

    def check(self, task: int, klass: TaskClass) -> CheckFailure | None:
        """Say which part is too large, and what the largest node has."""
        found = self._too_large(klass)
        if found is None:
            return None
        row, most = found
        given = self._state.tasks.inputs[task]
        pool = self._state.given.node_pool
        word = _WORDS.get(row, self._state.axis.names[row])
        intro = f"The pod {given.namespace}/{given.name} requires {self._details(klass)}. "
        if most == 0:
            text = f"{intro}No node in the {pool} node-pool has {word} resources"
        else:
            text = (
                f"{intro}Max {word} resources available in a single node in the {pool} "
                f"node-pool is topped at {self._amount(row, most)}{self._unit(row)}"
            )
        return CheckFailure(self.name, text, is_victim_invariant=True)

    def _too_large(self, klass: TaskClass) -> tuple[int, float] | None:
        for row in (GPU_ROW, CPU_ROW, MEMORY_ROW, *range(PODS_ROW + 1, len(self._largest))):
            if klass.vector[row] > self._largest[row] and row not in self._exempt:
                return row, self._largest[row]
        return None

    def _details(self, klass: TaskClass) -> str:
        names = self._state.axis.names
        parts = [
            f"GPU: {self._amount(GPU_ROW, klass.vector[GPU_ROW])}",
            f"CPU: {self._amount(CPU_ROW, klass.vector[CPU_ROW])} (cores)",
            f"memory: {self._amount(MEMORY_ROW, klass.vector[MEMORY_ROW])} (GB)",
        ]
        mig = {name for name, _ in klass.request.mig}
        others = [row for row in range(PODS_ROW + 1, len(names)) if klass.vector[row]]
        for row in sorted(others, key=lambda row: names[row] in mig):
            prefix = "mig " if names[row] in mig else ""
            unit = " (GB)" if names[row] in STORAGE else ""
            amount = self._amount(row, klass.vector[row])
            parts.append(f"{prefix}{names[row]}: {amount}{unit}")
        return ", ".join(parts)

    def _amount(self, row: int, amount: float) -> str:
        if row <= GPU_ROW:
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
