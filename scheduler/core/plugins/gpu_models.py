"""Bounds per GPU model: how much of one model a queue may hold, and how much of it is safe from reclaim.

A task is charged to the model of the node it is on. On the path from its leaf queue to the root

- a limit of the model refuses nodes of this model for any task that would exceed it;
- a quota of the model refuses them for non-preemptible tasks beyond it, and reclaim leaves a queue its quota.

What a task of a shared device takes counts as its part of the device.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from scheduler.core.arrays import GPU_INDEX, TOLERANCE, Bools
from scheduler.core.cluster.classes import TaskClass
from scheduler.core.cluster.inputs import GPU, NodeInput
from scheduler.core.cluster.status import ACTIVE_ALLOCATED, QUEUE_ALLOCATED
from scheduler.core.cluster.tasks import NOWHERE
from scheduler.core.session.fit import NodeReason, NodeReasonKind
from scheduler.core.session.gang import GangView
from scheduler.core.session.hooks import Scope
from scheduler.core.session.minimums import protected_tasks
from scheduler.core.session.model_bounds import BoundedQueues
from scheduler.core.session.session import Session

PRODUCT_LABEL = "nvidia.com/gpu.product"
#: The model of nodes whose devices have no product label.
UNKNOWN_MODEL = "nvidia.com/gpu"
NO_MODEL = ""


class GpuModelsPlugin:
    """Enforces the bounds; adds nothing to a session in which no queue has any."""

    def open(self, session: Session) -> None:
        """Register the filter of nodes, the ledger, and the protection from reclaim."""
        if not any(queue.gpu_models for queue in session.state.queues.inputs):
            return
        holdings = _ModelHoldings(session)
        session.attach(BoundedQueues(frozenset(holdings.bounded_leaves)))
        hooks = session.hooks
        hooks.filters.append(holdings)
        hooks.listeners.append(holdings)
        hooks.reclaim_victim_filters.append(holdings.may_reclaim)
        hooks.reclaim_validators.append(holdings.leaves_quotas)


#: (queue, GPU model)
Cell = tuple[int, str]


class _ModelHoldings:
    """What queues hold of the models they bound: a filter of nodes and a listener of placements."""

    name = "GpuModel"
    scope = Scope.CLUSTER

    def __init__(self, session: Session) -> None:
        state = session.state
        self._session, self._state = session, state
        self._paths = session.policy.ledger.paths
        self._model_of = [model_of(node) for node in state.nodes.inputs]
        #: (GPU model, MiB of one GPU) -> the nodes.
        self._nodes_of: dict[tuple[str, int], list[int]] = {}
        for node, model in enumerate(self._model_of):
            if model != NO_MODEL:
                kind = (model, state.nodes.gpu_memory[node])
                self._nodes_of.setdefault(kind, []).append(node)
        bounds = {
            (queue, bound.model): bound
            for queue, queue_input in enumerate(state.queues.inputs)
            for bound in queue_input.gpu_models
        }
        self._limits = {c: b.limit for c, b in bounds.items() if b.limit is not None}
        self._quotas = {c: b.quota for c, b in bounds.items() if b.quota is not None}
        self._held: dict[Cell, float] = dict.fromkeys(bounds, 0.0)
        self._held_non_preemptible: dict[Cell, float] = dict.fromkeys(bounds, 0.0)
        bounding = {queue for queue, _ in bounds}
        #: Leaf queues with a bound on their path to the root.
        self.bounded_leaves = {
            queue
            for queue in range(len(state.queues))
            if state.queues.is_leaf(queue) and not bounding.isdisjoint(self._paths[queue])
        }
        self._classes = self._charge_running()

    def _charge_running(self) -> set[int]:
        """Charge what runs; return the task classes of the queues concerned."""
        tasks, groups = self._state.tasks, self._state.pod_groups
        classes: set[int] = set()
        for group, queue in enumerate(groups.queue):
            if queue not in self.bounded_leaves:
                continue
            for task in groups.tasks_of(group):
                classes.add(tasks.task_class[task].index)
                if QUEUE_ALLOCATED[tasks.status[task]] and tasks.node[task] != NOWHERE:
                    for cell, gpus_by_cell in self._cells(task, tasks.node[task]):
                        gpus_by_cell[cell] += tasks.accepted[task][GPU_INDEX]
        return classes

    def _cells(self, task: int, node: int) -> list[tuple[Cell, dict[Cell, float]]]:
        """Return the counters that a task on a node is charged to."""
        cells = self._cells_on_path(task, node)
        counters = [(cell, self._held) for cell in cells]
        if cells and not self._state.pod_groups.preemptible[self._state.tasks.pod_group[task]]:
            counters += [(cell, self._held_non_preemptible) for cell in cells]
        return counters

    def _cells_on_path(self, task: int, node: int) -> list[Cell]:
        """Return the bounded cells of a node's model, from the queue of a task to the root."""
        queue, model = self._queue_of(task), self._model_of[node]
        if queue not in self.bounded_leaves:
            return []
        return [cell for index in self._paths[queue] if (cell := (index, model)) in self._held]

    def _queue_of(self, task: int) -> int:
        group = self._state.tasks.pod_group[task]
        return NOWHERE if group == NOWHERE else self._state.pod_groups.queue[group]

    # ---------------------------------------------------------------------------------- listener

    def concerns(self, task_class: TaskClass) -> bool:
        """Return whether tasks of a class take GPUs and a queue concerned has any."""
        return task_class.index in self._classes and not task_class.is_cpu_only

    def placed(self, task: int, node: int) -> None:
        """Charge a task to the model of its node."""
        self._add(task, node, self._state.tasks.accepted[task][GPU_INDEX])

    def left(self, task: int, node: int) -> None:
        """Take back what a task was charged."""
        self._add(task, node, -self._state.tasks.accepted[task][GPU_INDEX])

    def _add(self, task: int, node: int, gpus: float) -> None:
        for cell, gpus_by_cell in self._cells(task, node):
            self._state.journal.put(gpus_by_cell, cell, gpus_by_cell[cell] + gpus)

    # ------------------------------------------------------------------------------------ filter

    def mask(self, task: int, task_class: TaskClass) -> Bools:
        """Return the nodes with a model of which the queue may hold more."""
        mask = np.ones(len(self._model_of), dtype=np.bool_)
        non_preemptible = self._held_as_non_preemptible(task)
        for (model, gpu_memory), nodes in self._nodes_of.items():
            gpus = task_class.charged_on(gpu_memory)[GPU_INDEX]
            if self._exceeded(task, model, gpus, non_preemptible) is not None:
                mask[nodes] = False
        return mask

    def passes(self, task: int, task_class: TaskClass, node: int) -> bool:
        """Return whether the queue may hold more of the model of one node."""
        return self._exceeded_on(node, task, task_class) is None

    def reasons(self, task: int, task_class: TaskClass, node: int) -> tuple[NodeReason, ...]:
        """Return which bound the task would exceed."""
        text = self._exceeded_on(node, task, task_class)
        return () if text is None else (NodeReason(NodeReasonKind.GPU_MODEL, text),)

    def _exceeded_on(self, node: int, task: int, task_class: TaskClass) -> str | None:
        gpus = task_class.charged_on(self._state.nodes.gpu_memory[node])[GPU_INDEX]
        non_preemptible = self._held_as_non_preemptible(task)
        return self._exceeded(task, self._model_of[node], gpus, non_preemptible)

    def _exceeded(
        self, task: int, model: str, gpus: float, non_preemptible: Mapping[Cell, float] | None
    ) -> str | None:
        """Return the first bound, from leaf to root, that a task would exceed; None if there is none.

        Parameters
        ----------
        non_preemptible : what counts against quotas; None if quotas do not bind the task
        """
        queue = self._queue_of(task)
        if queue not in self.bounded_leaves:
            return None
        for index in self._paths[queue]:
            cell = (index, model)
            limit = self._limits.get(cell)
            if limit is not None and self._held[cell] + gpus > limit + TOLERANCE:
                return self._text("limit", index, model, limit, self._held[cell])
            quota = self._quotas.get(cell)
            if non_preemptible is None or quota is None:
                continue
            allocated = non_preemptible[cell]
            if allocated + gpus > quota + TOLERANCE:
                return self._text("quota for non-preemptible work", index, model, quota, allocated)
        return None

    def _held_as_non_preemptible(self, task: int) -> Mapping[Cell, float] | None:
        """Return what non-preemptible work and the minimums of semi-preemptible work hold.

        None if quotas do not bind the task.
        """
        if not self._quotas or self._queue_of(task) not in self.bounded_leaves:
            return None
        groups, tasks = self._state.pod_groups, self._state.tasks
        if self._session.is_next_preemptible(tasks.pod_group[task]):
            return None
        if not groups.semi_preemptible:
            return self._held_non_preemptible
        gpus_by_cell = self._held_non_preemptible.copy()
        for semi_preemptible in groups.semi_preemptible:
            if groups.queue[semi_preemptible] in self.bounded_leaves:
                for protected in protected_tasks(self._session.view(semi_preemptible)):
                    for cell in self._cells_on_path(protected, tasks.node[protected]):
                        gpus_by_cell[cell] += tasks.accepted[protected][GPU_INDEX]
        return gpus_by_cell

    def _text(self, bound: str, queue: int, model: str, amount: float, allocated: float) -> str:
        name = self._state.queues.shown_names()[queue]
        return f"queue '{name}' holds {allocated:g} of its {bound} of {amount:g} {model}"

    # ----------------------------------------------------------------------------------- reclaim

    def may_reclaim(self, victim: GangView, evictor: GangView) -> bool:
        """Return whether a pod group could lose its next tasks without taking a queue's quota of a model."""
        lost_gpus = self._sum(victim.eviction_batch(), evictor.queue)
        return all(
            self._held[cell] - gpus + TOLERANCE >= self._quotas[cell]
            for cell, gpus in lost_gpus.items()
        )

    def leaves_quotas(self, evictor: GangView, victims: Sequence[int]) -> bool:
        """Return whether every queue that lost tasks in a trial keeps its quota of their models."""
        status = self._state.tasks.status
        evicted = [task for task in victims if not ACTIVE_ALLOCATED[status[task]]]
        lost_gpus = self._sum(evicted, evictor.queue)
        return all(self._held[cell] + TOLERANCE >= self._quotas[cell] for cell in lost_gpus)

    def _sum(self, tasks: Sequence[int], evictor_queue: int) -> dict[Cell, float]:
        """Return what tasks hold of models with a quota, in queues that the evictor's is not part of."""
        shared = self._paths[evictor_queue]
        held_by, node_of = self._state.tasks.accepted, self._state.tasks.node
        sums: dict[Cell, float] = {}
        for task in tasks:
            gpus = held_by[task][GPU_INDEX]
            if node_of[task] == NOWHERE or not gpus:
                continue
            for cell, gpus_by_cell in self._cells(task, node_of[task]):
                if gpus_by_cell is self._held and cell in self._quotas and cell[0] not in shared:
                    sums[cell] = sums.get(cell, 0.0) + gpus
        return sums


def model_of(node: NodeInput) -> str:
    """Return the GPU model of a node: its product label, else a word for all unknown ones."""
    label = node.labels.get(PRODUCT_LABEL, "")
    if label:
        return label
    has_gpus = node.allocatable.get(GPU, 0) or any("/mig-" in name for name in node.allocatable)
    return UNKNOWN_MODEL if has_gpus else NO_MODEL
