"""Who sits near whom: how many tasks match, or own, an inter-pod term in each topology domain.

Kubernetes asks of every pair of pods and nodes; here every distinct term has one counter per domain of
its topology key, kept in step by the journal. A counter knows two numbers: tasks that stay, and tasks
that were leaving already when the cycle began. Tasks evicted in this cycle count as gone, since the place
they leave can only be nominated. Leaving ones do not forbid a node either, but whoever wants their place
has to wait for it (`must_wait`), so nothing is bound beside a pod it must not meet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

import numpy as np

from scheduler.core.arrays import Bools, Floats, Ints
from scheduler.core.cluster.classes import TaskClass
from scheduler.core.cluster.constraints import PodTerm, TaskConstraints
from scheduler.core.cluster.inputs import NodeInput
from scheduler.core.cluster.matching import matches_selector
from scheduler.core.cluster.state import ClusterState
from scheduler.core.cluster.status import ACTIVE_USED, TaskStatus
from scheduler.core.cluster.tasks import NOWHERE
from scheduler.core.session.session import Session


class Wish(Enum):
    """The four kinds of inter-pod terms of a task."""

    AFFINITY = "affinity"
    ANTI_AFFINITY = "anti-affinity"
    PREFERRED = "preferred"
    PREFERRED_ANTI = "preferred-anti"


def terms_of(constraints: TaskConstraints, wish: Wish) -> tuple[PodTerm, ...]:
    """Return the terms of one kind."""
    match wish:
        case Wish.AFFINITY:
            return constraints.pod_affinity
        case Wish.ANTI_AFFINITY:
            return constraints.pod_anti_affinity
        case Wish.PREFERRED:
            return constraints.preferred_pod_affinity
        case Wish.PREFERRED_ANTI:
            return constraints.preferred_pod_anti_affinity


@dataclass(frozen=True, slots=True)
class OwnedTerm:
    """A term with the namespace of those who have it, which is its default scope."""

    term: PodTerm
    namespace: str

    def matches(
        self,
        namespace: str,
        labels: Mapping[str, str],
        namespaces: Mapping[str, Mapping[str, str]],
    ) -> bool:
        """Tell whether a pod of some namespace and labels is meant."""
        term = self.term
        if not term.namespaces and term.namespace_selector is None:
            in_scope = namespace == self.namespace
        else:
            in_scope = namespace in term.namespaces or (
                term.namespace_selector is not None
                and matches_selector(namespaces.get(namespace, {}), term.namespace_selector)
            )
        return in_scope and matches_selector(labels, term.selector)


class Counter:
    """Tasks per domain of one topology key; domain of a node without the key: the last, always 0."""

    __slots__ = ("domain_of", "domains", "leaving", "staying")

    def __init__(self, domain_of: list[int], domain_count: int) -> None:
        self.domain_of = domain_of
        self.domains: Ints = np.array(domain_of, dtype=np.int64)
        self.staying = [0.0] * (domain_count + 1)
        self.leaving = [0.0] * (domain_count + 1)

    def per_node(self) -> Floats:
        """Return shape (nodes,): how many staying tasks share the node's domain."""
        return np.array(self.staying)[self.domains]

    def near(self, node: int) -> float:
        """Return how many staying tasks share the domain of one node."""
        return self.staying[self.domain_of[node]]

    def leaving_near(self, node: int) -> float:
        """Return how many leaving tasks share the domain of one node."""
        return self.leaving[self.domain_of[node]]

    def has_domain(self, node: int) -> bool:
        """Tell whether the node carries the topology key."""
        return self.domain_of[node] < len(self.staying) - 1

    def has_domains(self) -> Bools:
        """Return shape (nodes,): which nodes carry the topology key."""
        carries: Bools = self.domains < len(self.staying) - 1
        return carries

    @property
    def is_empty(self) -> bool:
        """Tell whether no task is counted anywhere."""
        return not any(self.staying)


class Neighbours:
    """All counters of a session; a listener of every placement and eviction."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._keys: dict[str, tuple[list[int], int]] = {}
        #: Tasks that match all of some terms (usually one), per topology key.
        self._matching: dict[tuple[tuple[OwnedTerm, ...], str], Counter] = {}
        #: Tasks that have a term, per kind.
        self._owners: dict[tuple[Wish, OwnedTerm], Counter] = {}
        self._counters_of_task: dict[tuple[int, int], tuple[Counter, ...]] = {}
        self._owners_meaning: dict[tuple[Wish, int, int], tuple[tuple[PodTerm, Counter], ...]] = {}
        self.has_terms = self._register()
        if self.has_terms:
            self._count_placed()

    # --------------------------------------------------------------------------------- questions

    def matching_all(self, task_class: TaskClass, wish: Wish) -> list[Counter]:
        """Return, for each term of a class, the counter of tasks that match all terms together."""
        owned = self._owned(task_class, wish)
        return [self._matching[owned, one.term.topology_key] for one in owned]

    def matching_each(self, task_class: TaskClass, wish: Wish) -> list[tuple[PodTerm, Counter]]:
        """Return each term of a class with the counter of tasks that match it."""
        return [
            (one.term, self._matching[(one,), one.term.topology_key])
            for one in self._owned(task_class, wish)
        ]

    def owners_meaning(self, task: int, wish: Wish) -> tuple[tuple[PodTerm, Counter], ...]:
        """Return the terms of others that mean this task, with the counters of their owners."""
        key = (wish, *self._identity(task))
        found = self._owners_meaning.get(key)
        if found is None:
            found = self._owners_meaning[key] = tuple(
                (owned.term, counter)
                for (kind, owned), counter in self._owners.items()
                if kind is wish and self._means(owned, task)
            )
        return found

    def means_itself(self, task: int, task_class: TaskClass) -> bool:
        """Tell whether a task matches all of its own affinity terms."""
        return all(self._means(owned, task) for owned in self._owned(task_class, Wish.AFFINITY))

    # --------------------------------------------------------------------------------- listening

    def concerns(self, task_class: TaskClass) -> bool:
        """Follow every task: labels, not classes, decide who is counted."""
        del task_class
        return True

    def placed(self, task: int, node: int) -> None:
        """Count a task that comes to a node."""
        self._add(task, node, 1.0)

    def left(self, task: int, node: int) -> None:
        """Stop counting a task that was evicted."""
        self._add(task, node, -1.0)

    def _add(self, task: int, node: int, amount: float) -> None:
        journal = self._state.journal
        for counter in self._counters(task):
            domain = counter.domain_of[node]
            if domain < len(counter.staying) - 1:
                journal.put(counter.staying, domain, counter.staying[domain] + amount)

    # ---------------------------------------------------------------------------------- building

    def _register(self) -> bool:
        for task_class in self._state.classes.classes:
            for wish in Wish:
                owned = self._owned(task_class, wish)
                for one in owned:
                    self._matching.setdefault(
                        ((one,), one.term.topology_key), self._counter(one.term.topology_key)
                    )
                    self._owners.setdefault((wish, one), self._counter(one.term.topology_key))
                    if wish is Wish.AFFINITY and len(owned) > 1:
                        self._matching.setdefault(
                            (owned, one.term.topology_key), self._counter(one.term.topology_key)
                        )
        return bool(self._matching)

    def _owned(self, task_class: TaskClass, wish: Wish) -> tuple[OwnedTerm, ...]:
        return tuple(
            OwnedTerm(term, task_class.namespace) for term in terms_of(task_class.constraints, wish)
        )

    def _counter(self, topology_key: str) -> Counter:
        found = self._keys.get(topology_key)
        if found is None:
            found = self._keys[topology_key] = _domains(topology_key, self._state.nodes.inputs)
        return Counter(*found)

    def _count_placed(self) -> None:
        tasks = self._state.tasks
        for task, node in enumerate(tasks.node):
            if node == NOWHERE or not ACTIVE_USED[tasks.status[task]]:
                continue
            is_leaving = tasks.status[task] == TaskStatus.RELEASING
            for counter in self._counters(task):
                domain = counter.domain_of[node]
                if domain < len(counter.staying) - 1:
                    (counter.leaving if is_leaving else counter.staying)[domain] += 1

    def _counters(self, task: int) -> tuple[Counter, ...]:
        key = self._identity(task)
        found = self._counters_of_task.get(key)
        if found is None:
            task_class = self._state.tasks.task_class[task]
            mine = {(wish, one) for wish in Wish for one in self._owned(task_class, wish)}
            found = self._counters_of_task[key] = (
                *(
                    counter
                    for (owned, _), counter in self._matching.items()
                    if all(self._means(one, task) for one in owned)
                ),
                *(counter for owner, counter in self._owners.items() if owner in mine),
            )
        return found

    def _identity(self, task: int) -> tuple[int, int]:
        """Tasks of one class with the same label mapping are alike; producers share mappings."""
        tasks = self._state.tasks
        return tasks.task_class[task].index, id(tasks.inputs[task].labels)

    def _means(self, owned: OwnedTerm, task: int) -> bool:
        given = self._state.tasks.inputs[task]
        return owned.matches(given.namespace, given.labels, self._state.cluster_input.namespaces)


def _domains(topology_key: str, nodes: list[NodeInput]) -> tuple[list[int], int]:
    index_of: dict[str, int] = {}
    for node in nodes:
        value = node.labels.get(topology_key)
        if value is not None:
            index_of.setdefault(value, len(index_of))
    last = len(index_of)
    return [
        index_of.get(node.labels.get(topology_key, ""), last)
        if topology_key in node.labels
        else last
        for node in nodes
    ], last


def neighbours_of(session: Session) -> Neighbours:
    """Return the counters of a session, made and hooked up when the first plugin asks."""
    neighbours = session.attached(Neighbours)
    if neighbours is None:
        neighbours = session.attach(Neighbours(session.state))
        if neighbours.has_terms:
            session.hooks.listeners.append(neighbours)
    return neighbours
