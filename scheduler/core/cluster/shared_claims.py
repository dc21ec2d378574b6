"""Claims that several tasks use: queue and node are charged for their devices once, not once per task.

The request of a task contains the GPUs of its claims in full. This module computes how much of that must be
subtracted, because another task is charged already. All users of a claim are in one queue, so it does not matter
which of them is charged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from scheduler.core.arrays import Amounts
from scheduler.core.cluster.device_inputs import DeviceClaim
from scheduler.core.cluster.inputs import TaskInput
from scheduler.core.cluster.status import ACTIVE_ALLOCATED, QUEUE_ALLOCATED

_ClaimKey = tuple[str, str]


class SharedClaims:
    """The claims of GPUs that more than one task uses; tasks are given by index, `status` by task."""

    __slots__ = ("_claims_of", "_gpus", "_users")

    def __init__(self, inputs: Sequence[TaskInput], claims: Iterable[DeviceClaim]) -> None:
        self._gpus = {
            (claim.namespace, claim.name): claim.gpus for claim in claims if claim.gpus > 0
        }
        self._users: dict[_ClaimKey, list[int]] = {}
        self._claims_of: dict[int, list[_ClaimKey]] = {}
        for task, task_input in enumerate(inputs) if self._gpus else ():
            for reference in task_input.constraints.device_claims:
                key = (task_input.namespace, reference.claim)
                if key in self._gpus:
                    self._users.setdefault(key, []).append(task)
        for key, users in self._users.items():
            for task in users if len(users) > 1 else ():
                self._claims_of.setdefault(task, []).append(key)

    def __bool__(self) -> bool:
        return bool(self._claims_of)

    def __contains__(self, task: int) -> bool:
        return task in self._claims_of

    @property
    def tasks(self) -> Iterable[int]:
        """Return the tasks that use a shared claim."""
        return self._claims_of.keys()

    def split(self, task: int, status: Sequence[int]) -> float:
        """Return how many GPUs of a task to subtract if the holders of each claim share its charge equally."""
        surplus = 0.0
        for key in self._claims_of.get(task, ()):
            holders = sum(QUEUE_ALLOCATED[status[user]] for user in self._users[key])
            surplus += self._gpus[key] * (1 - 1 / max(holders, 1))
        return surplus

    def repeated(self, tasks: Iterable[int], status: Sequence[int]) -> float:
        """Return how many GPUs of tasks to subtract, because another holder or another of these is charged."""
        counted: set[_ClaimKey] = set()
        surplus = 0.0
        for task in tasks:
            for key in self._claims_of.get(task, ()):
                is_held = any(
                    user != task and ACTIVE_ALLOCATED[status[user]] for user in self._users[key]
                )
                if is_held or key in counted:
                    surplus += self._gpus[key]
                counted.add(key)
        return surplus


def less_gpus(amounts: Amounts, gpus: float) -> Amounts:
    """Return amounts with that many GPUs less, but not below 0."""
    return (amounts[0], amounts[1], max(amounts[2] - gpus, 0.0)) if gpus else amounts
