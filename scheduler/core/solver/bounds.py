"""Conditions that any successful search or trial must meet; where one fails, it is not run at all.

Each bound is necessary for success, so refusing by it never changes what is decided; it only saves
trials that cannot succeed. Where a figure would not be an upper bound (shared devices, device claims)
the trial is run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from scheduler.core.arrays import TOLERANCE, Bools, Floats, Ints
from scheduler.core.cluster.axis import CPU_ROW, GPU_ROW, MEMORY_ROW
from scheduler.core.cluster.classes import TaskClass
from scheduler.core.cluster.constraints import PodTerm
from scheduler.core.cluster.podgroups import SubgroupNode
from scheduler.core.placement.rules import ClassRules
from scheduler.core.session.session import Session
from scheduler.core.solver.demand import ProbeDemand
from scheduler.core.solver.filters import DomainGpusFilter
from scheduler.core.solver.victims import Batch

#: Forgives float noise, as a part of what one task needs.
SLACK = 1e-6
#: How much of one shared device rounding to hundredths may hide.
SHARE_NOISE = 0.02
#: More places than any node has.
MANY = 1 << 30


class Places:
    """How many tasks of a demand nodes could take if victims leave and none of them comes back.

    Counted for demands of one class, in every resource the class needs, on the nodes its rules allow
    at all; `is_known` is False where the figures would not bound what a trial finds (requests for shared
    devices, device claims, rules that change what must be free).
    """

    __slots__ = (
        "_amounts_of",
        "_base",
        "_nodes",
        "_rows",
        "_settled",
        "_tasks",
        "is_allowed",
        "is_known",
    )

    def __init__(
        self, session: Session, rules: ClassRules, demand: ProbeDemand, settled: Iterable[int] = ()
    ) -> None:
        tasks = session.state.tasks
        task_class = tasks.task_class[demand.tasks[0]]
        self._tasks = tasks
        self._nodes = session.state.nodes
        self.is_known = not (
            task_class.is_shared
            or task_class.is_dra
            or task_class.is_legacy_mig
            or rules.fit_rules
            or any(tasks.task_class[task] is not task_class for task in demand.tasks)
        )
        self.is_allowed: Bools = rules.static_mask
        self._rows = tuple((row, need) for row, need in task_class.must_be_free if need > 0)
        self._amounts_of: dict[int, tuple[float, ...]] = {}
        self._settled = self._freed(settled) if self.is_known else {}
        self._base: Ints | None = None

    def add_up(self, victims: Iterable[int], wanted: int) -> int:
        """Count the places if these victims left too; counting may stop at `wanted`."""
        freed = self._freed(victims)
        alone = {node: self._on(node, amounts) for node, amounts in freed.items()}
        most = max(alone.values(), default=0)
        if most >= wanted:
            return most
        base = self._base_places()
        return int(base.sum()) + sum(places - int(base[node]) for node, places in alone.items())

    def if_all_gone(self, victims: Iterable[int]) -> Ints:
        """Return shape (nodes,): the places if all these victims left."""
        places = self._base_places().copy()
        for node, amounts in self._freed(victims).items():
            places[node] = self._on(node, amounts)
        return places

    def _base_places(self) -> Ints:
        if self._base is None:
            nodes = self._nodes
            places = np.full(len(nodes), np.inf)
            for row, need in self._rows:
                free = np.array(nodes.idle_rows[row]) + np.array(nodes.releasing_rows[row])
                places = np.minimum(places, np.floor((free + SLACK * need) / need))
            places = np.where(self.is_allowed, np.maximum(places, 0), 0)
            self._base = places.astype(np.int64)
            for node in self._settled:
                self._base[node] = self._on(node, None)
        return self._base

    def _on(self, node: int, freed: list[float] | None) -> int:
        """Count the places of one node without the settled victims, and with `freed` freed too."""
        if not self.is_allowed[node]:
            return 0
        nodes, settled = self._nodes, self._settled.get(node)
        places = MANY
        for index, (row, need) in enumerate(self._rows):
            free = nodes.idle_rows[row][node] + nodes.releasing_rows[row][node]
            if settled is not None:
                free += settled[index]
            if freed is not None:
                free += freed[index]
            places = min(places, int((free + SLACK * need) // need))
        return max(places, 0)

    def _freed(self, victims: Iterable[int]) -> dict[int, list[float]]:
        """Return per node what victims free there, in the order of the rows."""
        node_of, class_of = self._tasks.node, self._tasks.task_class
        freed: dict[int, list[float]] = {}
        for task in victims:
            node = node_of[task]
            if node < 0:
                continue
            amounts = self._amounts(class_of[task])
            sums = freed.get(node)
            if sums is None:
                freed[node] = list(amounts)
            else:
                for index, amount in enumerate(amounts):
                    sums[index] += amount
        return freed

    def _amounts(self, task_class: TaskClass) -> tuple[float, ...]:
        """Return what a victim frees at most; a shared device counts as a whole one."""
        amounts = self._amounts_of.get(task_class.index)
        if amounts is None:
            held = dict(task_class.charge)
            if task_class.is_shared:
                held[GPU_ROW] = float(task_class.devices)
            amounts = tuple(held.get(row, 0.0) for row, _ in self._rows)
            self._amounts_of[task_class.index] = amounts
        return amounts


def may_fit(places: Places, demand: ProbeDemand, victims: Iterable[int]) -> bool:
    """Return whether evicting these (besides settled victims) could make room for all tasks."""
    wanted = len(demand.tasks)
    return not places.is_known or places.add_up(victims, wanted) >= wanted


def is_hopeless(
    session: Session,
    places: Places,
    demand: ProbeDemand,
    room: Floats,
    batches: Sequence[Batch],
    takeable: float,
) -> bool:
    """Return whether not even all victims together could make room for a demand.

    Parameters
    ----------
    places : of the whole chunk, nothing settled
    demand : the whole chunk
    room : shape (nodes,); GPUs idle or being freed
    batches : every batch that could be taken
    takeable : exclusive upper bound on the GPUs that the action's rules allow to evict together
    """
    if places.is_known:
        most = places.if_all_gone(task for batch in batches for task in batch.tasks)
        if int(most.sum()) < len(demand.tasks):
            return True
        if _needs_more_domains(session, demand, np.flatnonzero(most > 0).tolist()):
            return True
    if not demand.unit or any(session.state.nodes.shared_gpus):
        return False
    missing = demand.total_gpus - float(np.maximum(room, 0).sum())
    # Where nothing is missing, victims need only move, or not even that.
    if missing > TOLERANCE and missing >= takeable - 1e-9:
        return True
    gpus = room.copy()
    for batch in batches:
        for node, freed in zip(batch.nodes, batch.gpus, strict=True):
            if node >= 0:
                gpus[node] += freed
    domains = DomainGpusFilter.make(session, demand, gpus)
    return domains is not None and not domains.passes()


def is_shut_in(
    session: Session,
    rules_of: Callable[[int], ClassRules],
    demand: ProbeDemand,
    room: Floats,
    batches: Sequence[Batch],
) -> bool:
    """Return whether moving pods cannot help, because the nodes they could move to are as full.

    The demand may go to some nodes, what runs there may move to some more, and so on. If these nodes
    together have less room than the demand asks for, some pod must lose its place.
    """
    state = session.state
    task_class = state.tasks.task_class[demand.tasks[0]]
    inside: Bools = np.zeros(len(state.nodes), dtype=np.bool_)
    for task in demand.tasks:
        inside |= rules_of(task).static_mask
    waiting: dict[int, tuple[Bools, Bools]] = {}
    for batch in batches:
        for task, node in zip(batch.tasks, batch.nodes, strict=True):
            index = state.tasks.task_class[task].index
            if index not in waiting:
                on: Bools = np.zeros(len(state.nodes), dtype=np.bool_)
                waiting[index] = (on, rules_of(task).static_mask)
            if node >= 0:
                waiting[index][0][node] = True
    grows = True
    while grows:
        reached = [index for index, (on, _) in waiting.items() if (on & inside).any()]
        for index in reached:
            inside |= waiting.pop(index)[1]
        grows = bool(reached)
    for row in (CPU_ROW, MEMORY_ROW, GPU_ROW):
        wanted = sum(state.tasks.task_class[task].vector[row] for task in demand.tasks)
        if row == GPU_ROW:
            shared = np.array([len(groups) for groups in state.nodes.shared_gpus])
            free = np.maximum(room, 0) + SHARE_NOISE * shared
        else:
            free = np.maximum(state.nodes.idle[row] + state.nodes.releasing[row], 0)
        if wanted > float(free[inside].sum()) * (1 + SLACK):
            return not (row == GPU_ROW and task_class.is_dra)
    return False


def _needs_more_domains(session: Session, demand: ProbeDemand, usable: Sequence[int]) -> bool:
    """Return whether tasks that keep away from each other have fewer domains than there are tasks."""
    task_class = session.state.tasks.task_class[demand.tasks[0]]
    labels = session.state.tasks.inputs[demand.tasks[0]].labels
    for term in task_class.constraints.pod_anti_affinity:
        if not _matches_itself(term, labels):
            continue
        values = [session.state.nodes.inputs[node].labels.get(term.topology_key) for node in usable]
        if None not in values and len(set(values)) < len(demand.tasks):
            return True
    return False


def _matches_itself(term: PodTerm, labels: object) -> bool:
    """Return whether the term of a task keeps away tasks with its own labels; False if unsure."""
    selector = term.selector
    if term.namespaces or term.namespace_selector or selector.nothing:
        return False
    if not isinstance(labels, dict) or not selector.expressions:
        return False
    return all(
        expression.operator == "In" and labels.get(expression.key) in expression.values
        for expression in selector.expressions
    )


def has_topology_constraint(group: SubgroupNode) -> bool:
    """Return whether any member of a tree has a topology constraint."""
    if group.topology is not None and group.topology.topology:
        return True
    return any(
        has_topology_constraint(member)
        if isinstance(member, SubgroupNode)
        else member.topology is not None and bool(member.topology.topology)
        for member in group.members
    )
