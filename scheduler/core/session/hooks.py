"""What plugins register with a session. Each hook states how the answers of several plugins combine.

Filters and scores return arrays over all nodes, and also answer for a single node, because after a
placement only the touched node is evaluated again. Each has a scope, which says when its answer may change:

- CLASS: never in a session. It depends on the description of the node and on the kind of task (constraints,
  form of GPU request, namespace, nominated node), not on amounts. Evaluated once per kind.
- NODE: when the node is touched (a task comes, goes or begins to leave). Evaluated for a whole class of
  tasks, so the task passed in is any one of them.
- CLUSTER: at any time. Evaluated at every placement. For rules about other pods and topology.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from math import inf
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

#: The strategies by which filled nodes are scored.
BINPACK, SPREAD = "binpack", "spread"


class Scope(Enum):
    """When an answer about a node may change, see above."""

    CLASS = "class"
    NODE = "node"
    CLUSTER = "cluster"


class NodeFilter(Protocol):
    """Which nodes may run a task. All filters must pass; the first that does not gives the reason."""

    name: str
    scope: Scope

    def concerns(self, task_class: TaskClass) -> bool:
        """Return whether the filter applies to tasks of this class."""
        ...

    def mask(self, task: int, task_class: TaskClass) -> Bools:
        """Return shape (nodes,): which nodes pass."""
        ...

    def passes(self, task: int, task_class: TaskClass, node: int) -> bool:
        """Return whether one node passes."""
        ...

    def reasons(self, task: int, task_class: TaskClass, node: int) -> tuple[NodeReason, ...]:
        """Return why a node does not pass."""
        ...


class NodeScore(Protocol):
    """How good nodes are for a task. The scores of all plugins are summed; NaN excludes the node."""

    name: str
    scope: Scope

    def concerns(self, task_class: TaskClass) -> bool:
        """Return whether the score applies to tasks of this class."""
        ...

    def scores(self, task: int, task_class: TaskClass, nodes: NodeSet) -> Floats:
        """Return shape (nodes of the set,): the score of each node."""
        ...

    def score(self, task: int, task_class: TaskClass, node: int) -> float:
        """Return the score of one node; not called in scope CLUSTER."""
        ...


class PreCheck(Protocol):
    """A check of a task before nodes are considered. All checks must pass."""

    name: str

    def concerns(self, task_class: TaskClass) -> bool:
        """Return whether the check applies to tasks of this class."""
        ...

    def check(self, task: int, task_class: TaskClass) -> CheckFailure | None:
        """Return what is wrong; None if the task passes."""
        ...


class NodeSplitter(Protocol):
    """Splits a node set into sets to be tried one after the other.

    Each splitter splits the sets of the one before it, in the order of plugins.
    """

    def concerns(self, member: TreeMember) -> bool:
        """Return whether this member of a pod group restricts node sets."""
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
        """Return the sets to try, best first; none if the member cannot be placed.

        Parameters
        ----------
        view, member, tasks : the pod group, its member, and the tasks of it that are to be placed
        nodes : the set to split
        record : whether to write to the fit log why there is no set
        """
        ...


class TaskListener(Protocol):
    """Updates a ledger of its own when tasks come and go. It must write through the journal."""

    def concerns(self, task_class: TaskClass) -> bool:
        """Return whether the ledger depends on tasks of this class."""
        ...

    def placed(self, task: int, node: int) -> None:
        """Account for a task that was allocated, nominated or un-evicted on a node."""
        ...

    def left(self, task: int, node: int) -> None:
        """Account for a task that was evicted from a node."""
        ...


class PlaceWait(Protocol):
    """A rule by which a task may have a place only after another task has left it."""

    def concerns(self, task_class: TaskClass) -> bool:
        """Return whether tasks of this class may have to wait."""
        ...

    def must_wait(self, task: int, node: int, task_class: TaskClass) -> bool:
        """Return whether the task can only be nominated to the node."""
        ...


class NumaPlanner(Protocol):
    """Chooses NUMA zones for a task on a node. Only one plugin may register as planner."""

    def plan(self, task: int, node: int) -> tuple[NumaShare, ...]:
        """Return what the task would take from each zone; empty if zones do not matter to it."""
        ...


@dataclass(frozen=True, slots=True)
class PlacementStrategy:
    """How filled nodes are scored, for tasks with and without GPU: binpack (True) or spread.

    `is_scored_otherwise`: for which classes how filled a node is does not matter, because a score of a
    plugin decides instead, named `other`; None: for none.
    """

    cpu_binpack: bool
    gpu_binpack: bool
    is_scored_otherwise: Callable[[TaskClass], bool] | None = None
    other: str = ""

    def name_for(self, task_class: TaskClass) -> str:
        """Return the name of the strategy that holds for a class."""
        if self.is_scored_otherwise is not None and self.is_scored_otherwise(task_class):
            return self.other
        is_binpack = self.cpu_binpack if task_class.is_cpu_only else self.gpu_binpack
        return BINPACK if is_binpack else SPREAD


#: Score of a shared device by (used MiB, device MiB), or of a whole free device by None.
GpuScore = Callable[[tuple[float, float] | None], float]


class FitRule(Protocol):
    """A rule that changes what must be free on a node for a task."""

    def concerns(self, task_class: TaskClass) -> bool:
        """Return whether tasks of this class are affected."""
        ...

    def adjust(self, task: int, node: int, needs: RowAmounts) -> RowAmounts:
        """Return what must be free on the node instead of the amounts given."""
        ...


@dataclass(slots=True)
class Hooks:
    """Everything that plugins registered, in the order of plugins.

    Attributes
    ----------
    pod_group_order : sort keys of pod groups; the first that differs decides, then age
    task_order : sort keys of tasks; the first that differs decides, then age, then uid
    orders_subgroups : whether the least satisfied subgroup is served first
    availability_weight, sharing_weight : weights of two scores that the placement itself computes
        while it tests for room
    preempt_victim_filters, reclaim_victim_filters : (victim view, preemptor or reclaimer view) ->
        whether the victim may be taken; all must agree
    preempt_validators, reclaim_validators : (preemptor or reclaimer view, victim tasks) -> whether the
        simulated outcome is acceptable; all must agree
    generators : names of the scenario generators, in the order in which they are tried
    reservations : for how many pod groups that wait allocate keeps room; 0 for none
    reservation_horizon_s : how long before they start it keeps room at most
    """

    pod_group_order: list[Callable[[GangView], Any]] = field(default_factory=list)
    task_order: list[Callable[[int], Any]] = field(default_factory=list)
    orders_subgroups: bool = False
    filters: list[NodeFilter] = field(default_factory=list)
    scores: list[NodeScore] = field(default_factory=list)
    checks: list[PreCheck] = field(default_factory=list)
    splitters: list[NodeSplitter] = field(default_factory=list)
    listeners: list[TaskListener] = field(default_factory=list)
    fit_rules: list[FitRule] = field(default_factory=list)
    waits: list[PlaceWait] = field(default_factory=list)
    availability_weight: float = 0.0
    sharing_weight: float = 0.0
    placement: PlacementStrategy | None = None
    gpu_score: GpuScore | None = None
    numa: NumaPlanner | None = None
    preempt_victim_filters: list[Callable[[GangView, GangView], bool]] = field(default_factory=list)
    reclaim_victim_filters: list[Callable[[GangView, GangView], bool]] = field(default_factory=list)
    preempt_validators: list[Callable[[GangView, Sequence[int]], bool]] = field(
        default_factory=list
    )
    reclaim_validators: list[Callable[[GangView, Sequence[int]], bool]] = field(
        default_factory=list
    )
    generators: list[str] = field(default_factory=list)
    reservations: int = 0
    reservation_horizon_s: float = inf
