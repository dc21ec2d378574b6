"""What one probe of a search asks for: the first k tasks of a chunk, measured for filters and bounds."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor

from scheduler.core.arrays import Amounts
from scheduler.core.cluster.podgroups import SubgroupNode
from scheduler.core.cluster.status import ACTIVE_ALLOCATED
from scheduler.core.session.gang import GangView
from scheduler.core.session.session import Session


class ProbeDemand:
    """The tasks a probe wants to place.

    Attributes
    ----------
    view : the pod group as if only its running tasks and these existed, minimums lowered to match
    tasks : in the order they are placed
    gpus : what each task asks for, largest first; 0 for requests by GPU memory
    total_gpus : their sum
    unit : GPUs per task if all tasks want the same number of whole devices, else 0
    required : what the tasks ask of their queue
    """

    __slots__ = ("gpus", "key", "required", "tasks", "total_gpus", "unit", "view", "wants_gpu")

    def __init__(self, session: Session, view: GangView, tasks: Sequence[int]) -> None:
        class_of = session.state.tasks.task_class
        self.tasks = tuple(tasks)
        self.key = len(self.tasks)
        self.view = partial_view(session, view, self.tasks)
        classes = [class_of[task] for task in self.tasks]
        self.gpus = sorted((kind.gpu_amount + kind.mig_units for kind in classes), reverse=True)
        self.total_gpus = sum(self.gpus)
        self.wants_gpu = all(not kind.is_cpu_only for kind in classes)
        first = classes[0]
        is_uniform = all(kind is first for kind in classes) or (
            self.gpus[0] == self.gpus[-1]
            and all(kind.request.gpus and not kind.is_dra for kind in classes)
        )
        is_whole = first.request.gpus > 0 and not (first.is_shared or first.is_mig or first.is_dra)
        self.unit = self.gpus[0] if is_uniform and is_whole else 0.0
        self.required: Amounts = session.requested_by(self.tasks)


def partial_view(session: Session, view: GangView, tasks: Sequence[int]) -> GangView:
    """Return a view in which only the running tasks and some others exist.

    Minimums of pod sets are lowered to what exists. A subgroup that is not complete yet requires all its
    members, so that the tasks form exactly one chunk: members with tasks to place are below their lowered
    minimum, and all others, also those without any task, count as complete.
    """
    state = session.state
    wanted = set(tasks)
    hidden = set()
    present: dict[int, int] = {}
    for pod_set in state.pod_groups.pod_sets_of(view.pod_group):
        count = 0
        for task in state.pod_groups.pod_sets.tasks[pod_set]:
            if task in wanted or ACTIVE_ALLOCATED[state.tasks.status[task]]:
                count += 1
            else:
                hidden.add(task)
        present[pod_set] = count
    minimums = {
        pod_set: min(view.minimum(pod_set), count)
        for pod_set, count in present.items()
        if count < view.minimum(pod_set)
    }
    required: dict[str, int] = {}
    _require_members(view, view.root, required)
    return GangView(
        state,
        view.pod_group,
        hidden=frozenset(hidden),
        minimums=minimums,
        required=required,
        is_ordered=view.is_ordered,
    )


def _require_members(view: GangView, group: SubgroupNode, out: dict[str, int]) -> None:
    """Fill `out` with the numbers of required members of the subgroups that are not complete."""
    if not view.is_satisfied(group):
        out[group.name] = len(group.members)
    for member in group.members:
        if isinstance(member, SubgroupNode):
            _require_members(view, member, out)


def whole_units(gpus: float, unit: float) -> int:
    """Return how many tasks of `unit` GPUs fit into some GPUs, forgiving float noise."""
    return max(0, floor((gpus + 1e-6) / unit))
