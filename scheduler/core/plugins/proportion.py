"""Fair share: divide the cluster among the queues, and make the result the policy of the session.

The division is made when a session opens; during the session only what queues hold changes. The rules
themselves are pure functions in `scheduler.core.fairshare`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from scheduler.core.arrays import GPU_INDEX, Amounts, Floats
from scheduler.core.cluster.axis import CPU_ROW, MEMORY_ROW
from scheduler.core.cluster.inputs import QueueAmounts, QueueInput
from scheduler.core.cluster.queues import Queues
from scheduler.core.cluster.state import ClusterState
from scheduler.core.cluster.status import ACTIVE_USED, TaskStatus
from scheduler.core.cluster.tasks import NOWHERE
from scheduler.core.fairshare.division import DivisionInput, divide_tree
from scheduler.core.fairshare.shares import QueueLedger, allocatable_shares, rows_of
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
        held_amounts = state.queue_counts.sorted_held()
        pending = state.queue_counts.sorted_pending()
        self.allocated = _summed([(key[0], key[1], number) for key, number in held_amounts], count)
        self.non_preemptible = _summed(
            [(key[0], key[1], number) for key, number in held_amounts if not key[2]], count
        )
        self.request = self.allocated + _summed([(*key, number) for key, number in pending], count)
        for queue, surplus in _repeated_requests(state).items():
            self.request[GPU_INDEX, queue] -= surplus
        parent = np.array(state.queues.parent, dtype=np.int64)
        for level in reversed(state.queues.levels()[1:]):
            for row in (*self.allocated, *self.non_preemptible, *self.request):
                np.add.at(row, parent[level], row[level])


def _summed(counts: Sequence[tuple[int, Amounts, int]], queues: int) -> Floats:
    """Return what tasks amount to by queue: (queue, amounts of one task, number of tasks)."""
    sums = np.zeros((3, queues))
    if counts:
        numbers = np.array([[number] for _, _, number in counts])
        amounts = np.array([charge for _, charge, _ in counts]) * numbers
        places = np.array([queue for queue, _, _ in counts])
        for row, column in zip(sums, amounts.T, strict=True):
            np.add.at(row, places, column)
    return sums


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


def open_ledger(
    state: ClusterState, total: Amounts, holdings: _Holdings, k_value: float
) -> QueueLedger:
    """Divide the cluster among the queues of a state and return their ledger."""
    queues = state.queues
    bounds = queues.memo.remember("bounds", lambda: _Bounds(queues))
    demand = DivisionInput(
        quota=bounds.quota,
        limit=bounds.limit,
        weight=bounds.weight,
        usage=bounds.usage,
        request=holdings.request,
        priority=np.array(queues.priorities(), dtype=np.int64),
        seniority=np.arange(len(queues), dtype=np.int64),
    )
    parents = np.array(queues.parent, dtype=np.int64)
    shares = divide_tree(np.array(total, dtype=np.float64), parents, demand, k_value)
    return QueueLedger(
        names=queues.names,
        display_names=queues.shown_names(),
        parents=queues.parent,
        priorities=queues.priorities(),
        seniority=list(range(len(queues))),
        quotas=bounds.quota_rows,
        limits=bounds.limit_rows,
        fair_shares=rows_of(shares),
        requests=rows_of(holdings.request),
        allocated=np.ascontiguousarray(holdings.allocated.T).tolist(),
        allocated_non_preemptible=np.ascontiguousarray(holdings.non_preemptible.T).tolist(),
        totals=total,
        paths=queues.paths(),
        allocatable=rows_of(allocatable_shares(bounds.quota, bounds.limit, shares)),
    )


class _Bounds:
    """What the queues may have, as arrays of shape (resources, queues) and as rows; read-only."""

    def __init__(self, queues: Queues) -> None:
        self.quota = _column(queues.inputs, "quota")
        self.limit = _column(queues.inputs, "limit")
        self.weight = _column(queues.inputs, "over_quota_weight")
        self.usage = _column(queues.inputs, "usage")
        self.quota_rows, self.limit_rows = rows_of(self.quota), rows_of(self.limit)


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
    healthy_nodes, healthy_total = state.nodes.memo.remember(
        key, lambda: _of_healthy_nodes(state, restrict)
    )
    total = list(healthy_total)
    for task in sorted(state.tasks.foreign):
        node = state.tasks.node[task]
        if node in healthy_nodes and ACTIVE_USED[state.tasks.status[task]]:
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
    gpus = state.axis.gpus_of(gpu_sums)
    return frozenset(healthy), (float(sums[CPU_ROW]), float(sums[MEMORY_ROW]), gpus)
