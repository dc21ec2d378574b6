"""Tasks as columns. The tasks of one pod group have neighbouring indices."""

from __future__ import annotations

from dataclasses import dataclass, field

from scheduler.core.cluster.classes import TaskClass, Triple
from scheduler.core.cluster.inputs import ClaimAllocation, NumaShare, TaskInput

NOWHERE = -1


@dataclass(slots=True)
class Tasks:
    """One entry per task.

    Attributes
    ----------
    status : TaskStatus as a byte
    is_virtual : 1 while the status comes from a statement that is not kept yet
    node : index of the node, NOWHERE if none
    left_node : node a task was evicted from before it was nominated elsewhere, else NOWHERE
    pod_set, group : index of its pod set and pod group; NOWHERE for pods outside pod groups
    accepted : what its queue is charged for it now
    gpu_groups : ids of the shared devices it holds
    """

    inputs: list[TaskInput] = field(default_factory=list)
    klass: list[TaskClass] = field(default_factory=list)
    status: bytearray = field(default_factory=bytearray)
    is_virtual: bytearray = field(default_factory=bytearray)
    node: list[int] = field(default_factory=list)
    left_node: list[int] = field(default_factory=list)
    pod_set: list[int] = field(default_factory=list)
    group: list[int] = field(default_factory=list)
    accepted: list[Triple] = field(default_factory=list)
    gpu_groups: list[tuple[str, ...]] = field(default_factory=list)
    numa: dict[int, tuple[NumaShare, ...]] = field(default_factory=dict)
    claim_allocations: dict[int, tuple[ClaimAllocation, ...]] = field(default_factory=dict)
    #: Pods that hold a shared device for others, and pods another scheduler placed.
    reservations: frozenset[int] = frozenset()
    foreign: frozenset[int] = frozenset()

    def __len__(self) -> int:
        return len(self.inputs)

    def add(self, task: TaskInput, klass: TaskClass, pod_set: int, group: int) -> int:
        """Append a task that is nowhere yet; return its index."""
        self.inputs.append(task)
        self.klass.append(klass)
        self.status.append(task.status)
        self.is_virtual.append(0)
        self.node.append(NOWHERE)
        self.left_node.append(NOWHERE)
        self.pod_set.append(pod_set)
        self.group.append(group)
        self.accepted.append(NO_AMOUNTS)
        self.gpu_groups.append(task.gpu_groups)
        return len(self.inputs) - 1


NO_AMOUNTS: Triple = (0.0, 0.0, 0.0)
