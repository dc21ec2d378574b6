"""The session of one cycle: the state, the hooks of the plugins, and what has been decided so far.

The session only connects these. The order of pod groups is in `order.py`, changes of the state are in
`statement.py`, gang rules in `gang.py`, and placement in the package above.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha1
from operator import attrgetter
from typing import TypeVar
from uuid import UUID

from scheduler.core.arrays import NO_AMOUNTS, Amounts
from scheduler.core.cluster.classes import TaskClass
from scheduler.core.cluster.shared_claims import less_gpus
from scheduler.core.cluster.state import ClusterState
from scheduler.core.cluster.tasks import NOWHERE
from scheduler.core.decisions import ActionReport, Decision
from scheduler.core.options import CycleOptions
from scheduler.core.session.disruptions import DisruptionLedger
from scheduler.core.session.fit import FitLog, GroupFit, GroupReason
from scheduler.core.session.gang import GangView
from scheduler.core.session.hooks import Hooks, TaskListener
from scheduler.core.session.nodeset import NodeSet
from scheduler.core.session.policy import QueuePolicy, empty_ledger

#: A monotonic clock in seconds, for budgets and reports. Whoever runs the cycle provides it.
Clock = Callable[[], float]

Companion = TypeVar("Companion")

#: For tests and replays, where GPU group ids need not be unique.
NO_SEED = UUID(int=0)


def no_clock() -> float:
    """Return always 0, so that budgets never run out."""
    return 0.0


def run_to_the_end() -> bool:
    """Return always False: no search is stopped."""
    return False


_REQUESTED: Callable[[TaskClass], Amounts] = attrgetter("requested")
_GATE_AMOUNTS: Callable[[TaskClass], Amounts] = attrgetter("gate_amounts")


class Session:
    """Everything a cycle works with.

    Attributes
    ----------
    state, config : the cluster, and the options of the cycle
    clock : monotonic seconds
    gpu_group_seed : makes the ids of newly shared GPUs differ from those of other cycles
    hooks : what plugins registered
    policy : answers the questions about queues
    disruptions : how many evictions the disruption limits still allow
    fit : why pod groups and tasks did not fit
    decisions : the decisions of all statements kept so far
    reports : one per action that has run
    unplaced_groups : pod groups that allocate could not place, in the order of their turns
    should_stop : asked between the trials of a search; True ends the search
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
        "disruptions",
        "fit",
        "gpu_group_seed",
        "hooks",
        "plugin_seconds",
        "policy",
        "reports",
        "should_stop",
        "state",
        "unplaced_groups",
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
        self.disruptions = DisruptionLedger(state)
        self.fit = FitLog()
        self.decisions: list[Decision] = []
        self.reports: list[ActionReport] = []
        self.unplaced_groups: list[int] = []
        self.plugin_seconds: dict[str, float] = {}
        self.all_nodes = NodeSet.all(len(state.nodes))
        #: Type of a companion -> the companion.
        self._attachments: dict[type[object], object] = {}
        #: By pod group.
        self._views: dict[int, GangView] = {}
        #: Class index -> listeners that concern tasks of the class.
        self._listeners: dict[int, list[TaskListener]] = {}
        self._gpu_group_ids = 0

    def start(self) -> None:
        """Finish opening, once all plugins are open: sort tasks, and refuse pod groups without a queue."""
        self._sort_tasks()
        pod_groups = self.state.pod_groups
        if NOWHERE not in pod_groups.queue:
            return
        for pod_group, queue in enumerate(pod_groups.queue):
            if queue == NOWHERE:
                name = pod_groups.inputs[pod_group].queue
                self.fit.add_pod_group(pod_group, GroupFit(GroupReason.QUEUE_DOES_NOT_EXIST, name))

    def attach(self, companion: Companion) -> Companion:
        """Keep an object of another module for as long as the session lives, one of each class.

        Placement, solver and plugins compute tables that several actions use. They own these tables;
        the session only keeps them, to be found by their class (`attached`).
        """
        self._attachments[type(companion)] = companion
        return companion

    def attached(self, kind: type[Companion]) -> Companion | None:
        """Return the attached object of a class, None if there is none yet."""
        companion = self._attachments.get(kind)
        return companion if isinstance(companion, kind) else None

    def view(self, pod_group: int) -> GangView:
        """Return the view of a whole pod group, always the same object."""
        view = self._views.get(pod_group)
        if view is None:
            view = GangView(self.state, pod_group, is_ordered=self.hooks.orders_subgroups)
            self._views[pod_group] = view
        return view

    def pod_group_key(self, view: GangView) -> tuple[object, ...]:
        """Return a pod group's place in its leaf queue; the smaller is served first."""
        keys = self.hooks.pod_group_order
        if len(keys) == 2:
            return (keys[0](view), keys[1](view), view.pod_group)
        return (*[key(view) for key in keys], view.pod_group)

    def is_next_preemptible(self, pod_group: int) -> bool:
        """Return whether what a pod group takes next may later be evicted for others.

        A semi-preemptible pod group completes its minimum first, which may not.
        """
        pod_groups = self.state.pod_groups
        if pod_group in pod_groups.semi_preemptible:
            return self.view(pod_group).is_gang_satisfied()
        return pod_groups.preemptible[pod_group]

    def requested_by(self, tasks: Sequence[int]) -> Amounts:
        """Return what tasks request of their queue, for the order of queues and for reclaim."""
        if len(tasks) == 1 and not self.state.shared_claims:
            return self.state.tasks.task_class[tasks[0]].requested
        return self._without_repeated(tasks, self._sum(tasks, _REQUESTED))

    def gate_amount(self, tasks: Sequence[int]) -> Amounts:
        """Return what the capacity gates measure for tasks before their placement."""
        return self._without_repeated(tasks, self._sum(tasks, _GATE_AMOUNTS))

    def held_by(self, tasks: Sequence[int]) -> Amounts:
        """Return what the queue is charged for tasks that are on nodes."""
        accepted = self.state.tasks.accepted
        cpu = memory = gpu = 0.0
        for task in tasks:
            amounts = accepted[task]
            cpu += amounts[0]
            memory += amounts[1]
            gpu += amounts[2]
        return (cpu, memory, gpu)

    def listeners_of(self, task: int) -> list[TaskListener]:
        """Return the listeners that follow tasks of this class."""
        task_class = self.state.tasks.task_class[task]
        listeners = self._listeners.get(task_class.index)
        if listeners is None:
            listeners = [
                listener for listener in self.hooks.listeners if listener.concerns(task_class)
            ]
            self._listeners[task_class.index] = listeners
        return listeners

    def new_gpu_group_id(self) -> str:
        """Return the GPU group id of a device that becomes shared now.

        Ids must differ from those of other cycles, whose binds may not be done yet. So whoever runs
        the cycle gives it a seed of its own; equal seeds give equal ids.
        """
        self._gpu_group_ids += 1
        # The form of a UUID of version 5, without the cost of a UUID object: a cycle makes thousands.
        digest = sha1(b"%b%d" % (self.gpu_group_seed.bytes, self._gpu_group_ids)).hexdigest()
        return f"{digest[:8]}-{digest[8:12]}-5{digest[13:16]}-8{digest[17:20]}-{digest[20:32]}"

    def _without_repeated(self, tasks: Sequence[int], amounts: Amounts) -> Amounts:
        """Return amounts without the GPUs of claims that count for other tasks already."""
        shared = self.state.shared_claims
        if not shared:
            return amounts
        return less_gpus(amounts, shared.repeated(tasks, self.state.tasks.status))

    def _sum(self, tasks: Sequence[int], measure: Callable[[TaskClass], Amounts]) -> Amounts:
        class_of = self.state.tasks.task_class
        if len(tasks) == 1:
            return measure(class_of[tasks[0]])
        if not tasks:
            return NO_AMOUNTS
        counts: dict[TaskClass, int] = {}
        for task in tasks:
            task_class = class_of[task]
            counts[task_class] = counts.get(task_class, 0) + 1
        cpu = memory = gpu = 0.0
        for task_class, count in counts.items():
            amounts = measure(task_class)
            cpu += amounts[0] * count
            memory += amounts[1] * count
            gpu += amounts[2] * count
        return (cpu, memory, gpu)

    def _sort_tasks(self) -> None:
        """Sort the tasks of every pod set that has several, unless an earlier session has done so."""
        inputs, keys = self.state.tasks.inputs, self.hooks.task_order

        def sort_key(task: int) -> tuple[object, ...]:
            pod = inputs[task]
            return (*[key(task) for key in keys], pod.created, pod.uid or pod.name)

        lists = self.state.pod_groups.pod_sets.tasks
        for pod_set in self.state.unsorted:
            lists[pod_set].sort(key=sort_key)
        self.state.unsorted.clear()
