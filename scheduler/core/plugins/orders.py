"""The order of pod groups, of subgroups, and of the tasks of one pod set."""

from __future__ import annotations

from scheduler.core.session.gang import GangView
from scheduler.core.session.session import Session

ROLE_LABEL = "training.kubeflow.org/job-role"
RAY_LABEL = "ray.io/node-type"
PRIORITY_LABEL = "kai.scheduler/task-priority"


class PriorityPlugin:
    """Pod groups of higher priority first."""

    def open(self, session: Session) -> None:
        """Register the key."""
        priority = session.state.pod_groups.priority

        def key(view: GangView) -> int:
            return -priority[view.pod_group]

        session.hooks.pod_group_order.append(key)


class ElasticPlugin:
    """Pod groups below their minimum first, those above it last.

    A broken gang runs too few tasks to be of use, and is complete with fewer than one that has not started. In KAI
    both are equal, so an older pod group takes the slot of a lost task and the gang stays broken. With the option
    `broken_gangs_first` broken gangs come before gangs that have not started.
    """

    def open(self, session: Session) -> None:
        """Register the key."""
        if not session.config.broken_gangs_first:
            session.hooks.pod_group_order.append(GangView.elastic_state)
            return

        def key(view: GangView) -> int:
            return -1 if view.is_broken() else view.elastic_state()

        session.hooks.pod_group_order.append(key)


class SubgroupOrderPlugin:
    """Subgroups below their minimum first, then those least above it."""

    def open(self, session: Session) -> None:
        """Switch the order on; gang views implement it."""
        session.hooks.orders_subgroups = True


class KubeflowPlugin:
    """The master or launcher of a training job first."""

    def open(self, session: Session) -> None:
        """Register the key."""
        inputs = session.state.tasks.inputs

        def key(task: int) -> bool:
            return inputs[task].labels.get(ROLE_LABEL) not in ("master", "launcher")

        session.hooks.task_order.append(key)


class RayPlugin:
    """The head of a Ray cluster first."""

    def open(self, session: Session) -> None:
        """Register the key."""
        inputs = session.state.tasks.inputs

        def key(task: int) -> bool:
            return inputs[task].labels.get(RAY_LABEL) != "head"

        session.hooks.task_order.append(key)


class TaskOrderPlugin:
    """Tasks labelled with a priority first, the larger the earlier."""

    def open(self, session: Session) -> None:
        """Register the key."""
        inputs = session.state.tasks.inputs

        def key(task: int) -> tuple[int, int]:
            return task_priority_key(inputs[task].labels.get(PRIORITY_LABEL))

        session.hooks.task_order.append(key)


def task_priority_key(label: str | None) -> tuple[int, int]:
    """Return the sort key of a task-priority label: numbers, then unreadable ones, then none."""
    if label is None:
        return (2, 0)
    try:
        return (0, -int(label))
    except ValueError:
        return (1, 0)
