"""Tasks as columns. The tasks of one pod group have neighbouring indices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from scheduler.core.arrays import NO_AMOUNTS, Amounts
from scheduler.core.cluster.classes import TaskClass
from scheduler.core.cluster.device_inputs import ClaimAllocation
from scheduler.core.cluster.inputs import NumaShare, TaskInput

NOWHERE = -1


@dataclass(slots=True)
class Tasks:
    """One entry per task.

    Attributes
    ----------
    status : TaskStatus as a byte
    is_virtual : 1 while the status comes from a statement that is still open
    node : index of the node, NOWHERE if none
    left_node : node that an evicted task left before it was nominated to another one, else NOWHERE
    pod_set, pod_group : index of its pod set and pod group; NOWHERE for pods outside pod groups
    accepted : what its queue is charged for it now
    gpu_groups : GPU group ids of the shared devices it holds
    numa : task -> what it takes of NUMA zones
    claim_allocations : task -> devices given to its claims
    reservations : pods that hold a shared GPU for others
    foreign : pods that another scheduler placed
    bound_now : tasks that this cycle binds; they are not evicted before the next one, because each action is
        carried out before the next one runs, so they would be created again without having run
    """

    inputs: list[TaskInput] = field(default_factory=list)
    task_class: list[TaskClass] = field(default_factory=list)
    status: bytearray = field(default_factory=bytearray)
    is_virtual: bytearray = field(default_factory=bytearray)
    node: list[int] = field(default_factory=list)
    left_node: list[int] = field(default_factory=list)
    pod_set: list[int] = field(default_factory=list)
    pod_group: list[int] = field(default_factory=list)
    accepted: list[Amounts] = field(default_factory=list)
    gpu_groups: list[tuple[str, ...]] = field(default_factory=list)
    numa: dict[int, tuple[NumaShare, ...]] = field(default_factory=dict)
    claim_allocations: dict[int, tuple[ClaimAllocation, ...]] = field(default_factory=dict)
    reservations: frozenset[int] = frozenset()
    foreign: frozenset[int] = frozenset()
    bound_now: set[int] = field(default_factory=set)

    def __len__(self) -> int:
        return len(self.inputs)

    def copy(self) -> Tasks:
        """Return the tasks for one session: copies of the columns that sessions change, the others shared."""
        return replace(
            self,
            status=self.status[:],
            is_virtual=bytearray(len(self.inputs)),
            node=self.node[:],
            left_node=[NOWHERE] * len(self.inputs),
            accepted=self.accepted[:],
            gpu_groups=self.gpu_groups[:],
            numa=self.numa.copy(),
            claim_allocations=self.claim_allocations.copy(),
            bound_now=set(),
        )

    def overwrite(self, task: int, new: TaskInput, task_class: TaskClass) -> None:
        """Put a task in the place of an old one, which must have left its node; nothing is charged for it yet."""
        self.inputs[task] = new
        self.task_class[task] = task_class
        self.status[task] = new.status
        self.gpu_groups[task] = new.gpu_groups
        self.accepted[task] = NO_AMOUNTS

    def fill(
        self,
        inputs: Sequence[TaskInput],
        task_class: Sequence[TaskClass],
        pod_set: Sequence[int],
        pod_group: Sequence[int],
    ) -> None:
        """Add all tasks, those of one pod group in a row; none is on a node yet."""
        count = len(inputs)
        self.inputs.extend(inputs)
        self.task_class.extend(task_class)
        self.pod_set.extend(pod_set)
        self.pod_group.extend(pod_group)
        self.status.extend(task.status for task in inputs)
        self.is_virtual.extend(bytes(count))
        self.node.extend([NOWHERE] * count)
        self.left_node.extend([NOWHERE] * count)
        self.accepted.extend([NO_AMOUNTS] * count)
        self.gpu_groups.extend([task.gpu_groups for task in inputs])
