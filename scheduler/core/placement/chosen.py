"""Why a task was placed on its node: the score of that node in parts, that of the next best, and who refused.

Recorded while placing, because the scores of nodes change with every task. A session records nothing unless it has a
`PlacementLog`, which takes a bounded number of placements, so that recording never costs much beside the cycle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from scheduler.core.arrays import Bools
from scheduler.core.cluster.axis import GPU_ROW
from scheduler.core.cluster.classes import TaskClass
from scheduler.core.placement.candidates import TOPOLOGY, Candidates
from scheduler.core.placement.rules import ClassRules
from scheduler.core.session.hooks import Scope
from scheduler.core.session.session import Session

#: Refusals of nodes for which a class has no rule by name: devices of which too little is left, and all else.
DEVICES, OTHER_RULES = "devices", "rules"
#: How many placements of one pod group are recorded: its pods are alike, and others should have their turn.
MAX_PER_GROUP = 16
#: Records of gangs that did not fit as a whole are replaced by others, at most this many times the limit.
MAX_IN_VAIN = 2

Counts = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class ScoredNode:
    """A node and the parts of its score, by the plugin or strategy that adds them."""

    node: str
    terms: tuple[tuple[str, float], ...]

    @property
    def score(self) -> float:
        """Return the sum of the parts."""
        return sum(value for _, value in self.terms)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementReason:
    """Why one task was placed where it is.

    Attributes
    ----------
    strategy : binpack, spread, fragmentation, or empty if the shard has none
    runner_up : the best of the other nodes that could take the task, None if there was none
    is_promised : room had been made for it on this node by evictions
    nodes, considered, possible : how many there are, were looked at (inside a topology domain, say), could take it
    refused : why the other nodes that were looked at could not -> how many; a node counts for its first reason
    """

    strategy: str
    chosen: ScoredNode
    runner_up: ScoredNode | None
    is_promised: bool
    nodes: int
    considered: int
    possible: int
    refused: Counts


@dataclass(frozen=True, slots=True)
class _Record:
    """A reason without what lasting filters refused, which is the same at any time of the session."""

    reason: PlacementReason
    candidates: Candidates


class PlacementLog:
    """The reasons of the first placements of a session; attach one to a session to have them recorded.

    Attributes
    ----------
    left : how many more are recorded; callers look at it, because most placements of a burst come when it is 0
    """

    __slots__ = ("_by_group", "_in_vain", "_records", "left")

    def __init__(self, limit: int) -> None:
        self.left = limit
        self._in_vain = MAX_IN_VAIN * limit
        self._records: dict[int, _Record] = {}
        self._by_group: dict[int, int] = {}

    def note(
        self,
        session: Session,
        candidates: Candidates,
        task: int,
        node: int,
        refused: Sequence[int] = (),
    ) -> None:
        """Record why a task goes to a node, just before it does.

        Parameters
        ----------
        refused : better nodes that refused it at the last moment
        """
        group = session.state.tasks.pod_group[task]
        recorded = self._by_group.get(group, 0)
        if self.left <= 0 or recorded >= MAX_PER_GROUP:
            return
        self.left -= 1
        self._by_group[group] = recorded + 1
        reason = _reason(session, candidates, task, node, refused)
        self._records[task] = _Record(reason, candidates)

    def forget(self, tasks: Sequence[int]) -> None:
        """Drop the reasons of tasks whose gang did not fit as a whole."""
        for task in tasks:
            if self._records.pop(task, None) is not None and self._in_vain > 0:
                self._in_vain -= 1
                self.left += 1

    def reasons(self, session: Session) -> dict[int, PlacementReason]:
        """Return the reason of each task."""
        #: What decides the lasting filters of a task -> what they refused.
        counts_of: dict[tuple[object, ...], Counts] = {}
        reasons = {}
        for task, record in self._records.items():
            task_class = session.state.tasks.task_class[task]
            key = (
                *(task_class.kind, task_class.namespace, task_class.nominated_node),
                record.candidates.node_set.key,
            )
            if key not in counts_of:
                counts_of[key] = _lasting_refusals(record.candidates, task, task_class)
            counts = counts_of[key] + record.reason.refused
            reasons[task] = replace(record.reason, refused=counts)
        return reasons


def _reason(
    session: Session, candidates: Candidates, task: int, node: int, refused: Sequence[int]
) -> PlacementReason:
    nodes, task_class = session.state.nodes, session.state.tasks.task_class[task]
    others = candidates.scores_now().copy()
    for taken in (node, *refused):
        others[candidates.position(taken)] = -inf
    best = int(others.argmax())
    runner_up = None
    if others[best] != -inf:
        runner_up = _scored(session, candidates, int(candidates.node_set.indices[best]))
    possible = candidates.fitting - len(refused)
    return PlacementReason(
        strategy=_strategy(session, task_class),
        chosen=_scored(session, candidates, node),
        runner_up=runner_up,
        is_promised=task_class.nominated_node == nodes.names[node],
        nodes=len(nodes),
        considered=len(candidates.node_set),
        possible=possible,
        refused=_passing_refusals(session, candidates, task_class, possible),
    )


def _passing_refusals(
    session: Session, candidates: Candidates, task_class: TaskClass, possible: int
) -> Counts:
    """Count what the nodes lack that pass the lasting filters, and those that other rules refuse."""
    counts: list[tuple[str, int]] = []
    left, free = candidates.passing, session.state.nodes.idle_and_releasing
    if not candidates.rules.fit_rules:  # they change from node to node what must be free
        for row, amount in sorted(task_class.must_be_free, key=_gpus_first):
            lacks = candidates.node_set.take(free[row]) < amount
            lacks &= left
            count = int(np.count_nonzero(lacks))
            if count:
                counts.append((session.state.axis.names[row], count))
                left = left & ~lacks
    rest = int(np.count_nonzero(left)) - possible
    if rest > 0:
        counts.append((_rest_name(task_class, candidates.rules), rest))
    return tuple(counts)


def _gpus_first(need: tuple[int, float]) -> bool:
    return need[0] != GPU_ROW


def _lasting_refusals(candidates: Candidates, task: int, task_class: TaskClass) -> Counts:
    """Count the nodes that each lasting filter refuses, and those outside of the topology."""
    node_set = candidates.node_set
    counts: list[tuple[str, int]] = []
    passing: Bools = np.ones(len(node_set), dtype=np.bool_)
    masks = [
        (node_filter.name, node_set.take(node_filter.mask(task, task_class)))
        for node_filter in candidates.rules.filters
        if node_filter.scope is Scope.CLASS
    ]
    if node_set.extra_scores is not None:
        masks.append((TOPOLOGY, ~np.isnan(node_set.take(node_set.extra_scores))))
    for name, passes in masks:
        count = int(np.count_nonzero(passing & ~passes))
        if count:
            counts.append((name, count))
            passing = passing & passes
    return tuple(counts)


def _rest_name(task_class: TaskClass, rules: ClassRules) -> str:
    """Return what refused the nodes that are left: the only rule that can, or a general word."""
    names = {node_filter.name for node_filter in rules.node_filters + rules.cluster_filters}
    if rules.fit_rules or len(names) > 1 or (names and task_class.is_shared):
        return OTHER_RULES
    return names.pop() if names else DEVICES if task_class.is_shared else OTHER_RULES


def _strategy(session: Session, task_class: TaskClass) -> str:
    strategy = session.hooks.placement
    return "" if strategy is None else strategy.name_for(task_class)


def _scored(session: Session, candidates: Candidates, node: int) -> ScoredNode:
    terms = tuple((name, value) for name, value in candidates.terms(node).items() if value)
    return ScoredNode(session.state.nodes.names[node], terms)
