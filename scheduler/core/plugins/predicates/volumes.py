"""Volume claims: problems that no node can cure, the nodes of bound volumes, and those for new ones."""

from __future__ import annotations

import numpy as np

from scheduler.core.arrays import Bools
from scheduler.core.cluster.classes import TaskClass
from scheduler.core.cluster.inputs import NodeInput, VolumeClaim
from scheduler.core.cluster.matching import matches_any_term
from scheduler.core.cluster.state import ClusterState
from scheduler.core.session.fit import CheckFailure, NodeReason, NodeReasonKind
from scheduler.core.session.hooks import Scope

ELSEWHERE = "node(s) didn't match PersistentVolume's node affinity"
NOT_AVAILABLE = "node(s) didn't find available persistent volumes to bind"
NO_ROOM = "node(s) did not have enough free storage"
NO_VOLUME = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"


class VolumeClaims:
    """Finds the claims a class of tasks mounts."""

    def __init__(self, state: ClusterState) -> None:
        self._by_name = {
            (claim.namespace, claim.name): claim for claim in state.cluster_input.volumes.claims
        }

    def of(self, task_class: TaskClass) -> list[VolumeClaim]:
        """Return the claims of a class that exist."""
        keys = ((task_class.namespace, name) for name in task_class.constraints.volume_claims)
        return [self._by_name[key] for key in keys if key in self._by_name]

    def first_problem(self, task_class: TaskClass) -> str:
        """Return what is wrong with the first claim that is missing or unusable, else nothing."""
        for name in task_class.constraints.volume_claims:
            claim = self._by_name.get((task_class.namespace, name))
            text = f'persistentvolumeclaim "{name}" not found' if claim is None else claim.problem
            if text:
                return text
        return ""


class VolumeCheck:
    """Every claim a task mounts must exist and be usable."""

    name = "VolumeBinding"

    def __init__(self, claims: VolumeClaims) -> None:
        self._claims = claims

    def concerns(self, task_class: TaskClass) -> bool:
        """Return whether tasks mount claims."""
        return bool(task_class.constraints.volume_claims)

    def check(self, task: int, task_class: TaskClass) -> CheckFailure | None:
        """Return the first claim that is missing or has a problem no node can cure."""
        del task
        text = self._claims.first_problem(task_class)
        return CheckFailure(self.name, text, is_victim_invariant=True) if text else None


class VolumeFilter:
    """A bound volume must be reachable from the node; for an unbound one the node must be allowed."""

    name = "VolumeBinding"
    scope = Scope.CLASS

    def __init__(
        self, state: ClusterState, claims: VolumeClaims, *, checks_storage_room: bool
    ) -> None:
        self._nodes = state.nodes.inputs
        self._claims = claims
        #: Whether no `StorageRoom` tracks the room in more detail.
        self._checks_storage_room = checks_storage_room

    def concerns(self, task_class: TaskClass) -> bool:
        """Return whether tasks have a claim whose volume only some nodes, or none, can reach."""
        return any(
            claim.volume_terms is not None
            or claim.allowed_terms is not None
            or claim.roomy_terms is not None
            or claim.is_volume_missing
            for claim in self._claims.of(task_class)
        )

    def mask(self, task: int, task_class: TaskClass) -> Bools:
        """Return which nodes reach all volumes."""
        nodes = range(len(self._nodes))
        return np.array([self.passes(task, task_class, node) for node in nodes], dtype=np.bool_)

    def passes(self, task: int, task_class: TaskClass, node: int) -> bool:
        """Return whether one node reaches all volumes."""
        del task
        return not self._refusal(task_class, self._nodes[node])

    def reasons(self, task: int, task_class: TaskClass, node: int) -> tuple[NodeReason, ...]:
        """Return what is out of reach."""
        del task
        text = self._refusal(task_class, self._nodes[node])
        return (NodeReason(NodeReasonKind.VOLUME, text),) if text else ()

    def _refusal(self, task_class: TaskClass, node: NodeInput) -> str:
        for claim in self._claims.of(task_class):
            if claim.is_volume_missing:
                return NO_VOLUME
            if claim.volume_terms is not None and not matches_any_term(node, claim.volume_terms):
                return ELSEWHERE
            if claim.allowed_terms is not None and not matches_any_term(node, claim.allowed_terms):
                return NOT_AVAILABLE
            roomy = claim.roomy_terms if self._checks_storage_room else None
            if roomy is not None and not matches_any_term(node, roomy):
                return NO_ROOM
        return ""
