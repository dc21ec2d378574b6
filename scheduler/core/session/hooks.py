"""What plugins add to a session: about ten hooks, each with one stated way of combining.

Filters and scores speak arrays over all nodes, and answer for a single node too, because after a
placement only the touched node is asked again. Each says how far its answer reaches:

- CLASS: depends on the node's description and on what kind of task it is (its constraints, its kind of
  GPU request, its namespace and nominated node), not on amounts; asked once per kind and session.
- NODE: changes only when the node is touched (a task comes, goes or starts to leave). Answers are kept
  for the whole class, so the task they are asked with is any member of it.
- CLUSTER: anything may change it; asked at every placement. Use it for neighbours and topology.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

from scheduler.core.arrays import Bools, Floats
from scheduler.core.cluster.classes import RowAmounts, TaskClass
from scheduler.core.cluster.inputs import NumaShare
from scheduler.core.cluster.podgroups import TreeMember
from scheduler.core.session.fit import CheckFailure, NodeReason
from scheduler.core.session.gang import GangView
from scheduler.core.session.nodeset import NodeSet

#: Name of the filter for node affinity and selectors; the solver finds it among the filters by it.
NODE_AFFINITY = "NodeAffinity"


class Scope(Enum):
    """How far an answer about a node reaches."""

    CLASS = "class"
    NODE = "node"
    CLUSTER = "cluster"


class NodeFilter(Protocol):
    """Which nodes may take a task; all filters must agree, the first to refuse is the reason."""

    name: str
    scope: Scope

    def concerns(self, task_class: TaskClass) -> bool:
        """Tell whether tasks of this class are asked about at all."""
        ...

    def mask(self, task: int, task_class: TaskClass) -> Bools:
        """Return shape (nodes,): which nodes pass."""
        ...

    def passes(self, task: int, task_class: TaskClass, node: int) -> bool:
        """Tell whether one node passes."""
        ...

    def reasons(self, task: int, task_class: TaskClass, node: int) -> tuple[NodeReason, ...]:
        """Say why a node does not pass."""
        ...


class NodeScore(Protocol):
    """How good nodes are for a task; scores of all plugins are summed, NaN drops the node."""

    name: str
    scope: Scope

    def concerns(self, task_class: TaskClass) -> bool:
        """Tell whether tasks of this class are scored at all."""
        ...

    def scores(self, task: int, task_class: TaskClass, nodes: NodeSet) -> Floats:
        """Return shape (nodes of the set,)."""
        ...

    def score(self, task: int, task_class: TaskClass, node: int) -> float:
        """Return the score of one node (never asked in scope CLUSTER)."""
        ...


class PreCheck(Protocol):
    """A check of a task before any node is looked at; all must pass."""

    name: str

    def concerns(self, task_class: TaskClass) -> bool:
        """Tell whether tasks of this class are checked."""
        ...

    def check(self, task: int, task_class: TaskClass) -> CheckFailure | None:
        """Return what is wrong, or None."""
        ...


class NodeSplitter(Protocol):
    """Splits a node set into the sets to try in turn; splitters multiply in plugin order."""

    def concerns(self, member: TreeMember) -> bool:
        """Tell whether this member of a pod group has a wish about node sets."""
        ...

    def split(
        self,
        view: GangView,
        member: TreeMember,
        tasks: Sequence[int],
        nodes: NodeSet,
        *,
        record: bool,
    ) -> list[NodeSet]:
        """Return the sets to try, best first; none means it cannot be placed.

        record : note in the fit log why there is none
        """
        ...


class TaskListener(Protocol):
    """Keeps a ledger of its own in step; must write through the journal."""

    def concerns(self, task_class: TaskClass) -> bool:
        """Tell whether tasks of this class matter."""
        ...

    def placed(self, task: int, node: int) -> None:
        """Follow a task that was allocated, nominated or un-evicted onto a node."""
        ...

    def left(self, task: int, node: int) -> None:
        """Follow a task that was evicted from a node."""
        ...


class PlaceWait(Protocol):
    """A rule that lets a task have a place, but not before somebody else has left it."""

    def concerns(self, task_class: TaskClass) -> bool:
        """Tell whether tasks of this class may have to wait."""
        ...

    def must_wait(self, task: int, node: int, task_class: TaskClass) -> bool:
        """Tell whether the task can only be nominated to the node."""
        ...


class NumaPlanner(Protocol):
    """The one plugin that chooses NUMA zones for a task on a node."""

    def plan(self, task: int, node: int) -> tuple[NumaShare, ...]:
        """Return what would be taken from which zone; empty if the task is not handled."""
        ...


@dataclass(frozen=True, slots=True)
class PlacementStrategy:
    """How the filling of nodes is scored: binpack (True) or spread."""

    cpu_binpack: bool
    gpu_binpack: bool


#: Sort key of a shared device: (used MiB, device MiB), or None for a whole free device.
GpuScore = Callable[[tuple[float, float] | None], float]


class FitRule(Protocol):
    """A rule that changes what must be free on a node for a task."""

    def concerns(self, task_class: TaskClass) -> bool:
        """Tell whether tasks of this class are affected."""
        ...

    def adjust(self, task: int, node: int, needs: RowAmounts) -> RowAmounts:
        """Return the amounts that must be free on the node."""
        ...


@dataclass(slots=True)
class Hooks:
    """Everything plugins registered, in plugin order."""

    #: Keys; the first that differs decides, then age.
    pod_group_order: list[Callable[[GangView], Any]] = field(default_factory=list)
    #: Keys of a task; the first that differs decides, then age, then uid.
    task_order: list[Callable[[int], Any]] = field(default_factory=list)
    orders_subgroups: bool = False
    filters: list[NodeFilter] = field(default_factory=list)
    scores: list[NodeScore] = field(default_factory=list)
    checks: list[PreCheck] = field(default_factory=list)
    splitters: list[NodeSplitter] = field(default_factory=list)
    listeners: list[TaskListener] = field(default_factory=list)
    fit_rules: list[FitRule] = field(default_factory=list)
    waits: list[PlaceWait] = field(default_factory=list)
    #: Weights of the two scores that the placement works out itself while it tests for room.
    availability_weight: float = 0.0
    sharing_weight: float = 0.0
    placement: PlacementStrategy | None = None
    gpu_score: GpuScore | None = None
    numa: NumaPlanner | None = None
    #: Victims: (victim view, preemptor or reclaimer view) -> may be taken. All must agree.
    preempt_victim_filters: list[Callable[[GangView, GangView], bool]] = field(default_factory=list)
    reclaim_victim_filters: list[Callable[[GangView, GangView], bool]] = field(default_factory=list)
    #: (asking view, victim tasks) -> is the simulated outcome acceptable. All must agree.
    preempt_validators: list[Callable[[GangView, Sequence[int]], bool]] = field(
        default_factory=list
    )
    reclaim_validators: list[Callable[[GangView, Sequence[int]], bool]] = field(
        default_factory=list
    )
    #: Names of the scenario generators, in the order they are tried.
    generators: list[str] = field(default_factory=list)
