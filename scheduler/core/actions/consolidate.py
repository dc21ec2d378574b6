"""Consolidation: move running tasks closer together so that a preemptible pod group fits.

No victim may lose its place: a trial counts only if every task that had to go has another place. The
quotas and fair shares of victims are not checked, since their queues keep what they hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scheduler.core.actions.attempts import Attempts, evict_reason
from scheduler.core.cluster.status import TaskStatus
from scheduler.core.decisions import ActionName, ActionReport, EvictReason
from scheduler.core.placement.place import Placer
from scheduler.core.placement.reservations import awaited_by_others
from scheduler.core.session.gang import GangView
from scheduler.core.session.model_bounds import BoundedQueues
from scheduler.core.session.session import Session
from scheduler.core.solver.demand import ProbeDemand
from scheduler.core.solver.room import GpuRoom
from scheduler.core.solver.victims import Batch, VictimPool, VictimSequence

#: No GPU may be lost; exclusive bound.
NO_LOSS = 1e-6


class ConsolidateAction:
    """Moves pods to make room."""

    name = ActionName.CONSOLIDATION

    def run(self, session: Session, placer: Placer, report: ActionReport) -> None:
        """Search for every preemptible pending pod group; off if no victim is allowed."""
        if session.config.max_consolidation_victims != 0:
            Attempts(session, placer, report, ConsolidationRules(session)).run()


class ConsolidationRules:
    """Any preemptible pod group may be moved, none may lose its place."""

    name = ActionName.CONSOLIDATION
    may_lose = False

    def __init__(self, session: Session) -> None:
        self._session = session

    def serves(self, view: GangView) -> bool:
        """Return whether a pod group is preemptible: only those that could be victims are served."""
        return self._session.state.pod_groups.preemptible[view.pod_group]

    def failure_scope(self, view: GangView) -> int | None:
        """Count the failures of all queues; in a queue with bounds per GPU model only its own."""
        bounded = self._session.attached(BoundedQueues)
        return view.queue if bounded is not None and view.queue in bounded.leaves else None

    def begin(self, view: GangView) -> ConsolidationAttempt:
        """Return an attempt for every pod group."""
        return ConsolidationAttempt(self._session, view)


class ConsolidationAttempt:
    """The rules for one pod group."""

    def __init__(self, session: Session, view: GangView) -> None:
        self._session = session
        self._view = view

    def may_search(self) -> bool:
        """Return whether the whole cluster has as many GPUs, and as much GPU memory, free as are requested."""
        tasks, nodes = self._session.state.tasks, self._session.state.nodes
        classes = [tasks.task_class[task] for task in self._view.next_chunk(include_evicted=True)]
        gpus = sum(task_class.gpu_amount + task_class.mig_units for task_class in classes)
        memory = sum(
            task_class.share_memory_mib * max(task_class.devices, 1) for task_class in classes
        )
        if gpus <= 0 and memory <= 0:
            return True
        healthy = [
            index
            for index, node in enumerate(nodes.inputs)
            if node.ready and not node.unschedulable and not node.pressures
        ]
        room = GpuRoom.of(self._session).gpus
        free_gpus = float(sum(room[index] for index in healthy))
        free_memory = sum(float(room[index]) * nodes.gpu_memory[index] for index in healthy)
        return free_gpus + 1e-9 >= gpus and free_memory + 1e-9 >= memory

    def victims(self, pool: VictimPool, passed_over: frozenset[int]) -> VictimSequence:
        """Take from every queue, at most the configured number of pod groups.

        KAI draws one more than that, at random; we take the first ones in eviction order. A pod group whose end a
        reservation counts on stays: once moved it would run anew.
        """
        staying = awaited_by_others(self._session, self._view.pod_group) | {self._view.pod_group}
        return VictimSequence(
            self._session,
            pool,
            pool.leaves,
            lambda view: view.pod_group not in staying,
            most_groups=self._session.config.max_consolidation_victims,
            passed_over=passed_over,
        )

    def takeable(self, batches: Sequence[Batch]) -> float:
        """Allow no loss."""
        del batches
        return NO_LOSS

    def accepts(self, demand: ProbeDemand, victims: Mapping[int, Sequence[int]]) -> bool:
        """Return whether every victim has a place again."""
        del demand
        status = self._session.state.tasks.status
        return all(
            status[task] != TaskStatus.RELEASING for tasks in victims.values() for task in tasks
        )

    def reason(self, victim: int, gang_size: int) -> EvictReason:
        """Name the pod group that room is made for."""
        del victim
        return evict_reason(self._session, ActionName.CONSOLIDATION, self._view, gang_size)
