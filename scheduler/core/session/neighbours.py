"""Inter-pod (anti-)affinity: how many tasks match, or own, an affinity term in each topology domain.

Kubernetes examines every pair of pods and nodes. Here every distinct term has one counter per domain of
its topology key, updated through the journal. A counter has two numbers: tasks that stay, and tasks that
were leaving already when the cycle began. Tasks evicted in this cycle count as gone, because a task can
only be nominated to the place that they leave. Leaving tasks do not make a node unfit either, but a task
that must be kept apart from one has to wait until it is gone (the `PlaceWait` hook), so that nothing is
bound beside a pod that it must not meet.
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


class TermKind(Enum):
    """The four kinds of affinity terms of a task."""

    AFFINITY = "affinity"
    ANTI_AFFINITY = "anti-affinity"
    PREFERRED = "preferred"
    PREFERRED_ANTI = "preferred-anti"


def terms_of(constraints: TaskConstraints, kind: TermKind) -> tuple[PodTerm, ...]:
    """Return the terms of one kind."""
    match kind:
        case TermKind.AFFINITY:
            return constraints.pod_affinity
        case TermKind.ANTI_AFFINITY:
            return constraints.pod_anti_affinity
        case TermKind.PREFERRED:
            return constraints.preferred_pod_affinity
        case TermKind.PREFERRED_ANTI:
            return constraints.preferred_pod_anti_affinity


@dataclass(frozen=True, slots=True)
class OwnedTerm:
    """An affinity term with the namespace of the tasks that have it, which is its default scope."""

    term: PodTerm
    namespace: str

    def matches(
        self,
        namespace: str,
        labels: Mapping[str, str],
        namespaces: Mapping[str, Mapping[str, str]],
    ) -> bool:
        """Return whether the term matches a pod of some namespace and labels.

        Parameters
        ----------
        namespaces : namespace -> its labels
        """
        term = self.term
        if not term.namespaces and term.namespace_selector is None:
            in_scope = namespace == self.namespace
        else:
            in_scope = namespace in term.namespaces or (
                term.namespace_selector is not None
                and matches_selector(namespaces.get(namespace, {}), term.namespace_selector)
            )
        return in_scope and matches_selector(labels, term.selector)


class DomainCounter:
    """How many tasks are in each domain of one topology key.

    Attributes
    ----------
    domain_of : node -> index of its domain
    domains : shape (nodes,); `domain_of` as an array
    no_domain : the index that nodes without the key share; the last one, its numbers stay 0
    staying, leaving : per domain, the tasks that stay, and those that were leaving before the cycle
    was_empty : whether no task was in any domain when the cycle began; leaving tasks count as present
    """

    __slots__ = ("domain_of", "domains", "leaving", "no_domain", "staying", "was_empty")

    def __init__(self, domain_of: list[int], domain_count: int) -> None:
        self.domain_of = domain_of
        self.domains: Ints = np.array(domain_of, dtype=np.int64)
        self.no_domain = domain_count
        self.staying = [0.0] * (domain_count + 1)
        self.leaving = [0.0] * (domain_count + 1)
        self.was_empty = True

    def per_node(self) -> Floats:
        """Return shape (nodes,): how many staying tasks are in the node's domain."""
        return np.array(self.staying)[self.domains]

    def near(self, node: int) -> float:
        """Return how many staying tasks are in the domain of one node."""
        return self.staying[self.domain_of[node]]

    def leaving_near(self, node: int) -> float:
        """Return how many leaving tasks are in the domain of one node."""
        return self.leaving[self.domain_of[node]]

    def has_domain(self, node: int) -> bool:
        """Return whether the node has a label with the topology key."""
        return self.domain_of[node] != self.no_domain

    def has_domains(self) -> Bools:
        """Return shape (nodes,): which nodes have a label with the topology key."""
        has_key: Bools = self.domains != self.no_domain
        return has_key

    @property
    def is_empty(self) -> bool:
        """Return whether no task stays anywhere."""
        return not any(self.staying)


class Neighbours:
    """All counters of a session; a listener of every placement and eviction.

    Attributes
    ----------
    has_terms : whether any task has an affinity term
    """

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        #: Topology key -> what `_index_domains` returns for it.
        self._domains: dict[str, tuple[list[int], int]] = {}
        #: (terms, topology key) -> counter of the tasks that match all of these terms, usually one.
        self._matching: dict[tuple[tuple[OwnedTerm, ...], str], DomainCounter] = {}
        #: (kind, term) -> counter of the tasks that have this term.
        self._owners: dict[tuple[TermKind, OwnedTerm], DomainCounter] = {}
        #: `_identity` of a task -> the counters that count it.
        self._counters_of_task: dict[tuple[int, int], tuple[DomainCounter, ...]] = {}
        #: (kind, *`_identity` of a task) -> the result of `owners_matching`.
        self._owners_matching: dict[
            tuple[TermKind, int, int], tuple[tuple[PodTerm, DomainCounter], ...]
        ] = {}
        self.has_terms = self._create_counters()
        if self.has_terms:
            self._count_placed()

    # --------------------------------------------------------------------------------- questions

    def matching_all(self, task_class: TaskClass, kind: TermKind) -> list[DomainCounter]:
        """Return for each term of a class the counter of tasks that match all of its terms."""
        terms = self._terms_of(task_class, kind)
        return [self._matching[terms, owned.term.topology_key] for owned in terms]

    def matching_each(
        self, task_class: TaskClass, kind: TermKind
    ) -> list[tuple[PodTerm, DomainCounter]]:
        """Return each term of a class with the counter of tasks that match it."""
        return [
            (owned.term, self._matching[(owned,), owned.term.topology_key])
            for owned in self._terms_of(task_class, kind)
        ]

    def owners_matching(
        self, task: int, kind: TermKind
    ) -> tuple[tuple[PodTerm, DomainCounter], ...]:
        """Return the terms of other tasks that match this task, with the counters of their owners."""
        key = (kind, *self._identity(task))
        matching = self._owners_matching.get(key)
        if matching is None:
            matching = self._owners_matching[key] = tuple(
                (owned.term, counter)
                for (owned_kind, owned), counter in self._owners.items()
                if owned_kind is kind and self._matches(owned, task)
            )
        return matching

    def matches_itself(self, task: int, task_class: TaskClass) -> bool:
        """Return whether a task matches all of its own affinity terms."""
        return all(
            self._matches(owned, task) for owned in self._terms_of(task_class, TermKind.AFFINITY)
        )

    # --------------------------------------------------------------------------------- listening

    def concerns(self, task_class: TaskClass) -> bool:
        """Return True for every class, because labels and not classes decide which tasks are counted."""
        del task_class
        return True

    def placed(self, task: int, node: int) -> None:
        """Count a task that was placed on a node."""
        self._add(task, node, 1.0)

    def left(self, task: int, node: int) -> None:
        """Stop counting a task that was evicted."""
        self._add(task, node, -1.0)

    def _add(self, task: int, node: int, amount: float) -> None:
        journal = self._state.journal
        for counter in self._counters(task):
            domain = counter.domain_of[node]
            if domain != counter.no_domain:
                journal.put(counter.staying, domain, counter.staying[domain] + amount)

    # ---------------------------------------------------------------------------------- building

    def _create_counters(self) -> bool:
        """Create the counters; return whether there are any."""
        for task_class in self._state.classes.classes:
            for kind in TermKind:
                terms = self._terms_of(task_class, kind)
                for owned in terms:
                    key = owned.term.topology_key
                    self._matching.setdefault(((owned,), key), self._counter(key))
                    self._owners.setdefault((kind, owned), self._counter(key))
                    if kind is TermKind.AFFINITY and len(terms) > 1:
                        self._matching.setdefault((terms, key), self._counter(key))
        return bool(self._matching)

    def _terms_of(self, task_class: TaskClass, kind: TermKind) -> tuple[OwnedTerm, ...]:
        """Return the terms of one kind of a class, with its namespace."""
        return tuple(
            OwnedTerm(term, task_class.namespace) for term in terms_of(task_class.constraints, kind)
        )

    def _counter(self, topology_key: str) -> DomainCounter:
        domains = self._domains.get(topology_key)
        if domains is None:
            domains = self._domains[topology_key] = _index_domains(
                topology_key, self._state.nodes.inputs
            )
        return DomainCounter(*domains)

    def _count_placed(self) -> None:
        tasks = self._state.tasks
        for task, node in enumerate(tasks.node):
            if node == NOWHERE or not ACTIVE_USED[tasks.status[task]]:
                continue
            is_leaving = tasks.status[task] == TaskStatus.RELEASING
            for counter in self._counters(task):
                domain = counter.domain_of[node]
                if domain != counter.no_domain:
                    (counter.leaving if is_leaving else counter.staying)[domain] += 1
                    counter.was_empty = False

    def _counters(self, task: int) -> tuple[DomainCounter, ...]:
        key = self._identity(task)
        counters = self._counters_of_task.get(key)
        if counters is None:
            task_class = self._state.tasks.task_class[task]
            own_terms = {
                (kind, owned) for kind in TermKind for owned in self._terms_of(task_class, kind)
            }
            counters = self._counters_of_task[key] = (
                *(
                    counter
                    for (terms, _), counter in self._matching.items()
                    if all(self._matches(owned, task) for owned in terms)
                ),
                *(counter for term, counter in self._owners.items() if term in own_terms),
            )
        return counters

    def _identity(self, task: int) -> tuple[int, int]:
        """Return a key that is equal for tasks of one class with the same labels object."""
        tasks = self._state.tasks
        return tasks.task_class[task].index, id(tasks.inputs[task].labels)

    def _matches(self, owned: OwnedTerm, task: int) -> bool:
        pod = self._state.tasks.inputs[task]
        return owned.matches(pod.namespace, pod.labels, self._state.cluster_input.namespaces)


def _index_domains(topology_key: str, nodes: list[NodeInput]) -> tuple[list[int], int]:
    """Return the index of each node's domain, and how many domains there are.

    Nodes without the key get the number of domains as index.
    """
    index_of: dict[str, int] = {}
    for node in nodes:
        value = node.labels.get(topology_key)
        if value is not None:
            index_of.setdefault(value, len(index_of))
    count = len(index_of)
    return [
        index_of.get(node.labels.get(topology_key, ""), count)
        if topology_key in node.labels
        else count
        for node in nodes
    ], count


def neighbours_of(session: Session) -> Neighbours:
    """Return the counters of a session; the first call creates and registers them."""
    neighbours = session.attached(Neighbours)
    if neighbours is None:
        neighbours = session.attach(Neighbours(session.state))
        if neighbours.has_terms:
            session.hooks.listeners.append(neighbours)
    return neighbours
