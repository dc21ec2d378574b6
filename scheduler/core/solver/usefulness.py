"""Which victims could help at all: those whose eviction frees something that the demand lacks on their node.

Useless victims do harm in a trial: once they are evicted, their queue seems to hold less than its share, so it
takes the useful places back before the evictor has its turn, and work within quota waits for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import floor

from scheduler.core.cluster.axis import GPU_ROW
from scheduler.core.cluster.classes import TaskClass
from scheduler.core.cluster.inputs import TopologyConstraint
from scheduler.core.cluster.podgroups import SubgroupNode
from scheduler.core.placement.rules import ClassRules
from scheduler.core.session.session import Session
from scheduler.core.solver.demand import ProbeDemand
from scheduler.core.solver.victims import Batch

#: Whether a batch of victims may be proposed.
BatchTest = Callable[[Batch], bool]

#: Tolerance for rounding errors: a fraction of what one task needs, or GPUs of a domain.
_SLACK = 1e-6


class UsefulVictims:
    """Tests the victims of one evictor; results are cached, and hold until the session changes.

    A victim is useful if its node may run the demand and lacks something that the victim frees. Where more
    than idle resources decides (shared devices, device claims, anti-affinity, a queue limit that is reached),
    every victim on an allowed node is useful.
    """

    def __init__(
        self, session: Session, rules_of: Callable[[int], ClassRules], demand: ProbeDemand
    ) -> None:
        self._state = session.state
        tasks = session.state.tasks
        self._task_count = len(demand.tasks)
        classes = {tasks.task_class[task].index: task for task in demand.tasks}
        self._demand_classes = [
            (tasks.task_class[task], rules_of(task)) for task in classes.values()
        ]
        self._session, self._demand = session, demand
        #: Nodes on which every victim that holds GPUs is useful; empty if the demand needs no GPUs, has
        #: several task classes, or the cluster has MIG devices.
        self._plain_nodes = (
            self._demand_classes[0][1].static_mask.tobytes()
            if demand.gpus_per_task and len(classes) == 1 and not session.state.axis.mig_rows
            else b""
        )
        self._resources_decide: bool | None = None
        self._is_useful_cache: dict[tuple[int, int], bool] = {}

    def __call__(self, batch: Batch) -> bool:
        """Return whether any victim of a batch is useful."""
        plain_nodes = self._plain_nodes
        if plain_nodes and batch.gpus[0] and plain_nodes[batch.nodes[0]]:
            return True
        return any(map(self._is_useful, batch.tasks, batch.nodes))

    def _is_useful(self, task: int, node: int) -> bool:
        if node < 0:
            return True
        if self._resources_decide is None:
            self._resources_decide = _is_within_limits(self._session, self._demand) and all(
                _resources_decide(task_class, rules) for task_class, rules in self._demand_classes
            )
        victim = self._state.tasks.task_class[task]
        key = (victim.index, node)
        is_useful = self._is_useful_cache.get(key)
        if is_useful is None:
            is_useful = self._is_useful_cache[key] = any(
                rules.static_mask[node]
                and (not self._resources_decide or self._frees_scarce(victim, task_class, node))
                for task_class, rules in self._demand_classes
            )
        return is_useful

    def _frees_scarce(self, victim: TaskClass, task_class: TaskClass, node: int) -> bool:
        """Return whether a victim frees something of which the node has too little for the demand."""
        nodes = self._state.nodes
        needs = [(row, need) for row, need in task_class.must_be_free if need > 0]
        # How many tasks of the demand the node could run if it were empty.
        max_tasks = min(
            (floor(nodes.allocatable[row, node] / need + _SLACK) for row, need in needs), default=0
        )
        max_tasks = min(max_tasks, self._task_count)
        frees = {row for row, amount in victim.charge if amount > 0}
        if victim.is_shared or victim.is_dra or victim.is_legacy_mig:
            frees.add(GPU_ROW)
        return any(
            row in frees
            and nodes.idle_rows[row][node] + nodes.releasing_rows[row][node]
            < need * (max_tasks - _SLACK)
            for row, need in needs
        )


def _resources_decide(task_class: TaskClass, rules: ClassRules) -> bool:
    """Return whether idle resources alone decide which allowed nodes can take a task."""
    return not (
        task_class.is_shared
        or task_class.is_dra
        or task_class.is_legacy_mig
        or rules.fit_rules
        or rules.node_filters
        or rules.cluster_filters
        or rules.waits
    )


def _is_within_limits(session: Session, demand: ProbeDemand) -> bool:
    """Return whether the queue may take the demand now, so that no victims are needed to get it below its limit."""
    queue = demand.view.queue
    preemptible = session.is_next_preemptible(demand.view.pod_group)
    amount = session.gate_amount(demand.tasks)
    return session.policy.refuse(queue, amount, preemptible=preemptible) is None


def domain_tests(
    session: Session, demand: ProbeDemand, batches: Sequence[Batch]
) -> Iterator[BatchTest]:
    """Yield for each domain of the level that a whole pod group requires a test for victims in it.

    The domain that has GPUs enough after the fewest batches in eviction order comes first; domains that
    never have enough are left out. So the order does not depend on the names of domains and nodes.
    """
    domain_of = _domains(session, demand.view.root)
    free_gpus: dict[object, float] = {}
    for node, domain in domain_of.items():
        free_gpus[domain] = free_gpus.get(domain, 0.0) + _free_gpus(session, node)
    tested: set[object] = set()
    for batch in batches:
        for node, gpus in zip(batch.nodes, batch.gpus, strict=True):
            if node in domain_of:
                free_gpus[domain_of[node]] += gpus
        for domain in dict.fromkeys(domain_of[n] for n in batch.nodes if n in domain_of):
            if domain not in tested and free_gpus[domain] + _SLACK >= demand.total_gpus:
                tested.add(domain)
                yield _is_in(domain_of, domain)


def _is_in(domain_of: dict[int, object], domain: object) -> BatchTest:
    """Return a test of whether some victim of a batch runs in a domain."""
    return lambda batch: any(domain_of.get(node) == domain for node in batch.nodes)


def _free_gpus(session: Session, node: int) -> float:
    """Return the idle and releasing GPUs of a node."""
    nodes = session.state.nodes
    return nodes.idle_rows[GPU_ROW][node] + nodes.releasing_rows[GPU_ROW][node]


def _domains(session: Session, root: SubgroupNode) -> dict[int, object]:
    """Return by node its domain, the labels down to the level that all tasks of a pod group must share."""
    constraint: TopologyConstraint | None = root.topology
    if (constraint is None or not constraint.required_level) and len(root.members) == 1:
        constraint = root.members[0].topology
    if constraint is None or not constraint.required_level:
        return {}
    topologies = session.state.cluster_input.topologies
    levels = next((t.levels for t in topologies if t.name == constraint.topology), ())
    if constraint.required_level not in levels:
        return {}
    levels_down = levels[: levels.index(constraint.required_level) + 1]
    domains: dict[int, object] = {}
    for node, node_input in enumerate(session.state.nodes.inputs):
        values = tuple(node_input.labels.get(level) for level in levels_down)
        if None not in values:
            domains[node] = values
    return domains
