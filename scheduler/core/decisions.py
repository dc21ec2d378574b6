"""The output of a cycle: decisions, and a report on each action.

A kept statement yields `Bind`, `Evict` and `Nominate` decisions; `scheduler/apply/commit.py` applies them. Why
something did not fit is in the session's fit log.

Decisions are values, compared and never changed. They are not frozen dataclasses, because making a frozen
one of this many fields takes 8 microseconds (Python 3.11) and a cycle makes thousands.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from scheduler.core.cluster.device_inputs import ClaimAllocation
from scheduler.core.cluster.inputs import NumaShare


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
    """The pod that a decision is about."""

    namespace: str
    name: str
    uid: str


@dataclass(slots=True, unsafe_hash=True)
class Bind:
    """Bind a pod to a node.

    Attributes
    ----------
    gpu_groups : GPU group ids of the shared devices the pod gets
    gpu_count : whole GPUs, or how many GPUs it shares
    gpu_portion : the part of each shared GPU, 1 for whole ones
    """

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
    """The queue of a reclaimer or a victim, for the text of the victim's event.

    Amounts are (CPU millicores, memory bytes, GPUs); tuples because reasons are hashed.
    """

    name: str
    allocated: tuple[float, float, float]
    quota: tuple[float, float, float]
    fair_share: tuple[float, float, float]
    priority: int


@dataclass(frozen=True, slots=True)
class EvictReason:
    """Why a pod is evicted, with what the text of its event needs.

    Attributes
    ----------
    gang_size : how many tasks of its pod group are evicted together
    evictor, evictor_namespace : the pod group that gets the room; empty for stale gangs
    victim_side, evictor_side : both queues, for a reclaim
    in_quota : the victim's queue is within its quota, and loses only because of its lower priority
    stale_subgroup, stale_minimum : for a stale gang, which subgroup fell below which minimum. The name
        is empty for the default pod set, the minimum None for a subgroup that the pod group lacks
    """

    action: ActionName
    gang_size: int = 0
    evictor: str = ""
    evictor_namespace: str = ""
    victim_side: QueueSide | None = None
    evictor_side: QueueSide | None = None
    in_quota: bool = False
    stale_subgroup: str = ""
    stale_minimum: int | None = 0


@dataclass(slots=True, unsafe_hash=True)
class Evict:
    """Evict a pod; `moved_to` is the node where its replacement is expected, empty if it has none."""

    task: TaskRef
    pod_group: str
    pod_group_namespace: str
    node: str
    reason: EvictReason
    moved_to: str = ""


@dataclass(slots=True, unsafe_hash=True)
class Nominate:
    """A pod placed on room that is still being freed. It leads to an event, not to a bind."""

    task: TaskRef
    pod_group: str
    pod_group_namespace: str
    node: str
    action: ActionName
    gpu_groups: tuple[str, ...] = ()
    #: True for a victim that gets another place, False for a pending task.
    is_moved_victim: bool = False


Decision = Bind | Evict | Nominate


def promised_nodes_of(decisions: Iterable[Decision], promised: Collection[str]) -> dict[str, str]:
    """Return the node that each pod is promised after a cycle, by uid.

    An eviction makes a promise to the pods that it makes room for; allocate renews it, and makes none of its own,
    because nobody had to go for the room that it nominates. A victim that gets another place has none either: the pod
    that takes its place has another uid.

    Parameters
    ----------
    promised : uids of the pods that had a promise before the cycle
    """
    return {
        decision.task.uid: decision.node
        for decision in decisions
        if isinstance(decision, Nominate)
        and not decision.is_moved_victim
        and (decision.action is not ActionName.ALLOCATE or decision.task.uid in promised)
    }


@dataclass(frozen=True, slots=True)
class GroupMarks:
    """The timestamps that a pod group should carry, in seconds from the start of the cycle; None for unset."""

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
    filtered : sets of victims that cheap filters rejected
    """

    results: dict[tuple[str, bool], int] = field(default_factory=dict)
    emitted: dict[str, int] = field(default_factory=dict)
    trials: list[tuple[str, str, float]] = field(default_factory=list)
    filtered: int = 0

    def count_emitted(self, generator: str) -> None:
        """Count one more scenario that a generator proposed."""
        self.emitted[generator] = self.emitted.get(generator, 0) + 1

    @property
    def simulated(self) -> int:
        """Return how many scenarios were simulated; duplicates of earlier ones are not."""
        return sum(result != DUPLICATE for _, result, _ in self.trials)


@dataclass(slots=True)
class ActionReport:
    """What one action did, and how long it took in seconds of the session's clock."""

    action: ActionName
    seconds: float = 0.0
    attempted: int = 0
    succeeded: int = 0
    search: SearchReport = field(default_factory=SearchReport)
