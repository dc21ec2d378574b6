"""Required inter-pod affinity and anti-affinity, in both directions."""

from __future__ import annotations

import numpy as np

from scheduler.core.arrays import Bools
from scheduler.core.cluster.classes import TaskClass
from scheduler.core.cluster.state import ClusterState
from scheduler.core.cluster.status import PENDING
from scheduler.core.session.fit import NodeReason, NodeReasonKind
from scheduler.core.session.hooks import Scope
from scheduler.core.session.neighbours import DomainCounter, Neighbours, TermKind


class PodNeighbours:
    """Allows nodes whose domains hold the pods a task needs, and none that must be kept apart."""

    name = "InterPodAffinity"
    scope = Scope.CLUSTER

    def __init__(self, state: ClusterState, neighbours: Neighbours) -> None:
        self._neighbours = neighbours
        self._status = state.tasks.status
        self._count = len(state.nodes)
        #: Classes with a task that matches the anti-affinity of another pod.
        self._kept_apart: frozenset[int] = frozenset(
            task_class.index
            for task, task_class in enumerate(state.tasks.task_class)
            if neighbours.has_terms and neighbours.owners_matching(task, TermKind.ANTI_AFFINITY)
        )

    def concerns(self, task_class: TaskClass) -> bool:
        """Return whether tasks have required terms, or match the anti-affinity of other pods."""
        constraints = task_class.constraints
        return bool(constraints.pod_affinity or constraints.pod_anti_affinity) or (
            task_class.index in self._kept_apart
        )

    def mask(self, task: int, task_class: TaskClass) -> Bools:
        """Return which nodes satisfy all terms; which terms of others match depends on the task's labels."""
        allowed: Bools = np.ones(self._count, dtype=np.bool_)
        affinity_counters = self._neighbours.matching_all(task_class, TermKind.AFFINITY)
        is_first = bool(affinity_counters) and self._may_be_first(task, task_class)
        for counter in affinity_counters:
            allowed &= counter.has_domains() if is_first else counter.per_node() > 0
        for counter in self._repelling(task, task_class):
            allowed &= counter.per_node() == 0
        return allowed

    def passes(self, task: int, task_class: TaskClass, node: int) -> bool:
        """Return whether one node satisfies all terms."""
        return not self.reasons(task, task_class, node)

    def reasons(self, task: int, task_class: TaskClass, node: int) -> tuple[NodeReason, ...]:
        """Return which kind of term fails."""
        affinity_counters = self._neighbours.matching_all(task_class, TermKind.AFFINITY)
        if not all(counter.near(node) for counter in affinity_counters) and not (
            self._may_be_first(task, task_class)
            and all(c.has_domain(node) for c in affinity_counters)
        ):
            return (NodeReason(NodeReasonKind.POD_AFFINITY),)
        for _, counter in self._neighbours.matching_each(task_class, TermKind.ANTI_AFFINITY):
            if counter.near(node):
                return (NodeReason(NodeReasonKind.POD_ANTI_AFFINITY),)
        for _, counter in self._neighbours.owners_matching(task, TermKind.ANTI_AFFINITY):
            if counter.near(node):
                return (NodeReason(NodeReasonKind.EXISTING_ANTI_AFFINITY),)
        return ()

    def must_wait(self, task: int, node: int, task_class: TaskClass) -> bool:
        """Return whether a pod that must be kept apart is still about to leave the node's domain."""
        return any(counter.leaving_near(node) for counter in self._repelling(task, task_class))

    def _may_be_first(self, task: int, task_class: TaskClass) -> bool:
        """Return whether no pod matches the terms yet but the task itself does: then it may be the first.

        A pending pod is not the first while a matching pod is still there, even if that one leaves: it
        would take the place beside which it asked to be. Evicted pods that look for their place again
        have been there themselves.
        """
        affinity_counters = self._neighbours.matching_all(task_class, TermKind.AFFINITY)
        is_new = self._status[task] == PENDING
        return all(
            counter.is_empty and (counter.was_empty or not is_new) for counter in affinity_counters
        ) and self._neighbours.matches_itself(task, task_class)

    def _repelling(self, task: int, task_class: TaskClass) -> list[DomainCounter]:
        own_counters = self._neighbours.matching_each(task_class, TermKind.ANTI_AFFINITY)
        other_counters = self._neighbours.owners_matching(task, TermKind.ANTI_AFFINITY)
        return [counter for _, counter in (*own_counters, *other_counters)]
