"""Small clusters in a few words, for tests of the core.

cluster().node("n1", gpus=8).queue("a", quota=4).pending("job", 2, queue="a").session()
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf
from typing import Any

from scheduler.core.cluster.constraints import NO_CONSTRAINTS, TaskConstraints
from scheduler.core.cluster.inputs import (
    UNLIMITED_AMOUNTS,
    ClusterInput,
    NodeInput,
    OtherPod,
    PodGroupInput,
    PodSetInput,
    QueueAmounts,
    QueueInput,
    SubGroupInput,
    TaskInput,
    TaskRequest,
)
from scheduler.core.cluster.status import TaskStatus
from scheduler.core.config import SchedulerConfig
from scheduler.core.cycle import open_session, run_cycle
from scheduler.core.decisions import ActionName
from scheduler.core.session.session import Session

GB = 1_000_000_000.0


def request(gpus: float = 1, cpu: float = 1, memory: float = 1, **more: Any) -> TaskRequest:
    """Ask for devices (a part of one if below 1), cores and GB."""
    whole = gpus >= 1 or gpus == 0
    return TaskRequest(
        cpu_milli=cpu * 1000.0,
        memory_bytes=memory * GB,
        gpus=float(gpus) if whole else 0.0,
        gpu_fraction=0.0 if whole else gpus,
        **more,
    )


class ClusterBuilder:
    """Collects a snapshot; pod groups added first are older."""

    def __init__(self) -> None:
        self._nodes: list[NodeInput] = []
        self._queues: list[QueueInput] = []
        self._groups: list[PodGroupInput] = []
        self._others: list[OtherPod] = []
        self._more: dict[str, Any] = {}

    def node(
        self,
        name: str,
        gpus: float = 8,
        *,
        cpu: float = 1000,
        memory: float = 1000,
        pods: float = 110,
        resources: dict[str, float] | None = None,
        **options: Any,
    ) -> ClusterBuilder:
        """Add a node; cpu in cores, memory in GB."""
        allocatable = {"cpu": cpu * 1000.0, "memory": memory * GB, "gpu": gpus, "pods": pods}
        allocatable |= resources or {}
        self._nodes.append(NodeInput(name=name, allocatable=allocatable, **options))
        return self

    def nodes(self, count: int, gpus: float = 8, **options: Any) -> ClusterBuilder:
        """Add nodes n0, n1 ..."""
        for number in range(count):
            self.node(f"n{number}", gpus, **options)
        return self

    def queue(
        self,
        name: str,
        quota: float = inf,
        *,
        limit: float = inf,
        weight: float = 1,
        **options: Any,
    ) -> ClusterBuilder:
        """Add a queue by its GPU amounts; CPU and memory are unlimited unless given."""
        gpu = QueueAmounts(quota=quota, limit=limit, over_quota_weight=weight)
        amounts = {"cpu": UNLIMITED_AMOUNTS, "memory": UNLIMITED_AMOUNTS} | {
            key: options.pop(key) for key in ("cpu", "memory") if key in options
        }
        options.setdefault("created", float(len(self._queues)))
        self._queues.append(QueueInput(name=name, gpu=gpu, **amounts, **options))
        return self

    def pending(self, name: str, tasks: int = 1, **options: Any) -> ClusterBuilder:
        """Add a pod group of pending tasks; a gang unless `minimum` says less."""
        return self._add(name, [(TaskStatus.PENDING, "")] * tasks, options)

    def running(self, name: str, nodes: Sequence[str], **options: Any) -> ClusterBuilder:
        """Add a pod group with one running task on each named node."""
        return self._add(name, [(TaskStatus.RUNNING, node) for node in nodes], options)

    def group(self, pod_group: PodGroupInput) -> ClusterBuilder:
        """Add a pod group as it is."""
        self._groups.append(pod_group)
        return self

    def other(self, pod: OtherPod) -> ClusterBuilder:
        """Add a pod outside pod groups."""
        self._others.append(pod)
        return self

    def having(self, **more: Any) -> ClusterBuilder:
        """Set other parts of the snapshot."""
        self._more |= more
        return self

    def build(self) -> ClusterInput:
        """Return the snapshot."""
        queues = self._queues or [
            QueueInput(
                name="default",
                cpu=UNLIMITED_AMOUNTS,
                memory=UNLIMITED_AMOUNTS,
                gpu=UNLIMITED_AMOUNTS,
            )
        ]
        return ClusterInput(
            nodes=tuple(self._nodes),
            queues=tuple(queues),
            pod_groups=tuple(self._groups),
            other_pods=tuple(self._others),
            **self._more,
        )

    def session(self, config: SchedulerConfig | None = None) -> Session:
        """Open a session on the snapshot."""
        return open_session(self.build(), config or SchedulerConfig())

    def cycle(self, *actions: ActionName, config: SchedulerConfig | None = None) -> Session:
        """Run a whole cycle, or some actions only."""
        config = config or SchedulerConfig()
        if actions:
            config = replace(config, actions=actions)
        result = run_cycle(self.build(), config)
        result.state.validate()
        return result

    def _add(
        self, name: str, places: Sequence[tuple[TaskStatus, str]], options: dict[str, Any]
    ) -> ClusterBuilder:
        task_request: TaskRequest = options.pop("request", None) or request(options.pop("gpus", 1))
        constraints: TaskConstraints = options.pop("constraints", NO_CONSTRAINTS)
        minimum = options.pop("minimum", len(places))
        groups: Sequence[tuple[str, ...]] = options.pop("gpu_groups", [()] * len(places))
        task_options: dict[str, Any] = options.pop("task", {})
        options.setdefault("queue", self._queues[-1].name if self._queues else "default")
        options.setdefault("created", float(len(self._groups)))
        options.setdefault("root", SubGroupInput(pod_sets=(PodSetInput(min_available=minimum),)))
        if "priority" in options:
            options.setdefault("preemptible", options["priority"] < 100)
        tasks = tuple(
            TaskInput(
                name=f"{name}-{number}",
                uid=f"{name}-{number}",
                status=status,
                node=node,
                request=task_request,
                constraints=constraints,
                gpu_groups=groups[number],
                **task_options,
            )
            for number, (status, node) in enumerate(places)
        )
        self._groups.append(PodGroupInput(name=name, uid=name, tasks=tasks, **options))
        return self


def cluster() -> ClusterBuilder:
    """Begin a cluster."""
    return ClusterBuilder()


def placements(session: Session) -> dict[str, str]:
    """Return task name -> node name of everything that holds a node at the end."""
    tasks, names = session.state.tasks, session.state.nodes.names
    return {
        pod_group.name: names[tasks.node[index]]
        for index, pod_group in enumerate(tasks.inputs)
        if tasks.node[index] >= 0
    }


def status_of(session: Session, task: str) -> TaskStatus:
    """Return the status of a task at the end."""
    tasks = session.state.tasks
    index = next(i for i, pod_group in enumerate(tasks.inputs) if pod_group.name == task)
    return TaskStatus(tasks.status[index])


def fingerprint(session: Session) -> dict[str, Any]:
    """Return every cell a statement may change, comparable bit for bit."""
    state, ledger = session.state, session.policy.ledger
    tasks, groups, nodes = state.tasks, state.pod_groups, state.nodes
    sets = groups.pod_sets
    return {
        "idle": nodes.idle.tobytes(),
        "releasing": nodes.releasing.tobytes(),
        "whole": [value.hex() for value in nodes.whole_gpus_used],
        "devices": [
            {key: [v.hex() for v in map(float, ledger_row)] for key, ledger_row in device.items()}
            for device in nodes.shared_gpus
        ],
        "on_node": [sorted(task_ids) for task_ids in nodes.tasks],
        "status": bytes(tasks.status),
        "virtual": bytes(tasks.is_virtual),
        "where": (list(tasks.node), list(tasks.left_node)),
        "accepted": list(tasks.accepted),
        "gpu_groups": list(tasks.gpu_groups),
        "numa": dict(tasks.numa),
        "claims": dict(tasks.claim_allocations),
        "counters": [
            list(column)
            for column in (
                sets.pending,
                sets.gated,
                sets.nominated,
                sets.active_allocated,
                sets.active_used,
                groups.pending,
                groups.active_allocated,
            )
        ],
        "queues": [
            [[v.hex() for v in map(float, row)] for row in rows]
            for rows in (ledger.allocated, ledger.allocated_non_preemptible)
        ],
    }
