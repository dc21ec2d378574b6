"""Static volumes: each serves one claim, so pods of one cycle must not count on the same one.

Claims whose storage class has no provisioner wait until a pod is placed and are then bound to a volume
that exists and that the node reaches. Which one is planned here, as the binder will choose it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scheduler.core.arrays import Bools
from scheduler.core.cluster.classes import TaskClass
from scheduler.core.cluster.inputs import VolumeClaim
from scheduler.core.cluster.matching import matches_any_term
from scheduler.core.cluster.state import ClusterState
from scheduler.core.cluster.status import ACTIVE_USED
from scheduler.core.cluster.tasks import NOWHERE
from scheduler.core.plugins.predicates.volumes import NOT_AVAILABLE, VolumeClaims
from scheduler.core.session.fit import NodeReason, NodeReasonKind
from scheduler.core.session.hooks import Scope

#: Namespace and name of a claim.
ClaimKey = tuple[str, str]


class StaticVolumes:
    """Filter and ledger of static volumes; a volume is known by its index in the inputs."""

    name = "VolumeBinding"
    scope = Scope.CLUSTER

    def __init__(self, state: ClusterState, claims: VolumeClaims) -> None:
        self._state = state
        self._claims = claims
        volumes = state.cluster_input.volumes.static_volumes
        self._index_of = {volume.name: index for index, volume in enumerate(volumes)}
        #: Volume -> which nodes reach it.
        self._reached: list[Bools] = [
            np.array(
                [
                    volume.node_terms is None or matches_any_term(node, volume.node_terms)
                    for node in state.nodes.inputs
                ],
                dtype=np.bool_,
            )
            for volume in volumes
        ]
        #: Claim -> (the volume it will get, how many placed tasks use the claim).
        self._planned: dict[ClaimKey, tuple[int, int]] = {}
        for task, node in enumerate(state.tasks.node):
            if node != NOWHERE and ACTIVE_USED[state.tasks.status[task]]:
                plan = self._plan(state.tasks.task_class[task], node) or {}
                for key, volume in plan.items():
                    self._planned[key] = (volume, self._user_count(key) + 1)

    def concerns(self, task_class: TaskClass) -> bool:
        """Return whether tasks have a claim that only a static volume can serve."""
        return bool(self._static_claims(task_class))

    def mask(self, task: int, task_class: TaskClass) -> Bools:
        """Return which nodes reach a volume for each claim."""
        nodes = range(len(self._state.nodes.inputs))
        return np.array([self.passes(task, task_class, node) for node in nodes], dtype=np.bool_)

    def passes(self, task: int, task_class: TaskClass, node: int) -> bool:
        """Return whether one node reaches a volume for each claim."""
        del task
        return self._plan(task_class, node) is not None

    def reasons(self, task: int, task_class: TaskClass, node: int) -> tuple[NodeReason, ...]:
        """Return that volumes are lacking."""
        if self.passes(task, task_class, node):
            return ()
        return (NodeReason(NodeReasonKind.VOLUME, NOT_AVAILABLE),)

    def placed(self, task: int, node: int) -> None:
        """Plan a volume for each claim of a placed task."""
        plan = self._plan(self._state.tasks.task_class[task], node) or {}
        for key, volume in plan.items():
            self._state.journal.insert(self._planned, key, (volume, self._user_count(key) + 1))

    def left(self, task: int, node: int) -> None:
        """Give back the volumes of an evicted task whose claims nobody else uses."""
        del node
        for claim in self._static_claims(self._state.tasks.task_class[task]):
            key = (claim.namespace, claim.name)
            if key not in self._planned:
                continue
            volume, users = self._planned[key]
            if users > 1:
                self._state.journal.insert(self._planned, key, (volume, users - 1))
            else:
                self._state.journal.remove(self._planned, key)

    def _user_count(self, key: ClaimKey) -> int:
        return self._planned[key][1] if key in self._planned else 0

    def _static_claims(self, task_class: TaskClass) -> list[VolumeClaim]:
        return [claim for claim in self._claims.of(task_class) if claim.static_volumes is not None]

    def _plan(self, task_class: TaskClass, node: int) -> dict[ClaimKey, int] | None:
        """Return a volume for each static claim of a task on a node; None if the node does not reach enough of them."""
        plan: dict[ClaimKey, int] = {}
        open_claims: list[ClaimKey] = []
        options: list[list[int]] = []
        taken = {volume for volume, _ in self._planned.values()}
        for claim in self._static_claims(task_class):
            key = (claim.namespace, claim.name)
            if key in self._planned:
                volume = self._planned[key][0]
                if not self._reached[volume][node]:
                    return None
                plan[key] = volume
                continue
            candidates = [self._index_of[name] for name in claim.static_volumes or ()]
            open_claims.append(key)
            options.append([v for v in candidates if v not in taken and self._reached[v][node]])
        volumes = matching(options)
        if volumes is None:
            return None
        return plan | dict(zip(open_claims, volumes, strict=True))


def matching(options: Sequence[Sequence[int]]) -> list[int] | None:
    """Choose a different option for each row, preferring those that its row lists first; None if that is impossible."""
    row_of: dict[int, int] = {}

    def assign(row: int, seen: set[int]) -> bool:
        for option in options[row]:
            if option in seen:
                continue
            seen.add(option)
            if option not in row_of or assign(row_of[option], seen):
                row_of[option] = row
                return True
        return False

    if not all(assign(row, set()) for row in range(len(options))):
        return None
    option_of = {row: option for option, row in row_of.items()}
    return [option_of[row] for row in range(len(options))]
