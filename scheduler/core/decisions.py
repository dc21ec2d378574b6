"""What a cycle decides; the only thing that leaves the core.

A kept statement yields `Bind`, `Evict` and `Nominate`; the end of the cycle adds the reasons of what did
not fit and the marks a pod group should carry. Applying them is the business of the room around.

They are values like all others here, compared and never changed, but not frozen ones: a frozen class of
this many fields takes 8 microseconds to make (Python 3.11), and a cycle makes thousands.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from scheduler.core.cluster.inputs import ClaimAllocation, NumaShare


class ActionName(StrEnum):
    """The actions of a cycle, spelled as in the configuration."""

    ALLOCATE = "allocate"
    CONSOLIDATION = "consolidation"
    RECLAIM = "reclaim"
    PREEMPT = "preempt"
    STALE_GANG_EVICTION = "stalegangeviction"


class ReceivedType(StrEnum):
    """How a task got its GPU, as written to the bind request."""

    REGULAR = "Regular"
    FRACTION = "Fraction"
    MIG = "MigInstance"


@dataclass(slots=True, unsafe_hash=True)
class TaskRef:
    """Which pod a decision speaks of."""

    namespace: str
    name: str
    uid: str


@dataclass(slots=True, unsafe_hash=True)
class Bind:
    """Put this pod on this node."""

    task: TaskRef
    pod_group: str
    pod_group_namespace: str
    node: str
    action: ActionName
    gpu_groups: tuple[str, ...] = ()
    received_type: ReceivedType = ReceivedType.REGULAR
    gpu_count: int = 0
    gpu_portion: float = 1.0
    numa: tuple[NumaShare, ...] = ()
    claim_allocations: tuple[ClaimAllocation, ...] = ()


@dataclass(frozen=True, slots=True)
class QueueSide:
    """One side of a reclaim as the victim's event tells it; amounts are (cpu, memory, gpu)."""

    name: str
    allocated: tuple[float, float, float]
    quota: tuple[float, float, float]
    fair_share: tuple[float, float, float]
    priority: int


@dataclass(frozen=True, slots=True)
class EvictReason:
    """Why a pod must go, with what the event text needs."""

    action: ActionName
    gang_size: int = 0
    evictor: str = ""
    evictor_namespace: str = ""
    victim_side: QueueSide | None = None
    evictor_side: QueueSide | None = None
    #: Stale gangs: (subgroup, minimum); the default pod set has the empty name, a subgroup that the pod
    #: group does not have no minimum.
    stale_subgroup: str = ""
    stale_minimum: int | None = 0


@dataclass(slots=True, unsafe_hash=True)
class Evict:
    """Delete this pod; `moved_to` names the node its successor is expected on (consolidation)."""

    task: TaskRef
    pod_group: str
    pod_group_namespace: str
    node: str
    reason: EvictReason
    moved_to: str = ""


@dataclass(slots=True, unsafe_hash=True)
class Nominate:
    """A pod placed on room that is still being freed; an event and nothing else."""

    task: TaskRef
    pod_group: str
    pod_group_namespace: str
    node: str
    action: ActionName
    gpu_groups: tuple[str, ...] = ()
    #: True for a victim that was given a new place, False for the task that asked.
    is_moved_victim: bool = False


Decision = Bind | Evict | Nominate


@dataclass(frozen=True, slots=True)
class GroupMarks:
    """Timestamps (seconds relative to the cycle) a pod group should carry; None: not set."""

    pod_group: str
    namespace: str
    last_start: float | None
    last_eviction: float | None
    stale_since: float | None
    is_stale: bool


#: Results of a scenario, spelled as in the metrics.
SOLVED, UNSOLVED, REJECTED, DUPLICATE = "solved", "unsolved", "validator_rejected", "duplicate"


@dataclass(slots=True)
class SearchReport:
    """What the search for victims did in one action.

    Attributes
    ----------
    results : (how a search ended, whether its time was cut by the action's end) -> searches
    emitted : generator -> scenarios it proposed
    trials : (generator, result, seconds) of every scenario that was looked at
    filtered : sets of victims that cheap filters turned away
    """

    results: dict[tuple[str, bool], int] = field(default_factory=dict)
    emitted: dict[str, int] = field(default_factory=dict)
    trials: list[tuple[str, str, float]] = field(default_factory=list)
    filtered: int = 0

    @property
    def simulated(self) -> int:
        """Return how many scenarios were tried."""
        return sum(result != DUPLICATE for _, result, _ in self.trials)


@dataclass(slots=True)
class ActionReport:
    """What one action did and how long it took (seconds, by the clock handed in)."""

    action: ActionName
    seconds: float = 0.0
    attempted: int = 0
    succeeded: int = 0
    search: SearchReport = field(default_factory=SearchReport)
