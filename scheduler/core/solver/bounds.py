"""Necessary conditions for the success of a search or a trial, checked before it is run.

A search or trial that misses one cannot succeed, so skipping it changes no decision and only saves time.
Where a figure would not be an upper bound (shared devices, device claims) nothing is skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from scheduler.core.arrays import TOLERANCE, Bools, Floats, Ints
from scheduler.core.cluster.axis import CPU_ROW, GPU_ROW, MEMORY_ROW, PODS_ROW
from scheduler.core.cluster.classes import TaskClass
from scheduler.core.cluster.constraints import PodTerm
from scheduler.core.cluster.podgroups import SubgroupNode
from scheduler.core.placement.rules import ClassRules
from scheduler.core.session.session import Session
from scheduler.core.solver.demand import ProbeDemand
from scheduler.core.solver.filters import DomainGpusFilter
from scheduler.core.solver.victims import Batch

#: Relative tolerance for float noise.
SLACK = 1e-6
#: The free GPUs of a node are rounded to hundredths: each shared device may have this much more.
SHARE_NOISE = 0.02
#: Start value of a minimum: more places than any node has.
MANY = 1 << 30


class Places:
    """Upper bounds on how many tasks of a demand fit onto each node once victims are evicted for good.

    A place is room for one task, in every resource that its class needs.

    Parameters
    ----------
    settled : victims of earlier probes, which are evicted in any case
    may_lose : whether victims may end without a place

    Attributes
    ----------
    is_known : False where the figures would not bound what a trial finds: tasks of several classes,
        requests for shared devices, device claims, rules that change what must be free
    allowed_nodes : shape (nodes,); which nodes the rules of the class allow at all
    """

    __slots__ = (
        "_base",
        "_freed_by_class",
        "_may_lose",
        "_nodes",
        "_rows",
        "_settled",
        "_settled_needing_place",
        "_task_class",
        "_tasks",
        "allowed_nodes",
        "is_known",
    )

    def __init__(
        self,
        session: Session,
        rules: ClassRules,
        demand: ProbeDemand,
        settled: Sequence[int] = (),
        *,
        may_lose: bool = True,
    ) -> None:
        tasks = session.state.tasks
        task_class = tasks.task_class[demand.tasks[0]]
        self._tasks = tasks
        self._task_class = task_class
        self._may_lose = may_lose
        self._nodes = session.state.nodes
        self.is_known = not (
            task_class.is_shared
            or task_class.is_dra
            or task_class.is_legacy_mig
            or rules.fit_rules
            or not demand.is_one_class
        )
        self.allowed_nodes: Bools = rules.static_mask
        self._rows = tuple((row, need) for row, need in task_class.must_be_free if need > 0)
        #: Class index -> the largest amounts that evictions free on one node.
        self._freed_by_class: dict[int, tuple[float, ...]] = {}
        self._settled = self._freed(settled) if self.is_known else {}
        self._settled_needing_place = self._needing_place(settled)
        self._base: Ints | None = None

    def count(self, victims: Iterable[int], needed: int) -> int:
        """Return how many places there are if these victims leave too; counting may stop at `needed`."""
        freed = self._freed(victims)
        places_of = {node: self._places_on(node, amounts) for node, amounts in freed.items()}
        most = max(places_of.values(), default=0)
        if most >= needed:
            return most
        base = self._base_places()
        return int(base.sum()) + sum(places - int(base[node]) for node, places in places_of.items())

    def needed(self, demand: ProbeDemand, victims: Sequence[int]) -> int:
        """Return how many places a trial needs: for the demand, and for victims of its class that must keep running."""
        return len(demand.tasks) + self._settled_needing_place + self._needing_place(victims)

    def _needing_place(self, victims: Sequence[int]) -> int:
        """Return how many of these victims need a place of the demand's class again."""
        if self._may_lose:
            return 0
        class_of = self._tasks.task_class
        return sum(class_of[task] is self._task_class for task in victims)

    def by_node(self, victims: Iterable[int]) -> Ints:
        """Return shape (nodes,): the places on each node if these victims leave too."""
        places = self._base_places().copy()
        for node, amounts in self._freed(victims).items():
            places[node] = self._places_on(node, amounts)
        return places

    def _base_places(self) -> Ints:
        """Return shape (nodes,): the places on each node if only the settled victims leave."""
        if self._base is None:
            nodes = self._nodes
            places = np.full(len(nodes), np.inf)
            for row, need in self._rows:
                free = np.array(nodes.idle_rows[row]) + np.array(nodes.releasing_rows[row])
                places = np.minimum(places, np.floor((free + SLACK * need) / need))
            places = np.where(self.allowed_nodes, np.maximum(places, 0), 0)
            self._base = places.astype(np.int64)
            for node in self._settled:
                self._base[node] = self._places_on(node, None)
        return self._base

    def _places_on(self, node: int, freed: list[float] | None) -> int:
        """Return the places on one node if the settled victims leave and `freed` is freed too."""
        if not self.allowed_nodes[node]:
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
        """Return node -> the amounts that victims free there, in the order of `_rows`."""
        node_of, class_of = self._tasks.node, self._tasks.task_class
        freed: dict[int, list[float]] = {}
        for task in victims:
            node = node_of[task]
            if node < 0:
                continue
            amounts = self._most_freed(class_of[task])
            sums = freed.get(node)
            if sums is None:
                freed[node] = list(amounts)
            else:
                for index, amount in enumerate(amounts):
                    sums[index] += amount
        return freed

    def _most_freed(self, task_class: TaskClass) -> tuple[float, ...]:
        """Return the most that a victim frees, in the order of `_rows`; a shared device counts as a whole one."""
        amounts = self._freed_by_class.get(task_class.index)
        if amounts is None:
            charge = dict(task_class.charge)
            if task_class.is_shared:
                charge[GPU_ROW] = float(task_class.devices)
                charge[PODS_ROW] += task_class.devices
            amounts = tuple(charge.get(row, 0.0) for row, _ in self._rows)
            self._freed_by_class[task_class.index] = amounts
        return amounts


def may_fit(places: Places, demand: ProbeDemand, victims: Sequence[int]) -> bool:
    """Return whether evicting these victims, besides the settled ones, could make room for all tasks that need a place."""
    if not places.is_known:
        return True
    needed = places.needed(demand, victims)
    return places.count(victims, needed) >= needed


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
    places : for the whole chunk, without settled victims
    demand : the whole chunk
    room : shape (nodes,); GPUs idle or being freed
    batches : every batch that could be taken
    takeable : exclusive upper bound on the GPUs that the action's rules allow to evict together
    """
    if places.is_known:
        most = places.by_node(task for batch in batches for task in batch.tasks)
        if int(most.sum()) < len(demand.tasks):
            return True
        if _needs_more_domains(session, demand, np.flatnonzero(most > 0).tolist()):
            return True
    if not demand.gpus_per_task or any(session.state.nodes.shared_gpus):
        return False
    missing = demand.total_gpus - float(np.maximum(room, 0).sum())
    # If enough GPUs are idle in total, it may be enough to move pods; `takeable` does not bound that.
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
    """Return whether moving pods cannot help, because all nodes that they could move to are full too.

    The demand may go to some nodes, what runs there may move to some more, and so on. If these nodes
    together have less room than the demand asks for, some pod must lose its place.
    """
    state = session.state
    task_class = state.tasks.task_class[demand.tasks[0]]
    reachable: Bools = np.zeros(len(state.nodes), dtype=np.bool_)
    for task in demand.tasks:
        reachable |= rules_of(task).static_mask
    # task class -> the nodes that its victims are on, and the nodes that they may move to
    unreached: dict[int, tuple[Bools, Bools]] = {}
    for batch in batches:
        for task, node in zip(batch.tasks, batch.nodes, strict=True):
            index = state.tasks.task_class[task].index
            if index not in unreached:
                on: Bools = np.zeros(len(state.nodes), dtype=np.bool_)
                unreached[index] = (on, rules_of(task).static_mask)
            if node >= 0:
                unreached[index][0][node] = True
    has_grown = True
    while has_grown:
        reached = [index for index, (on, _) in unreached.items() if (on & reachable).any()]
        for index in reached:
            reachable |= unreached.pop(index)[1]
        has_grown = bool(reached)
    for row in (CPU_ROW, MEMORY_ROW, GPU_ROW):
        requested = sum(state.tasks.task_class[task].vector[row] for task in demand.tasks)
        if row == GPU_ROW:
            shared = np.array([len(groups) for groups in state.nodes.shared_gpus])
            free = np.maximum(room, 0) + SHARE_NOISE * shared
        else:
            free = np.maximum(state.nodes.idle[row] + state.nodes.releasing[row], 0)
        if requested > float(free[reachable].sum()) * (1 + SLACK):
            # GPUs requested through device claims are not bounded by the free GPUs of nodes.
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
