"""Storage capacity of CSI drivers (opt-in): room on the node for the volumes that are not created yet.

A storage class may have one capacity object for a node. If any class has more, it is not known which one
applies, and all capacities of the node are ignored. A task that fits only on room that terminating pods
will free is nominated, not bound.
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
    """Filter, ledger and wait rule of storage capacities; a capacity is known by its index in the inputs."""

    name = "CsiStorage"
    scope = Scope.CLUSTER

    def __init__(self, state: ClusterState, claims: VolumeClaims) -> None:
        self._state = state
        inputs = state.cluster_input.volumes
        self._tracked = frozenset(inputs.tracked_classes)
        self._claims = claims
        self._capacities = inputs.capacities
        #: Per node: storage class -> index of the capacity.
        self._capacity_of = [_capacities_of(node, self._capacities) for node in state.nodes.inputs]
        #: Per capacity, bytes of volumes to create, and bytes that terminating pods will free.
        self._used = [0.0] * len(self._capacities)
        self._freeing = [0.0] * len(self._capacities)
        for task, node in enumerate(state.tasks.node):
            if node != NOWHERE and ACTIVE_USED[state.tasks.status[task]]:
                for capacity, amount in self._to_create(task, node):
                    self._used[capacity] += amount
                if state.tasks.status[task] == TaskStatus.RELEASING:
                    for capacity, amount in self._freed(task, node):
                        self._freeing[capacity] += amount

    def concerns(self, task_class: TaskClass) -> bool:
        """Return whether tasks have a claim of a tracked storage class."""
        return bool(self._tracked_claims(task_class))

    # ------------------------------------------------------------------------------------ filter

    def mask(self, task: int, task_class: TaskClass) -> Bools:
        """Return which nodes have room now, or once terminating pods are gone."""
        nodes = range(len(self._capacity_of))
        return np.array([self.passes(task, task_class, node) for node in nodes], dtype=np.bool_)

    def passes(self, task: int, task_class: TaskClass, node: int) -> bool:
        """Return whether one node has room now, or once terminating pods are gone."""
        return not self._refusal(task, task_class, node, with_freeing=True)

    def reasons(self, task: int, task_class: TaskClass, node: int) -> tuple[NodeReason, ...]:
        """Return which storage class lacks room."""
        text = self._refusal(task, task_class, node, with_freeing=True)
        return (NodeReason(NodeReasonKind.VOLUME, text),) if text else ()

    def must_wait(self, task: int, node: int, task_class: TaskClass) -> bool:
        """Return whether the room is still held by terminating pods."""
        return bool(self._refusal(task, task_class, node, with_freeing=False))

    def _refusal(self, task: int, task_class: TaskClass, node: int, *, with_freeing: bool) -> str:
        """Return why a node has no room, or "".

        Parameters
        ----------
        with_freeing : count the room that terminating pods will free
        """
        orphans = [
            f"{claim.namespace}/{claim.name}"
            for claim in self._tracked_claims(task_class)
            if claim.is_owner_deleted
        ]
        if orphans:
            return f"task has deleted storage claims: {', '.join(orphans)}"
        # The volumes that an evicted pod owns go with it, so a new place needs room for them again.
        is_evicted = self._state.tasks.status[task] == TaskStatus.RELEASING
        needs: dict[str, float] = {}
        for claim in self._tracked_claims(task_class):
            if claim.phase != BOUND or (is_evicted and claim.owner_uid):
                needs[claim.storage_class] = needs.get(claim.storage_class, 0.0) + claim.size_bytes
        for storage_class, need in sorted(needs.items()):
            capacity = self._capacity_of[node].get(storage_class)
            if capacity is None:
                return f"no allocatable storage from storageclass {storage_class} found"
            free = self._capacities[capacity].capacity_bytes - self._used[capacity]
            if need > free + (self._freeing[capacity] if with_freeing else 0.0):
                return f"node(s) did not have enough free storage for storageclass {storage_class}"
        return ""

    # ------------------------------------------------------------------------------------ ledger

    def placed(self, task: int, node: int) -> None:
        """Count the volumes to create for a placed task, or undo the eviction of one that stays."""
        if self._state.tasks.status[task] == TaskStatus.RUNNING:  # an eviction was undone
            for capacity, amount in self._freed(task, node):
                self._add(self._freeing, capacity, -amount)
            return
        for capacity, amount in self._to_create(task, node):
            self._add(self._used, capacity, amount)

    def left(self, task: int, node: int) -> None:
        """Count the volumes that an evicted task owns as being freed."""
        for capacity, amount in self._freed(task, node):
            self._add(self._freeing, capacity, amount)

    def _add(self, amounts: list[float], capacity: int, amount: float) -> None:
        self._state.journal.put(amounts, capacity, amounts[capacity] + amount)

    def _to_create(self, task: int, node: int) -> Iterable[tuple[int, float]]:
        """Yield (capacity, bytes) of the volumes to create, which the driver does not count yet."""
        for claim in self._tracked_claims(self._state.tasks.task_class[task]):
            capacity = self._capacity_of[node].get(claim.storage_class)
            if capacity is not None and claim.phase != BOUND:
                yield capacity, claim.size_bytes

    def _freed(self, task: int, node: int) -> Iterable[tuple[int, float]]:
        """Yield (capacity, bytes) of the volumes that are deleted with their pod, because it owns the claim."""
        for claim in self._tracked_claims(self._state.tasks.task_class[task]):
            capacity = self._capacity_of[node].get(claim.storage_class)
            if capacity is not None and claim.owner_uid:
                yield capacity, claim.size_bytes

    def _tracked_claims(self, task_class: TaskClass) -> list[VolumeClaim]:
        claims = self._claims.of(task_class)
        return [claim for claim in claims if claim.storage_class in self._tracked]


def _capacities_of(node: NodeInput, capacities: tuple[StorageCapacity, ...]) -> dict[str, int]:
    """Return storage class -> index of its capacity for a node; empty if any class has more than one."""
    by_class: dict[str, int] = {}
    for index, capacity in enumerate(capacities):
        selector = capacity.node_selector
        selects_all = not selector.labels and not selector.fields
        if selects_all or matches_node_term(node, selector):
            if capacity.storage_class in by_class:
                return {}
            by_class[capacity.storage_class] = index
    return by_class
