"""Check the core against the table `job_order`, whose rows push pod groups into a queue tree and pop them in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

from scheduler.core.actions.attempts import remaining_delay_s
from scheduler.core.cluster.inputs import (
    ClusterInput,
    NodeInput,
    PodGroupInput,
    PodSetInput,
    QueueAmounts,
    QueueInput,
    SubGroupInput,
    TaskInput,
    TaskRequest,
)
from scheduler.core.cluster.status import TaskStatus
from scheduler.core.config import PluginConfig, SchedulerConfig
from scheduler.core.cycle import open_session
from scheduler.core.session.gang import GangView
from scheduler.core.session.order import GroupOrder
from scheduler.core.session.session import Session
from scheduler.core.solver.victims import VictimPool, VictimSequence
from scheduler.tools.conformance.verdict import Mismatch, compare_values

Case = Mapping[str, Any]


def job_order(case: Case) -> list[Mismatch]:
    """Return where the core serves (or evicts) the pod groups in another order than the table row says."""
    mismatches: list[Mismatch] = []
    session, index_of = _order_session(case)
    order: _CoreOrder | None = None
    for number, operation in enumerate(case["operations"]):
        if operation["op"] == "initialize":
            groups = [index_of[job["name"]] for job in operation["jobs"]]
            order = _CoreOrder(session, case["options"], groups)
        elif operation["op"] == "push":
            order = order or _CoreOrder(session, case["options"], [])
            order.push(index_of[operation["job"]["name"]])
        else:
            order = order or _CoreOrder(session, case["options"], [])
            mismatches += compare_values(f"operation {number}", operation["job"], order.pop())
    return mismatches


class _CoreOrder:
    """The order of the core for one table row: in which it serves pod groups, or in which it evicts them."""

    def __init__(self, session: Session, options: Case, groups: Sequence[int]) -> None:
        self._session = session
        self._names = [group.name for group in session.state.pod_groups.inputs]
        self._victims: VictimSequence | None = None
        self._position = 0
        views = [session.view(group) for group in groups]
        if options.get("victim_queue"):
            group_set = frozenset(groups)
            pool = VictimPool(session)
            self._victims = VictimSequence(
                session, pool, pool.leaves, lambda view: view.pod_group in group_set
            )
            return
        depth = options.get("max_depth", -1)
        self._order = GroupOrder(
            session,
            [view for view in views if self._admits(view, options)],
            depth=inf if depth < 0 else depth,
        )

    def push(self, group: int) -> None:
        self._order.push(self._session.view(group))

    def pop(self) -> str | None:
        if self._victims is not None:
            batch = self._victims.get(self._position)
            self._position += 1
            return None if batch is None else self._names[batch.pod_group]
        view = self._order.pop()
        return None if view is None else self._names[view.pod_group]

    def _admits(self, view: GangView, options: Case) -> bool:
        groups = self._session.state.pod_groups
        if options.get("skip_not_ready") and not view.is_ready(view.root):
            return False
        if options.get("skip_without_pending") and not groups.pending[view.pod_group]:
            return False
        if options.get("skip_without_active") and not groups.active_allocated[view.pod_group]:
            return False
        if options.get("skip_non_preemptible") and not groups.preemptible[view.pod_group]:
            return False
        return not (
            options.get("skip_within_preemption_delay")
            and remaining_delay_s(self._session, view.pod_group) > 0
        )


def _order_session(case: Case) -> tuple[Session, dict[str, int]]:
    """Build a session with every pod group that the operations name.

    The tables do not say what victims hold. Each of their tasks gets one GPU, because no table is about victims
    that hold nothing.
    """
    is_victim = bool(case["options"].get("victim_queue"))
    jobs = [
        job
        for operation in case["operations"]
        for job in operation.get("jobs") or [operation.get("job")]
        if isinstance(job, Mapping)
    ]
    groups = tuple(_ordered_group(job, is_victim=is_victim) for job in jobs)
    queues = tuple(
        QueueInput(
            name=name,
            parent=queue.get("parent") or "",
            priority=int(queue.get("priority", 100)),
            created=float(queue.get("created_offset_seconds") or 0),
            gpu=_queue_amounts(queue.get("gpu") or {}),
        )
        for name, queue in case["queues"].items()
    )
    plugins = [PluginConfig("priority"), PluginConfig("elastic")]
    if case.get("queue_share_order_active"):
        plugins.append(PluginConfig("proportion"))
    size = {"cpu": 1e6, "memory": 1e12, "gpu": float(len(groups)), "pods": 110.0}
    node = NodeInput(name="node", allocatable=size)
    session = open_session(
        ClusterInput(nodes=(node,), queues=queues, pod_groups=groups),
        SchedulerConfig(plugins=tuple(plugins)),
    )
    index_of = {group.name: index for index, group in enumerate(session.state.pod_groups.inputs)}
    return session, index_of


def _ordered_group(job: Case, *, is_victim: bool) -> PodGroupInput:
    count = sum(job["tasks_by_status"].values())
    tasks = tuple(
        TaskInput(
            name=f"{job['name']}-{number}",
            uid=f"{job['name']}-{number}",
            status=TaskStatus.RUNNING if is_victim else TaskStatus.PENDING,
            node="node" if is_victim else "",
            request=TaskRequest(gpus=1) if is_victim else TaskRequest(),
        )
        for number in range(count)
    )
    pod_sets = tuple(
        PodSetInput(name=entry["name"], min_available=int(entry["min_available"]))
        for entry in job["pod_sets"]
    )
    return PodGroupInput(
        name=job["name"],
        uid=job.get("uid") or job["name"],
        queue=job["queue"],
        priority=int(job["priority"]),
        preemptible=is_victim or bool(job["preemptible"]),
        created=float(job.get("created_offset_seconds") or 0),
        preemption_delay_s=float(job.get("preemption_delay_seconds") or 0),
        root=SubGroupInput(pod_sets=pod_sets),
        tasks=tasks,
    )


def _queue_amounts(block: Case) -> QueueAmounts:
    def amount(value: float) -> float:
        return inf if value == -1 else float(value)

    return QueueAmounts(
        quota=amount(block.get("quota", 0)),
        limit=amount(block.get("limit", 0)),
        over_quota_weight=float(block.get("over_quota_weight", 0)),
    )
