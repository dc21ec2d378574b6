"""Preferred inter-pod affinity: nodes near wanted pods, and far from unwanted ones, score higher.

The raw sum of weights counts. Kubernetes normalises it over the nodes; here it outweighs every other score
except that of a nominated node anyway.
"""

from __future__ import annotations

import numpy as np

from scheduler.core.arrays import Floats
from scheduler.core.cluster.classes import TaskClass
from scheduler.core.session.hooks import Scope
from scheduler.core.session.neighbours import Neighbours, TermKind, neighbours_of
from scheduler.core.session.nodeset import NodeSet
from scheduler.core.session.session import Session

#: Score of one preferred term of weight 1 that one pod on a node meets.
SCORE = 1_000_000.0
#: What a required affinity term of a placed pod adds for the pods that match it, as in Kubernetes.
HARD_AFFINITY_WEIGHT = 1


class PodAffinityPlugin:
    """Registers the score if any pod has an affinity term."""

    name = "podaffinity"
    scope = Scope.CLUSTER

    def open(self, session: Session) -> None:
        """Collect the classes of pods that match terms of others, and register."""
        self._neighbours: Neighbours = neighbours_of(session)
        self._matched: frozenset[int] = frozenset()
        if not self._neighbours.has_terms:
            return
        kinds = (TermKind.AFFINITY, TermKind.PREFERRED, TermKind.PREFERRED_ANTI)
        self._matched = frozenset(
            task_class.index
            for task, task_class in enumerate(session.state.tasks.task_class)
            if any(self._neighbours.owners_matching(task, kind) for kind in kinds)
        )
        session.hooks.scores.append(self)

    def concerns(self, task_class: TaskClass) -> bool:
        """Return whether tasks have preferred terms, or match terms of other pods."""
        constraints = task_class.constraints
        return bool(
            constraints.preferred_pod_affinity or constraints.preferred_pod_anti_affinity
        ) or (task_class.index in self._matched)

    def scores(self, task: int, task_class: TaskClass, nodes: NodeSet) -> Floats:
        """Return the score of each node of a set."""
        near = self._neighbours
        total: Floats = np.zeros(len(nodes))
        weighted = [
            *((t.weight, c) for t, c in near.matching_each(task_class, TermKind.PREFERRED)),
            *((-t.weight, c) for t, c in near.matching_each(task_class, TermKind.PREFERRED_ANTI)),
            *((t.weight, c) for t, c in near.owners_matching(task, TermKind.PREFERRED)),
            *((-t.weight, c) for t, c in near.owners_matching(task, TermKind.PREFERRED_ANTI)),
            *((HARD_AFFINITY_WEIGHT, c) for _, c in near.owners_matching(task, TermKind.AFFINITY)),
        ]
        for weight, counter in weighted:
            total = total + weight * counter.per_node()[nodes.indices]
        scores: Floats = SCORE * total
        return scores

    def score(self, task: int, task_class: TaskClass, node: int) -> float:
        """Return the score of one node."""
        return float(self.scores(task, task_class, NodeSet.of([node]))[0])
