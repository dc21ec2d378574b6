"""One cycle's mutable world: the state, what plugins added to it, and what has been decided so far.

The session only wires. Order lives in `order.py`, changes in `statement.py`, gang rules in `gang.py`,
placement one floor up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar
from uuid import UUID, uuid5

from scheduler.core.arrays import NO_AMOUNTS, Amounts
from scheduler.core.cluster.classes import TaskClass
from scheduler.core.cluster.state import ClusterState
from scheduler.core.cluster.tasks import NOWHERE
from scheduler.core.decisions import ActionReport, Decision
from scheduler.core.options import CycleOptions
from scheduler.core.session.fit import FitLog, GroupFit, GroupReason
from scheduler.core.session.gang import GangView
from scheduler.core.session.hooks import Hooks, TaskListener
from scheduler.core.session.nodeset import NodeSet
from scheduler.core.session.policy import QueuePolicy, empty_ledger

#: A monotonic clock in seconds, handed in so that budgets can be tested; the core never reads one.
Clock = Callable[[], float]


Companion = TypeVar("Companion")

#: For tests and replays, where names of shared devices need not be new.
NO_SEED = UUID(int=0)


def no_clock() -> float:
    """Stand still: budgets never run out."""
    return 0.0


def run_to_the_end() -> bool:
    """Never ask a search to stop."""
    return False


class Session:
    """Everything a cycle works with.

    Attributes
    ----------
    state, config : what is and what is asked
    hooks : what plugins added
    policy : the one object that answers for queues
    fit : why things did not fit
    decisions : all decisions of statements kept so far
    turned_away : pod groups that found no room when their turn came, in the order of turns
    should_stop : asked between the trials of a search; True ends it
    plugin_seconds : plugin -> how long it took to open, by the clock
    all_nodes : the set of all nodes
    """

    __slots__ = (
        "_attachments",
        "_gpu_group_ids",
        "_listeners",
        "_views",
        "all_nodes",
        "clock",
        "config",
        "decisions",
        "fit",
        "gpu_group_seed",
        "hooks",
        "plugin_seconds",
        "policy",
        "reports",
        "should_stop",
        "state",
        "turned_away",
    )

    def __init__(
        self,
        state: ClusterState,
        config: CycleOptions,
        clock: Clock = no_clock,
        should_stop: Callable[[], bool] = run_to_the_end,
        gpu_group_seed: UUID = NO_SEED,
    ) -> None:
        self.state = state
        self.config = config
        self.clock = clock
        self.should_stop = should_stop
        self.gpu_group_seed = gpu_group_seed
        self.hooks = Hooks()
        self.policy = QueuePolicy(empty_ledger(state.queues))
        self.fit = FitLog()
        self.decisions: list[Decision] = []
        self.reports: list[ActionReport] = []
        self.turned_away: list[int] = []
        self.plugin_seconds: dict[str, float] = {}
        self.all_nodes = NodeSet.all(len(state.nodes))
        self._attachments: dict[type[object], object] = {}
        self._views: dict[int, GangView] = {}
        self._listeners: dict[int, list[TaskListener]] = {}
        self._gpu_group_ids = 0

    def start(self) -> None:
        """Settle what depends on all plugins: the order of tasks, refusals known from the outset."""
        self._sort_tasks()
        groups = self.state.pod_groups
        for group, queue in enumerate(groups.queue):
            if queue == NOWHERE:
                name = groups.inputs[group].queue
                self.fit.add_pod_group(group, GroupFit(GroupReason.QUEUE_DOES_NOT_EXIST, name))

    def attach(self, companion: Companion) -> Companion:
        """Keep an object of another package for as long as the session lives; one of each class.

        Placement, solver and plugins derive tables from the state that outlive one action. They own
        them; the session only makes them findable by their class (`attached`).
        """
        self._attachments[type(companion)] = companion
        return companion

    def attached(self, kind: type[Companion]) -> Companion | None:
        """Return the attached object of a class, None if there is none yet."""
        companion = self._attachments.get(kind)
        return companion if isinstance(companion, kind) else None

    def view(self, group: int) -> GangView:
        """Return the plain view of a pod group, always the same object."""
        found = self._views.get(group)
        if found is None:
            found = GangView(self.state, group, is_ordered=self.hooks.orders_subgroups)
            self._views[group] = found
        return found

    def pod_group_key(self, view: GangView) -> tuple[object, ...]:
        """Return a pod group's place in its leaf queue; the smaller is served first."""
        keys = self.hooks.pod_group_order
        if len(keys) == 2:
            return (keys[0](view), keys[1](view), view.pod_group)
        return (*[key(view) for key in keys], view.pod_group)

    def requested_by(self, tasks: Sequence[int]) -> Amounts:
        """Return what tasks ask of their queue, for the order of queues and for reclaim."""
        return self._sum(tasks, "requested")

    def gate_amount(self, tasks: Sequence[int]) -> Amounts:
        """Return what tasks are measured as at the capacity gates before placement."""
        return self._sum(tasks, "gate")

    def held_by(self, tasks: Sequence[int]) -> Amounts:
        """Return what the queue is charged for tasks where they are."""
        accepted = self.state.tasks.accepted
        cpu = memory = gpu = 0.0
        for task in tasks:
            amounts = accepted[task]
            cpu += amounts[0]
            memory += amounts[1]
            gpu += amounts[2]
        return (cpu, memory, gpu)

    def listeners_of(self, task: int) -> list[TaskListener]:
        """Return the ledgers that follow tasks of this class."""
        task_class = self.state.tasks.task_class[task]
        found = self._listeners.get(task_class.index)
        if found is None:
            found = [one for one in self.hooks.listeners if one.concerns(task_class)]
            self._listeners[task_class.index] = found
        return found

    def new_gpu_group_id(self) -> str:
        """Name a device that becomes shared now.

        Names must differ from those of other cycles, whose binds may still be on their way, so
        whoever runs the cycle gives it a seed of its own; equal seeds give equal names.
        """
        self._gpu_group_ids += 1
        return str(uuid5(self.gpu_group_seed, str(self._gpu_group_ids)))

    def _sum(self, tasks: Sequence[int], measure: str) -> Amounts:
        task_class = self.state.tasks.task_class
        if len(tasks) == 1:
            only: Amounts = getattr(task_class[tasks[0]], measure)
            return only
        if not tasks:
            return (NO_AMOUNTS[0], NO_AMOUNTS[1], NO_AMOUNTS[2])
        counts: dict[TaskClass, int] = {}
        for task in tasks:
            one = task_class[task]
            counts[one] = counts.get(one, 0) + 1
        cpu = memory = gpu = 0.0
        for one, count in counts.items():
            amounts: Amounts = getattr(one, measure)
            cpu += amounts[0] * count
            memory += amounts[1] * count
            gpu += amounts[2] * count
        return (cpu, memory, gpu)

    def _sort_tasks(self) -> None:
        """Put the tasks of every pod set into task order; single tasks need none."""
        inputs, keys = self.state.tasks.inputs, self.hooks.task_order

        def key(task: int) -> tuple[object, ...]:
            given = inputs[task]
            return (*[one(task) for one in keys], given.created, given.uid or given.name)

        for members in self.state.pod_groups.pod_sets.tasks:
            if len(members) > 1:
                members.sort(key=key)
