"""What one probe of a search asks for: the first k tasks of a chunk, measured for filters and bounds."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor

from scheduler.core.arrays import Amounts
from scheduler.core.cluster.podgroups import SubgroupNode
from scheduler.core.cluster.status import ACTIVE_ALLOCATED
from scheduler.core.session.gang import GangView
from scheduler.core.session.session import Session

#: Float noise that sums of GPUs may carry.
NOISE = 1e-6


class ProbeDemand:
    """The tasks a probe wants to place.

    Attributes
    ----------
    view : the pod group as if only its running tasks and these existed, minimums lowered to match
    tasks : in the order they are placed
    key : identifies the demand within its search: the number of tasks
    gpus : GPUs that each task requests, largest first; 0 for requests by GPU memory
    total_gpus : their sum
    gpus_per_task : GPUs of each task if all request the same number of whole devices, else 0
    is_one_class : whether all tasks are of the same class
    required : the amounts that the tasks request from their queue
    wants_gpu : whether every task requests GPUs
    """

    __slots__ = (
        "gpus",
        "gpus_per_task",
        "is_one_class",
        "key",
        "required",
        "tasks",
        "total_gpus",
        "view",
        "wants_gpu",
    )

    def __init__(self, session: Session, view: GangView, tasks: Sequence[int]) -> None:
        class_of = session.state.tasks.task_class
        self.tasks = tuple(tasks)
        self.key = len(self.tasks)
        self.view = partial_view(session, view, self.tasks)
        classes = [class_of[task] for task in self.tasks]
        first = classes[0]
        self.is_one_class = classes.count(first) == len(classes)
        if self.is_one_class:
            self.gpus = [first.gpu_amount + first.mig_units] * len(classes)
            self.wants_gpu = not first.is_cpu_only
        else:
            self.gpus = sorted(
                (task_class.gpu_amount + task_class.mig_units for task_class in classes),
                reverse=True,
            )
            self.wants_gpu = all(not task_class.is_cpu_only for task_class in classes)
        self.total_gpus = sum(self.gpus)
        is_uniform = self.is_one_class or (
            self.gpus[0] == self.gpus[-1]
            and all(task_class.request.gpus and not task_class.is_dra for task_class in classes)
        )
        is_whole = first.request.gpus > 0 and not (first.is_shared or first.is_mig or first.is_dra)
        self.gpus_per_task = self.gpus[0] if is_uniform and is_whole else 0.0
        self.required: Amounts = session.requested_by(self.tasks)


def partial_view(session: Session, view: GangView, tasks: Sequence[int]) -> GangView:
    """Return a view in which only the running tasks and some others exist.

    Minimums of pod sets are lowered to what exists. A subgroup that is not complete yet requires all its
    members, so that the tasks form exactly one chunk: members with tasks to place are below their lowered
    minimum, and all others, also those without any task, count as complete.
    """
    state = session.state
    if _is_whole(view, tasks):
        return view
    task_set = set(tasks)
    hidden = set()
    present: dict[int, int] = {}
    for pod_set in state.pod_groups.pod_sets_of(view.pod_group):
        count = 0
        for task in state.pod_groups.pod_sets.tasks[pod_set]:
            if task in task_set or ACTIVE_ALLOCATED[state.tasks.status[task]]:
                count += 1
            else:
                hidden.add(task)
        present[pod_set] = count
    minimums = {
        pod_set: min(view.minimum(pod_set), count)
        for pod_set, count in present.items()
        if count < view.minimum(pod_set)
    }
    required_members: dict[str, int] = {}
    _require_members(view, view.root, required_members)
    return GangView(
        state,
        view.pod_group,
        hidden=frozenset(hidden),
        minimums=minimums,
        required=required_members,
        is_ordered=view.is_ordered,
    )


def _is_whole(view: GangView, tasks: Sequence[int]) -> bool:
    """Return whether a pod group with one pod set has just these tasks, and so needs no other view."""
    pod_groups, pod_set = view.state.pod_groups, view.only_pod_set
    return (
        pod_set >= 0
        and not view.hidden
        and len(tasks) == pod_groups.task_count[view.pod_group]
        and view.minimum(pod_set) <= len(tasks)
    )


def _require_members(view: GangView, group: SubgroupNode, required_members: dict[str, int]) -> None:
    """Fill in subgroup -> number of required members, for the subgroups that are not complete."""
    if not view.is_satisfied(group):
        required_members[group.name] = len(group.members)
    for member in group.members:
        if isinstance(member, SubgroupNode):
            _require_members(view, member, required_members)


def tasks_fitting(gpus: float, gpus_per_task: float) -> int:
    """Return how many equal tasks fit into some GPUs, forgiving float noise."""
    return max(0, floor((gpus + NOISE) / gpus_per_task))
