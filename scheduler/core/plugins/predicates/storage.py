"""Storage capacity of CSI drivers (opt-in): is there room on the node for the volumes still to be made?

A class may have one capacity that reaches a node; where it has more, nothing about the node's storage can
be known and all of its capacities are left out. Room that leaving pods will free can be waited for, so
a task that fits only then is nominated, not bound.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from scheduler.core.arrays import Bools
from scheduler.core.cluster.classes import TaskClass
from scheduler.core.cluster.inputs import NodeInput, StorageCapacity, VolumeClaim
from scheduler.core.cluster.matching import matches_node_term
from scheduler.core.cluster.state import ClusterState
from scheduler.core.cluster.status import ACTIVE_USED, TaskStatus
from scheduler.core.cluster.tasks import NOWHERE
from scheduler.core.plugins.predicates.volumes import VolumeClaims
from scheduler.core.session.fit import NodeReason, NodeReasonKind
from scheduler.core.session.hooks import Scope

BOUND = "Bound"


class StorageRoom:
    """Filter, ledger and wait rule of storage capacities."""

    name = "CsiStorage"
    scope = Scope.CLUSTER

    def __init__(self, state: ClusterState, claims: VolumeClaims) -> None:
        self._state = state
        given = state.cluster_input.volumes
        self._tracked = frozenset(given.tracked_classes)
        self._claims = claims
        self._capacities = given.capacities
        self._reach = [_reachable(node, self._capacities) for node in state.nodes.inputs]
        self._used = [0.0] * len(self._capacities)
        self._freeing = [0.0] * len(self._capacities)
        for task, node in enumerate(state.tasks.node):
            if node != NOWHERE and ACTIVE_USED[state.tasks.status[task]]:
                for capacity, amount in self._unmade(task, node):
                    self._used[capacity] += amount
                if state.tasks.status[task] == TaskStatus.RELEASING:
                    for capacity, amount in self._freed(task, node):
                        self._freeing[capacity] += amount

    def concerns(self, task_class: TaskClass) -> bool:
        """Follow tasks with a claim of a tracked class."""
        return bool(self._mine(task_class))

    # ------------------------------------------------------------------------------------ filter

    def mask(self, task: int, task_class: TaskClass) -> Bools:
        """Return which nodes have room, or will have."""
        nodes = range(len(self._reach))
        return np.array([self.passes(task, task_class, node) for node in nodes], dtype=np.bool_)

    def passes(self, task: int, task_class: TaskClass, node: int) -> bool:
        """Tell whether one node has room, or will have."""
        return not self._refusal(task, task_class, node, wait=True)

    def reasons(self, task: int, task_class: TaskClass, node: int) -> tuple[NodeReason, ...]:
        """Say which class lacks room."""
        text = self._refusal(task, task_class, node, wait=True)
        return (NodeReason(NodeReasonKind.VOLUME, text),) if text else ()

    def must_wait(self, task: int, node: int, task_class: TaskClass) -> bool:
        """Tell whether the room is still held by those who leave."""
        return bool(self._refusal(task, task_class, node, wait=False))

    def _refusal(self, task: int, task_class: TaskClass, node: int, *, wait: bool) -> str:
        orphans = [f"{c.namespace}/{c.name}" for c in self._mine(task_class) if c.is_owner_deleted]
        if orphans:
            return f"task has deleted storage claims: {', '.join(orphans)}"
        is_evicted = self._state.tasks.status[task] == TaskStatus.RELEASING
        needs: dict[str, float] = {}
        for claim in self._mine(task_class):
            if claim.phase != BOUND or (is_evicted and claim.owner_uid):
                needs[claim.storage_class] = needs.get(claim.storage_class, 0.0) + claim.size_bytes
        for storage_class, need in sorted(needs.items()):
            capacity = self._reach[node].get(storage_class)
            if capacity is None:
                return f"no allocatable storage from storageclass {storage_class} found"
            free = self._capacities[capacity].capacity_bytes - self._used[capacity]
            if need > free + (self._freeing[capacity] if wait else 0.0):
                return f"node(s) did not have enough free storage for storageclass {storage_class}"
        return ""

    # ------------------------------------------------------------------------------------ ledger

    def placed(self, task: int, node: int) -> None:
        """Count the volumes to be made for a task that comes, or that stays after all."""
        if self._state.tasks.status[task] == TaskStatus.RUNNING:  # an eviction was taken back
            for capacity, amount in self._freed(task, node):
                self._add(self._freeing, capacity, -amount)
            return
        for capacity, amount in self._unmade(task, node):
            self._add(self._used, capacity, amount)

    def left(self, task: int, node: int) -> None:
        """Let what an evicted task owns be waited for."""
        for capacity, amount in self._freed(task, node):
            self._add(self._freeing, capacity, amount)

    def _add(self, cells: list[float], capacity: int, amount: float) -> None:
        self._state.journal.put(cells, capacity, cells[capacity] + amount)

    def _unmade(self, task: int, node: int) -> Iterable[tuple[int, float]]:
        """Volumes the driver does not count yet."""
        for claim in self._mine(self._state.tasks.task_class[task]):
            capacity = self._reach[node].get(claim.storage_class)
            if capacity is not None and claim.phase != BOUND:
                yield capacity, claim.size_bytes

    def _freed(self, task: int, node: int) -> Iterable[tuple[int, float]]:
        """Volumes that go with their pod, because it owns the claim."""
        for claim in self._mine(self._state.tasks.task_class[task]):
            capacity = self._reach[node].get(claim.storage_class)
            if capacity is not None and claim.owner_uid:
                yield capacity, claim.size_bytes

    def _mine(self, task_class: TaskClass) -> list[VolumeClaim]:
        return [one for one in self._claims.of(task_class) if one.storage_class in self._tracked]


def _reachable(node: NodeInput, capacities: tuple[StorageCapacity, ...]) -> dict[str, int]:
    """Return storage class -> capacity of a node; nothing if any class has more than one."""
    found: dict[str, int] = {}
    for index, one in enumerate(capacities):
        selector = one.node_selector
        is_open = not selector.labels and not selector.fields
        if is_open or matches_node_term(node, selector):
            if one.storage_class in found:
                return {}
            found[one.storage_class] = index
    return found
