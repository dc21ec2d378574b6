"""Volume claims: those that cannot be used by any node turn the task away before nodes are asked."""

from __future__ import annotations

from scheduler.core.cluster.classes import TaskClass
from scheduler.core.cluster.inputs import VolumeClaim
from scheduler.core.cluster.state import ClusterState
from scheduler.core.session.fit import CheckFailure


class VolumeCheck:
    """Every claim a task mounts must exist and be usable."""

    name = "VolumeBinding"

    def __init__(self, state: ClusterState) -> None:
        self._claims: dict[tuple[str, str], VolumeClaim] = {
            (claim.namespace, claim.name): claim for claim in state.given.volumes.claims
        }

    def concerns(self, klass: TaskClass) -> bool:
        """Check tasks that mount claims."""
        return bool(klass.constraints.volume_claims)

    def check(self, task: int, klass: TaskClass) -> CheckFailure | None:
        """Return the first claim that is missing or has a problem no node can cure."""
        del task
        for name in klass.constraints.volume_claims:
            claim = self._claims.get((klass.namespace, name))
            text = f'persistentvolumeclaim "{name}" not found' if claim is None else claim.problem
            if text:
                return CheckFailure(self.name, text, is_victim_invariant=True)
        return None
