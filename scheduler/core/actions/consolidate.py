"""Consolidation: move running tasks closer together so that a preemptible pod group fits.

Nobody may lose a place: a trial counts only if every task that had to go found another one. Quotas
and fairness of victims are not asked, since they keep what they hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scheduler.core.actions.attempts import Attempts, evict_reason
from scheduler.core.cluster.status import TaskStatus
from scheduler.core.decisions import ActionName, ActionReport, EvictReason
from scheduler.core.placement.place import Placer
from scheduler.core.session.gang import GangView
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
        self._view: GangView | None = None

    def asks(self, view: GangView) -> bool:
        """Serve only pod groups that could be victims themselves."""
        return self._session.state.pod_groups.preemptible[view.pod_group]

    def scope(self, view: GangView) -> object:
        """Compare with failures of all queues."""
        del view
        return None

    def begin(self, view: GangView) -> bool:
        """Nothing stands in the way."""
        self._view = view
        return True

    def may_search(self, view: GangView) -> bool:
        """Ask first whether the cluster has as many GPUs (and as much GPU memory) free at all."""
        tasks, nodes = self._session.state.tasks, self._session.state.nodes
        classes = [tasks.task_class[task] for task in view.next_chunk(include_evicted=True)]
        gpus = sum(one.gpu_amount + one.mig_units for one in classes)
        memory = sum(one.share_memory_mib * max(one.devices, 1) for one in classes)
        if gpus <= 0 and memory <= 0:
            return True
        healthy = [
            index
            for index, given in enumerate(nodes.inputs)
            if given.ready and not given.unschedulable and not given.pressures
        ]
        room = GpuRoom.of(self._session).gpus
        free_gpus = float(sum(room[index] for index in healthy))
        free_memory = sum(float(room[index]) * nodes.gpu_memory[index] for index in healthy)
        return free_gpus + 1e-9 >= gpus and free_memory + 1e-9 >= memory

    def victims(self, pool: VictimPool, passed_over: frozenset[int]) -> VictimSequence:
        """Take from every queue, at most the configured number of pod groups.

        KAI draws one more than that, at random; we take the first ones in the order of loss.
        """
        asking = self._view
        return VictimSequence(
            self._session,
            pool,
            pool.leaves,
            lambda view: asking is None or view.pod_group != asking.pod_group,
            most_groups=self._session.config.max_consolidation_victims,
            passed_over=passed_over,
        )

    def takeable(self, batches: Sequence[Batch]) -> float:
        """Nothing may be lost."""
        del batches
        return NO_LOSS

    def accepts(self, demand: ProbeDemand, victims: Mapping[int, Sequence[int]]) -> bool:
        """Every victim has a place again."""
        del demand
        status = self._session.state.tasks.status
        return all(
            status[task] != TaskStatus.RELEASING for tasks in victims.values() for task in tasks
        )

    def reason(self, victim: int, gang_size: int) -> EvictReason:
        """Name who the room is made for."""
        del victim
        return evict_reason(self._session, self.name, self._view, gang_size)
