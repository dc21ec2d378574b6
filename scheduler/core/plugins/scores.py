"""Scores for the kind of node and a nominated node, and the weights of free room and shared devices."""

from __future__ import annotations

import numpy as np

from scheduler.core.arrays import Floats
from scheduler.core.cluster.axis import GPU_ROW
from scheduler.core.cluster.classes import TaskClass
from scheduler.core.cluster.nodes import Nodes
from scheduler.core.session.hooks import Scope
from scheduler.core.session.nodeset import NodeSet
from scheduler.core.session.session import Session

RESOURCE_TYPE_SCORE = 10.0
AVAILABILITY_SCORE = 1_000.0
SHARING_SCORE = 10_000.0
NOMINATED_SCORE = 10_000_000.0


class ResourceTypePlugin:
    """Tasks without GPU prefer nodes without GPU."""

    def open(self, session: Session) -> None:
        """Register the score."""
        session.hooks.scores.append(
            PlainNodeScore("resourcetype", session.state.nodes, RESOURCE_TYPE_SCORE)
        )


def _are_plain(nodes: Nodes) -> Floats:
    """Return 1 for every node without GPU, 0 for the others."""
    return np.array(
        [
            nodes.allocatable[GPU_ROW, index] <= 0 and node.dra_gpus <= 0 and not node.mig_enabled
            for index, node in enumerate(nodes.inputs)
        ],
        dtype=np.float64,
    )


class PlainNodeScore:
    """Gives nodes without GPU a score for tasks without GPU."""

    scope = Scope.CLASS

    def __init__(self, name: str, nodes: Nodes, amount: float) -> None:
        self.name = name
        are_plain: Floats = nodes.memo.remember("plain nodes", lambda: _are_plain(nodes))
        self._scores: Floats = are_plain * amount

    def concerns(self, task_class: TaskClass) -> bool:
        """Return whether tasks request no GPU."""
        return task_class.is_cpu_only

    def scores(self, task: int, task_class: TaskClass, nodes: NodeSet) -> Floats:
        """Return the score of each node of a set."""
        del task, task_class
        scores: Floats = self._scores[nodes.indices]
        return scores

    def score(self, task: int, task_class: TaskClass, node: int) -> float:
        """Return the score of one node."""
        del task, task_class
        return float(self._scores[node])


class NominatedNodePlugin:
    """A node nominated for the task goes before all others."""

    name = "nominatednode"
    scope = Scope.CLASS

    def open(self, session: Session) -> None:
        """Register the score."""
        self._index_of = session.state.nodes.index_of
        session.hooks.scores.append(self)

    def concerns(self, task_class: TaskClass) -> bool:
        """Return whether tasks have a nominated node."""
        return task_class.nominated_node in self._index_of

    def scores(self, task: int, task_class: TaskClass, nodes: NodeSet) -> Floats:
        """Return the score of each node of a set."""
        del task
        target = self._index_of[task_class.nominated_node]
        scores: Floats = np.where(nodes.indices == target, NOMINATED_SCORE, 0.0)
        return scores

    def score(self, task: int, task_class: TaskClass, node: int) -> float:
        """Return the score of one node."""
        del task
        return NOMINATED_SCORE if node == self._index_of[task_class.nominated_node] else 0.0


class NodeAvailabilityPlugin:
    """Nodes where a task fits without waiting go first."""

    def open(self, session: Session) -> None:
        """Set the weight; the placement tests for free room anyway."""
        session.hooks.availability_weight = AVAILABILITY_SCORE


class GpuSharingOrderPlugin:
    """A task that shares a device, or needs none, prefers nodes with a device to join.

    KAI draws a task without GPU to such nodes also where a node without GPUs has room for it. Here these
    score as much, so that the resource type decides between the two: more GPUs stay usable that way.
    """

    def open(self, session: Session) -> None:
        """Set the weight; the placement looks for devices to join anyway."""
        session.hooks.sharing_weight = SHARING_SCORE
        session.hooks.scores.append(
            PlainNodeScore("gpusharingorder", session.state.nodes, SHARING_SCORE)
        )
