"""A small cluster that changes from cycle to cycle: bound pods run, evicted pods are pending again.

No kubelet and no API server: the decisions of a cycle are applied to the next snapshot directly.
Victims leave within one cycle and are created again as pending pods of the same pod group, which is
what the controllers of real workloads do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import is_
from uuid import UUID, uuid5

from scheduler.core.arrays import Amounts
from scheduler.core.cluster.inputs import (
    ClusterInput,
    NodeInput,
    PodGroupInput,
    QueueAmounts,
    QueueInput,
    TaskInput,
)
from scheduler.core.cluster.status import TaskStatus
from scheduler.core.config import SchedulerConfig
from scheduler.core.cycle import run_cycle
from scheduler.core.decisions import promised_nodes_of
from scheduler.core.session.session import Session, run_to_the_end

CYCLE_S = 1.0
SEED = UUID("6f9d1c0e-6a0d-4a6b-9a3e-0c6d2b9f4c11")


@dataclass(slots=True)
class Place:
    """Where a task is."""

    status: TaskStatus = TaskStatus.PENDING
    node: str = ""
    gpu_groups: tuple[str, ...] = ()
    nominated_node: str = ""


@dataclass(frozen=True, slots=True)
class LeavingPod:
    """An evicted pod that still holds its place, until a time of the cluster's clock."""

    task: TaskInput
    until_s: float


def _at_once(task: str) -> int:
    return 0


@dataclass(slots=True)
class LivingCluster:
    """Nodes, queues and pod groups, and where every task is after the cycles so far.

    The `created` of a pod group is a time of this cluster's clock, which advances by one second a cycle.
    Pods that are ending when they come are gone after one cycle.

    Attributes
    ----------
    base : everything that does not change from cycle to cycle (other pods, devices, volumes, topologies)
    grace_cycles : for how many further cycles an evicted task, by uid, keeps its place
    """

    nodes: tuple[NodeInput, ...]
    queues: tuple[QueueInput, ...]
    config: SchedulerConfig = field(default_factory=SchedulerConfig)
    now_s: float = 0.0
    groups: dict[str, PodGroupInput] = field(default_factory=dict)
    #: By uid of the pod.
    places: dict[str, Place] = field(default_factory=dict)
    #: Pod group -> when it started last.
    last_start_s: dict[str, float] = field(default_factory=dict)
    #: By queue.
    usage: Mapping[str, Amounts] = field(default_factory=dict)
    base: ClusterInput = field(default_factory=ClusterInput)
    grace_cycles: Callable[[str], int] = _at_once
    #: Pod group -> since when its gang is broken.
    stale_since_s: dict[str, float] = field(default_factory=dict)
    #: Pod group -> its pods that are being deleted.
    leaving: dict[str, list[LeavingPod]] = field(default_factory=dict)

    def submit(self, group: PodGroupInput) -> None:
        """Add a pod group, with its tasks where they are."""
        key = key_of(group)
        self.groups[key] = group
        if group.last_start is not None:
            self.last_start_s[key] = self.now_s + group.last_start
        for task in group.tasks:
            self.places[task.uid] = Place(
                task.status, task.node, task.gpu_groups, task.nominated_node
            )

    def finish(self, name: str) -> None:
        """Remove a pod group with all its tasks."""
        for task in self.groups.pop(name).tasks:
            self.places.pop(task.uid, None)
        self.last_start_s.pop(name, None)
        self.stale_since_s.pop(name, None)
        self.leaving.pop(name, None)

    def succeed(self, task: str) -> None:
        """Let one task, by uid, end well; it is not created again."""
        self.places[task] = Place(TaskStatus.SUCCEEDED)

    def lose(self, task: str) -> None:
        """Let one task, by uid, be lost with its node or fail; it is created again."""
        self.places[task] = Place()

    def is_running(self, name: str) -> bool:
        """Return whether all tasks of a pod group run."""
        return all(
            self.places[task.uid].status is TaskStatus.RUNNING for task in self.groups[name].tasks
        )

    def step(self, should_stop: Callable[[], bool] = run_to_the_end) -> Session:
        """Run one cycle and apply its decisions; see `run_cycle` for `should_stop`."""
        seed = uuid5(SEED, str(self.now_s))
        session = run_cycle(
            self.snapshot(), self.config, gpu_group_seed=seed, should_stop=should_stop
        )
        self._follow(session)
        self.now_s += CYCLE_S
        return session

    def snapshot(self) -> ClusterInput:
        """Return what the scheduler sees now."""
        return replace(
            self.base,
            nodes=self.nodes,
            queues=tuple(self._with_usage(queue) for queue in self.queues),
            pod_groups=tuple(self._seen(group) for group in self.groups.values()),
        )

    def gpus_of_queues(self, session: Session) -> dict[str, float]:
        """Return how many GPUs the pods that run hold after a cycle, by leaf queue."""
        gpus_by_queue = {queue.name: 0.0 for queue in self.queues}
        tasks, groups = session.state.tasks, session.state.pod_groups
        for index, task in enumerate(tasks.inputs):
            place = self.places.get(task.uid)
            if place is not None and place.status is TaskStatus.RUNNING:
                gpus_by_queue[groups.inputs[tasks.pod_group[index]].queue] += tasks.accepted[index][
                    2
                ]
        return gpus_by_queue

    def _seen(self, group: PodGroupInput) -> PodGroupInput:
        """Return a pod group as it is now; the same object if nothing about it has changed."""
        key = key_of(group)
        tasks = [self._seen_task(task) for task in group.tasks if task.uid in self.places]
        tasks += [pod.task for pod in self.leaving.get(key, ())]
        last_start = self._moment(self.last_start_s.get(key))
        stale_since = self._moment(self.stale_since_s.get(key))
        ends_by = self._end_of_run(group)
        is_same = (
            self.now_s == 0.0
            and last_start == group.last_start
            and stale_since == group.stale_since
            and ends_by == group.ends_by
            and len(tasks) == len(group.tasks)
            and all(map(is_, tasks, group.tasks))
        )
        if is_same:
            return group
        return replace(
            group,
            created=group.created - self.now_s,
            last_start=last_start,
            stale_since=stale_since,
            ends_by=ends_by,
            tasks=tuple(tasks),
        )

    def _end_of_run(self, group: PodGroupInput) -> float | None:
        """Return the moment by which a pod group that has declared its run time must have ended."""
        started_s = self.last_start_s.get(key_of(group))
        if started_s is None or group.max_run_time_s is None:
            return None
        return started_s + group.max_run_time_s - self.now_s

    def _moment(self, time_s: float | None) -> float | None:
        return None if time_s is None else time_s - self.now_s

    def _seen_task(self, task: TaskInput) -> TaskInput:
        place = self.places[task.uid]
        is_same = (
            place.status is task.status
            and place.node == task.node
            and place.gpu_groups == task.gpu_groups
            and place.nominated_node == task.nominated_node
        )
        if is_same:
            return task
        return replace(
            task,
            status=place.status,
            node=place.node,
            gpu_groups=place.gpu_groups,
            nominated_node=place.nominated_node,
        )

    def _with_usage(self, queue: QueueInput) -> QueueInput:
        usage = self.usage.get(queue.name)
        if usage is None:
            return queue
        cpu, memory, gpu = (
            _used(amounts, share)
            for amounts, share in zip((queue.cpu, queue.memory, queue.gpu), usage, strict=True)
        )
        return replace(queue, cpu=cpu, memory=memory, gpu=gpu)

    def _follow(self, session: Session) -> None:
        state = session.state
        self._end_leaving()
        before = {uid for uid, place in self.places.items() if place.nominated_node}
        promised = promised_nodes_of(session.decisions, before)
        for index, task in enumerate(state.tasks.inputs):
            place = self.places.get(task.uid)
            if place is None:
                continue  # it was leaving before this cycle
            status = TaskStatus(state.tasks.status[index])
            if status is TaskStatus.BINDING:
                self.places[task.uid] = Place(
                    TaskStatus.RUNNING,
                    state.nodes.names[state.tasks.node[index]],
                    state.tasks.gpu_groups[index],
                )
            elif place.status is TaskStatus.RELEASING:
                del self.places[task.uid]
            elif status in (TaskStatus.NOMINATED, TaskStatus.RELEASING):
                self._leave(key_of(state.pod_groups.inputs[state.tasks.pod_group[index]]), task)
            elif place.status is TaskStatus.PENDING:
                place.nominated_node = ""
        for uid, node in promised.items():
            self.places[uid].nominated_node = node
        for index, group in enumerate(state.pod_groups.inputs):
            if state.pod_groups.last_start[index] == state.now:
                self.last_start_s[key_of(group)] = self.now_s
            self._note_stale(key_of(group), state.pod_groups.stale_since[index])

    def _note_stale(self, key: str, stale_since: float | None) -> None:
        if stale_since is None:
            self.stale_since_s.pop(key, None)
        else:
            self.stale_since_s[key] = self.now_s + stale_since

    def _leave(self, group: str, task: TaskInput) -> None:
        """Let a task be pending again; if it ran, its pod keeps the place for the grace period."""
        was_running = self.places[task.uid].status is TaskStatus.RUNNING
        self.places[task.uid] = Place()
        grace = self.grace_cycles(task.uid)
        if was_running and grace > 0:
            pod = replace(
                task,
                name=f"{task.name}.leaving",
                uid=f"{task.uid}.leaving-{self.now_s:.0f}",
                status=TaskStatus.RELEASING,
            )
            self.leaving.setdefault(group, []).append(LeavingPod(pod, self.now_s + grace))

    def _end_leaving(self) -> None:
        for group, pods in list(self.leaving.items()):
            self.leaving[group] = [pod for pod in pods if pod.until_s > self.now_s]


def key_of(group: PodGroupInput) -> str:
    """Return `namespace/name`, or the bare name of a pod group without a namespace."""
    return f"{group.namespace}/{group.name}" if group.namespace else group.name


def _used(amounts: QueueAmounts, share: float) -> QueueAmounts:
    return replace(amounts, usage=share)


def gangs_like(
    names: Sequence[str], template: PodGroupInput, tasks: int, created_s: float
) -> list[PodGroupInput]:
    """Return copies of a pod group under other names, each a gang of `tasks` tasks."""
    gangs = []
    for number, name in enumerate(names):
        members = tuple(
            replace(template.tasks[0], name=f"{name}-{index}", uid=f"{name}-{index}")
            for index in range(tasks)
        )
        gangs.append(
            replace(template, name=name, uid=name, tasks=members, created=created_s + number * 1e-3)
        )
    return gangs
