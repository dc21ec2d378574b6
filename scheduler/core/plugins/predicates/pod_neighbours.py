"""Required inter-pod affinity and anti-affinity, in both directions."""

from __future__ import annotations

import numpy as np

from scheduler.core.arrays import Bools
from scheduler.core.cluster.classes import TaskClass
from scheduler.core.cluster.state import ClusterState
from scheduler.core.session.fit import NodeReason, NodeReasonKind
from scheduler.core.session.hooks import Scope
from scheduler.core.session.neighbours import Counter, Neighbours, TermKind


class PodNeighbours:
    """Which nodes are near enough to wanted pods and far enough from unwanted ones."""

    name = "InterPodAffinity"
    scope = Scope.CLUSTER

    def __init__(self, state: ClusterState, neighbours: Neighbours) -> None:
        self._neighbours = neighbours
        self._count = len(state.nodes)
        #: Classes with a task that somebody's anti-affinity means.
        self._unwanted: frozenset[int] = frozenset(
            task_class.index
            for task, task_class in enumerate(state.tasks.task_class)
            if neighbours.has_terms and neighbours.owners_matching(task, TermKind.ANTI_AFFINITY)
        )

    def concerns(self, task_class: TaskClass) -> bool:
        """Ask tasks with required terms, and those that others keep away from."""
        constraints = task_class.constraints
        return bool(constraints.pod_affinity or constraints.pod_anti_affinity) or (
            task_class.index in self._unwanted
        )

    def mask(self, task: int, task_class: TaskClass) -> Bools:
        """Return which nodes satisfy all terms; tasks of one class may differ in whom others mean."""
        allowed: Bools = np.ones(self._count, dtype=np.bool_)
        wanted = self._neighbours.matching_all(task_class, TermKind.AFFINITY)
        is_first = bool(wanted) and self._may_be_first(task, task_class)
        for counter in wanted:
            allowed &= counter.has_domains() if is_first else counter.per_node() > 0
        for counter in self._repelling(task, task_class):
            allowed &= counter.per_node() == 0
        return allowed

    def passes(self, task: int, task_class: TaskClass, node: int) -> bool:
        """Tell whether one node satisfies all terms."""
        return not self.reasons(task, task_class, node)

    def reasons(self, task: int, task_class: TaskClass, node: int) -> tuple[NodeReason, ...]:
        """Say which direction fails."""
        wanted = self._neighbours.matching_all(task_class, TermKind.AFFINITY)
        if not all(counter.near(node) for counter in wanted) and not (
            self._may_be_first(task, task_class) and all(c.has_domain(node) for c in wanted)
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
        """Tell whether an unwanted pod is still about to leave the node's domain."""
        return any(counter.leaving_near(node) for counter in self._repelling(task, task_class))

    def _may_be_first(self, task: int, task_class: TaskClass) -> bool:
        """Tell whether nobody matches yet and the task itself does: the first of its kind may start."""
        wanted = self._neighbours.matching_all(task_class, TermKind.AFFINITY)
        return all(counter.is_empty for counter in wanted) and self._neighbours.matches_itself(
            task, task_class
        )

    def _repelling(self, task: int, task_class: TaskClass) -> list[Counter]:
        own = self._neighbours.matching_each(task_class, TermKind.ANTI_AFFINITY)
        others = self._neighbours.owners_matching(task, TermKind.ANTI_AFFINITY)
        return [counter for _, counter in (*own, *others)]
