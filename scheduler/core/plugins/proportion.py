"""Fair share: divide the cluster among the queues, and make the result the policy of the session.

The division is made when a session opens; during the session only what queues hold changes. The rules
themselves are pure functions in `scheduler.core.fairshare`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scheduler.core.arrays import GPU_INDEX, Amounts, Floats
from scheduler.core.cluster.axis import CPU_ROW, GPU_ROW, MEMORY_ROW
from scheduler.core.cluster.inputs import QueueAmounts, QueueInput
from scheduler.core.cluster.state import ClusterState
from scheduler.core.cluster.status import ACTIVE_USED, TaskStatus
from scheduler.core.cluster.tasks import NOWHERE
from scheduler.core.fairshare.division import DivisionInput, divide_tree
from scheduler.core.fairshare.shares import QueueLedger, rows_of
from scheduler.core.plugins.spec import ArgumentTexts
from scheduler.core.session.policy import FairSharePolicy
from scheduler.core.session.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class ProportionArguments:
    """Arguments of the plugin.

    Attributes
    ----------
    k_value : strength with which past usage lowers the share of a queue; not below 0
    saturation_multiplier : how much more saturated the other queue must stay in a reclaim; not below 1
    """

    k_value: float = 1.0
    saturation_multiplier: float = 1.0

    def __post_init__(self) -> None:
        """Raise to the smallest value that makes sense, as KAI does."""
        object.__setattr__(self, "k_value", max(0.0, self.k_value))
        object.__setattr__(self, "saturation_multiplier", max(1.0, self.saturation_multiplier))

    @classmethod
    def parse(cls, texts: ArgumentTexts) -> ProportionArguments:
        """Return the arguments of a configuration; KAI once misspelled the multiplier, so both names count."""
        misspelled = texts.number("relcaimerSaturationMultiplier", 1.0)
        return cls(
            k_value=texts.number("kValue", 1.0),
            saturation_multiplier=texts.number("reclaimerUtilizationMultiplier", misspelled),
        )


class ProportionPlugin:
    """Divides the cluster and makes fair share the policy of the session."""

    def __init__(self, arguments: ProportionArguments) -> None:
        self._arguments = arguments

    def open(self, session: Session) -> None:
        """Divide, charge queues with what runs, and install the policy."""
        state = session.state
        holdings = _Holdings(state)
        ledger = open_ledger(
            state,
            cluster_total(state, restrict=session.config.restrict_node_scheduling),
            holdings,
            self._arguments.k_value,
        )
        session.policy = FairSharePolicy(ledger, self._arguments.saturation_multiplier)


class _Holdings:
    """Per queue, leaf to root: what it holds, what of that is non-preemptible, and what it requests."""

    def __init__(self, state: ClusterState) -> None:
        count = len(state.queues)
        self.allocated = np.zeros((3, count))
        self.non_preemptible = np.zeros((3, count))
        self.request = np.zeros((3, count))
        for (queue, amounts, preemptible), number in state.queue_counts.sorted_held():
            total = np.array(amounts) * number
            self.allocated[:, queue] += total
            self.request[:, queue] += total
            if not preemptible:
                self.non_preemptible[:, queue] += total
        for (queue, amounts), number in state.queue_counts.sorted_pending():
            self.request[:, queue] += np.array(amounts) * number
        for queue, surplus in _repeated_requests(state).items():
            self.request[GPU_INDEX, queue] -= surplus
        for queue in _children_first(state.queues.parent):
            above = state.queues.parent[queue]
            if above >= 0:
                for rows in (self.allocated, self.non_preemptible, self.request):
                    rows[:, above] += rows[:, queue]


def _repeated_requests(state: ClusterState) -> dict[int, float]:
    """Return per queue the GPUs of claims that pending tasks request, but which count already."""
    tasks, groups = state.tasks, state.pod_groups
    sharing: dict[int, list[int]] = {}
    for task in state.shared_claims.tasks:
        group = tasks.pod_group[task]
        if tasks.status[task] == TaskStatus.PENDING and group != NOWHERE:
            sharing.setdefault(groups.queue[group], []).append(task)
    return {
        queue: state.shared_claims.repeated(pending, tasks.status)
        for queue, pending in sharing.items()
        if queue != NOWHERE
    }


def _children_first(parent: list[int]) -> list[int]:
    """Order queues so that every queue comes before its parent."""

    def depth(queue: int) -> int:
        steps = 0
        while parent[queue] >= 0:
            queue, steps = parent[queue], steps + 1
        return steps

    return sorted(range(len(parent)), key=depth, reverse=True)


def open_ledger(
    state: ClusterState, total: Amounts, holdings: _Holdings, k_value: float
) -> QueueLedger:
    """Divide the cluster among the queues of a state and return their ledger."""
    queues = state.queues
    demand = DivisionInput(
        quota=_column(queues.inputs, "quota"),
        limit=_column(queues.inputs, "limit"),
        weight=_column(queues.inputs, "over_quota_weight"),
        usage=_column(queues.inputs, "usage"),
        request=holdings.request,
        priority=np.array([queue.priority for queue in queues.inputs], dtype=np.int64),
        seniority=np.arange(len(queues), dtype=np.int64),
    )
    shares = divide_tree(
        np.array(total, dtype=np.float64),
        np.array(queues.parent, dtype=np.int64),
        demand,
        k_value,
    )
    return QueueLedger(
        names=queues.names,
        display_names=[queue.display_name or queue.name for queue in queues.inputs],
        parents=queues.parent,
        priorities=[queue.priority for queue in queues.inputs],
        seniority=list(range(len(queues))),
        quotas=rows_of(demand.quota),
        limits=rows_of(demand.limit),
        fair_shares=rows_of(shares),
        requests=rows_of(holdings.request),
        allocated=[list(row) for row in rows_of(holdings.allocated)],
        allocated_non_preemptible=[list(row) for row in rows_of(holdings.non_preemptible)],
        totals=total,
    )


def _column(inputs: list[QueueInput], field: str) -> Floats:
    def row(resource: str) -> list[float]:
        return [getattr(_amounts(queue, resource), field) for queue in inputs]

    return np.array([row("cpu"), row("memory"), row("gpu")], dtype=np.float64).reshape(3, -1)


def _amounts(queue: QueueInput, resource: str) -> QueueAmounts:
    amounts: QueueAmounts = getattr(queue, resource)
    return amounts


def cluster_total(state: ClusterState, *, restrict: bool) -> Amounts:
    """Return what the queues share: healthy nodes, less what other schedulers placed on them.

    restrict : GPUs of nodes that are not GPU workers do not count
    """
    key = ("cluster total", restrict)
    counted, healthy_total = state.nodes.remember(key, lambda: _of_healthy_nodes(state, restrict))
    total = list(healthy_total)
    for task in sorted(state.tasks.foreign):
        node = state.tasks.node[task]
        if node in counted and ACTIVE_USED[state.tasks.status[task]]:
            for resource, amount in enumerate(state.tasks.task_class[task].requested):
                total[resource] -= amount
    return (total[0], total[1], total[2])


def _of_healthy_nodes(state: ClusterState, restrict: bool) -> tuple[frozenset[int], Amounts]:
    """Return the healthy nodes, and what they have."""
    nodes = state.nodes
    healthy = [
        index
        for index, node in enumerate(nodes.inputs)
        if not node.unschedulable and node.ready and not node.pressures
    ]
    sums = nodes.allocatable[:, healthy].sum(axis=1)
    for_gpus = [i for i in healthy if nodes.inputs[i].is_gpu_worker] if restrict else healthy
    gpu_sums = nodes.allocatable[:, for_gpus].sum(axis=1)
    mig = sum(gpu_sums[row] * units for row, units in state.axis.mig_rows)
    gpus = float(gpu_sums[GPU_ROW]) + mig
    return frozenset(healthy), (float(sums[CPU_ROW]), float(sums[MEMORY_ROW]), float(gpus))
