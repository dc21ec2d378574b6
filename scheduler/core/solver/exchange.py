"""One task takes the place of one victim: the trial with which most searches end, without the search around it.

When a queue takes back its share of a full cluster, thousands of pod groups of one task each get the place of the
first victim in the order of eviction. `Exchange` makes that one trial as the first generator would propose it. It
leaves out the filters and bounds, which such a victim passes, and the turn of the victim where it finds no place.
Wherever anything else could happen it changes nothing and returns None, and the search decides.
"""

from __future__ import annotations

from scheduler.core.arrays import Floats
from scheduler.core.cluster.tasks import NOWHERE
from scheduler.core.decisions import SOLVED, ActionName, SearchReport
from scheduler.core.placement.place import Placer
from scheduler.core.session.gang import GangView
from scheduler.core.session.session import Session
from scheduler.core.session.statement import Statement
from scheduler.core.solver.budget import GroupBudget, SearchResult
from scheduler.core.solver.demand import ProbeDemand, tasks_fitting
from scheduler.core.solver.filters import NodeAffinityFilter
from scheduler.core.solver.generators import GENERATORS, NODE_LOCAL_GREEDY
from scheduler.core.solver.room import GpuRoom
from scheduler.core.solver.search import SearchOutcome, SearchTask
from scheduler.core.solver.turns import PendingTable, goes_first
from scheduler.core.solver.usefulness import UsefulVictims
from scheduler.core.solver.victims import Batch


class Exchange:
    """Tries the first victim for pod groups of one task; made once for an action."""

    def __init__(
        self,
        session: Session,
        placer: Placer,
        pending: PendingTable,
        action: ActionName,
        report: SearchReport,
    ) -> None:
        self._session = session
        self._placer = placer
        self._pending = pending
        self._action = action
        self._report = report
        generators = session.hooks.generators
        #: Whether a search would try the first victim alone, before anything else.
        self._is_possible = (
            bool(generators)
            and GENERATORS[generators[0]][0] == NODE_LOCAL_GREEDY
            and not session.disruptions
        )

    def run(self, search_task: SearchTask, budget: GroupBudget) -> SearchOutcome | None:
        """Return how the search would end, with an open statement; None if a search must find out."""
        if not self._is_possible or not search_task.may_lose or not self._is_lone(search_task.view):
            return None
        (task,) = search_task.view.next_chunk(include_evicted=True)
        if self._placer.unchecked_candidates(task) is None:
            return None
        demand = ProbeDemand(self._session, search_task.view, (task,))
        if not demand.gpus_per_task:
            return None
        batch = search_task.make_sequence(frozenset()).get(0)
        if batch is None or not self._is_plain(batch) or not self._is_useful(demand, batch):
            return None
        room = GpuRoom.of(self._session).gpus
        has_room = self._has_room(demand, room)
        if not has_room and not _fits(demand, float(room[batch.nodes[0]]) + batch.gpus[0]):
            return None
        outcome = self._try(search_task, demand, batch, budget)
        if outcome is not None and not has_room:
            self._report.filtered += 1  # the filters of a search would have refused the empty set
        return outcome

    def _try(
        self, search_task: SearchTask, demand: ProbeDemand, batch: Batch, budget: GroupBudget
    ) -> SearchOutcome | None:
        """Evict the victim, and nominate the task to its place; undo it if the victim has its turn first or a place."""
        session = self._session
        budget.start_generator(NODE_LOCAL_GREEDY)
        if budget.is_exhausted or budget.is_generator_exhausted:
            return None
        started = session.clock()
        reason = search_task.reason_of(batch.tasks[0], 1)
        statement = Statement(session, self._action)
        statement.evict(batch.tasks[0], reason)
        if (
            goes_first(session, self._pending, demand.view, session.view(batch.pod_group))
            and self._nominate(statement, demand, batch.nodes[0])
            and not self._has_place(batch.tasks[0])
            and search_task.accepts(demand, {batch.pod_group: batch.tasks})
        ):
            self._report.count_emitted(NODE_LOCAL_GREEDY)
            self._report.trials.append((NODE_LOCAL_GREEDY, SOLVED, session.clock() - started))
            return SearchOutcome(SearchResult.SOLVED, statement, batch.tasks)
        statement.discard()
        return None

    def _nominate(self, statement: Statement, demand: ProbeDemand, node: int) -> bool:
        """Place the task if the node of the victim is the best for it; return whether it is."""
        task = demand.tasks[0]
        if self._placer.refuse_chunk(demand.view, demand.tasks) is not None:
            return False
        candidates = self._placer.unchecked_candidates(task)
        if candidates is None or candidates.best() != node:
            return False
        statement.nominate(task, node)
        return True

    def _has_place(self, victim: int) -> bool:
        """Return whether some node takes a victim."""
        candidates = self._placer.unchecked_candidates(victim)
        return candidates is None or candidates.best() >= 0

    # ------------------------------------------------------------------------- what it is for

    def _is_lone(self, view: GangView) -> bool:
        """Return whether a pod group consists of one task, without subgroups and topology constraints."""
        return (
            view.only_pod_set >= 0
            and self._session.state.pod_groups.task_count[view.pod_group] == 1
            and view.minimum(view.only_pod_set) <= 1
            and len(view.next_chunk(include_evicted=True)) == 1
        )

    def _is_plain(self, batch: Batch) -> bool:
        """Return whether a batch is the only task of a plain pod group, and frees whole GPUs of a node."""
        state, pod_groups = self._session.state, self._session.state.pod_groups
        return (
            pod_groups.task_count[batch.pod_group] == 1
            and pod_groups.only_pod_set[batch.pod_group] >= 0
            and batch.nodes[0] != NOWHERE
            and batch.gpus[0] > 0
            and not state.tasks.task_class[batch.tasks[0]].is_shared
            and self._placer.unchecked_candidates(batch.tasks[0]) is not None
        )

    def _is_useful(self, demand: ProbeDemand, batch: Batch) -> bool:
        """Return whether a search would propose a victim; see `usefulness.py`."""
        task = demand.tasks[0]
        rules = self._placer.rules(self._session.state.tasks.task_class[task], task)
        if not rules.static_mask[batch.nodes[0]]:
            return False
        if not self._session.state.axis.mig_rows:
            return True
        return UsefulVictims(self._session, lambda _: rules, demand)(batch)

    def _has_room(self, demand: ProbeDemand, room: Floats) -> bool:
        """Return whether the filters would pass a task without any eviction."""
        affinity = NodeAffinityFilter.make(self._session, demand, room)
        if affinity is not None and not affinity.passes():
            return False
        return _fits(demand, float(room.max()))


def _fits(demand: ProbeDemand, gpus: float) -> bool:
    """Return whether so many GPUs of a node are enough for the task."""
    return tasks_fitting(gpus, demand.gpus_per_task) >= 1
