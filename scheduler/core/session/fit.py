"""Why pod groups and tasks did not fit, as data; `scheduler/explain` turns them into text.

On a full cluster most attempts fail, so recording a refusal must be cheap: tasks of one class that fail
against the same state share one count of reasons.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from scheduler.core.cluster.disruption_limits import DisruptionLimit
from scheduler.core.fairshare.capacity import CapacityRefusal


class NodeReasonKind(StrEnum):
    """Why a node does not take a task; the comments say what `NodeReason.subject` holds."""

    INSUFFICIENT = "insufficient"  # subject: resource name
    INSUFFICIENT_GPU_MEMORY = "insufficient-gpu-memory"
    OVER_CAPACITY = "over-capacity"  # subject: the reason; the figures are in `refusal`
    LEGACY_MIG = "legacy-mig"  # subject: node
    FRACTION_ON_DRA_NODE = "fraction-on-dra-node"
    WHOLE_ON_DRA_NODE = "whole-on-dra-node"
    MIG_ON_PLAIN_NODE = "mig-on-plain-node"
    MIG_BESIDE_LEGACY_MIG = "mig-beside-legacy-mig"  # subject: the pods with the legacy annotation
    NOT_WHOLE_ON_SINGLE = "not-whole-on-mig-single"
    NOT_MIG_ON_MIXED = "not-mig-on-mig-mixed"
    GPU_MEMORY_UNKNOWN = "gpu-memory-unknown"
    POD_SLOTS = "pod-slots"
    UNSCHEDULABLE = "unschedulable"
    NOT_READY = "not-ready"
    CONDITION = "condition"  # subject: name of the condition
    PORTS = "ports"
    TAINT = "taint"
    NODE_AFFINITY = "node-affinity"
    POD_AFFINITY = "pod-affinity"
    POD_ANTI_AFFINITY = "pod-anti-affinity"
    EXISTING_ANTI_AFFINITY = "existing-anti-affinity"
    VOLUME = "volume"  # subject: the text of the volume rule
    NOT_GPU_WORKER = "not-gpu-worker"
    NOT_CPU_WORKER = "not-cpu-worker"
    DEVICES = "devices"  # subject: the cause, if devices are not simply in use
    CLAIM_ELSEWHERE = "claim-elsewhere"  # subject: the claim
    NUMA = "numa"
    GPU_MODEL = "gpu-model"  # subject: the bound of a queue that would be exceeded


@dataclass(frozen=True, slots=True)
class NodeReason:
    """One reason of one node; equal reasons of many nodes are counted together.

    Attributes
    ----------
    node : name of the node if the message shows it, else empty, so that the reasons of nodes are equal
    overhead : the pod's overhead as text, if the node would have room for the pod without it
    """

    kind: NodeReasonKind
    subject: str = ""
    node: str = ""
    refusal: CapacityRefusal | None = None
    overhead: str = ""


@dataclass(frozen=True, slots=True)
class CheckFailure:
    """A failed check of a task that needs no node (a missing config map, a request above any node's size).

    Attributes
    ----------
    check : name of the check
    text : its message
    reasons : further lines of the message
    is_victim_invariant : True if no eviction can change the outcome
    stands_alone : True if the message is the text alone, without the name of the check
    """

    check: str
    text: str
    reasons: tuple[str, ...] = ()
    is_victim_invariant: bool = False
    stands_alone: bool = False


@dataclass(slots=True)
class TaskFit:
    """Every refusal of one task in this cycle, over all attempts."""

    checks: list[CheckFailure] = field(default_factory=list)
    counts: list[Mapping[NodeReason, int]] = field(default_factory=list)

    def reasons(self) -> Counter[NodeReason]:
        """Return how many refusals each reason has over all attempts."""
        total: Counter[NodeReason] = Counter()
        for counts in self.counts:
            total.update(counts)
        return total


class GroupReason(StrEnum):
    """Reasons of a pod group, spelled as in its conditions."""

    POD_SCHEDULING_ERRORS = "PodSchedulingErrors"
    NOT_ENOUGH_RESOURCES = "Not enough resources for the workload"
    OVER_LIMIT = "OverLimit"
    NON_PREEMPTIBLE_OVER_QUOTA = "NonPreemptibleOverQuota"
    PREEMPTION_DELAY = "PreemptionDelayNotElapsed"
    QUEUE_DOES_NOT_EXIST = "QueueDoesNotExist"
    DISRUPTION_BUDGET = "DisruptionBudget"


@dataclass(frozen=True, slots=True)
class GangShortfall:
    """A gang that could not be placed as a whole.

    Attributes
    ----------
    task : the first task that found no room
    placed : how many tasks had found room before it
    minimum : minimum of the gang; 0 if the gang is not the reason (a single task, or it runs already)
    subgroup : name of its subgroup, empty for the whole pod group
    """

    task: int
    placed: int = 0
    minimum: int = 0
    subgroup: str = ""


@dataclass(frozen=True, slots=True)
class TopologyRefusal:
    """A topology constraint that cannot be met.

    Attributes
    ----------
    texts : messages
    details : the same messages with figures, if there are any
    domain : the domain that lacks room, empty if there is no single one
    subgroup : the subgroup with the constraint, empty for the whole pod group
    """

    texts: tuple[str, ...]
    details: tuple[str, ...] = ()
    domain: str = ""
    subgroup: str = ""


@dataclass(frozen=True, slots=True)
class DelayRefusal:
    """A pod group that may not cause evictions for `left_s` seconds more."""

    delay_s: float
    left_s: float


@dataclass(frozen=True, slots=True)
class DisruptionRefusal:
    """Limits on evictions that kept a search from taking victims."""

    limits: tuple[DisruptionLimit, ...]


@dataclass(frozen=True, slots=True)
class GroupFit:
    """One refusal of a pod group with its evidence."""

    reason: GroupReason
    evidence: (
        CapacityRefusal | GangShortfall | TopologyRefusal | DelayRefusal | DisruptionRefusal | str
    )


class FitLog:
    """Refusals of one cycle, by task and by pod group."""

    __slots__ = ("pod_groups", "tasks")

    def __init__(self) -> None:
        #: Task -> why it fits on no node.
        self.tasks: dict[int, TaskFit] = {}
        #: Pod group -> why it could not be placed.
        self.pod_groups: dict[int, list[GroupFit]] = {}

    def add_counts(self, task: int, counts: Mapping[NodeReason, int]) -> None:
        """Record how many nodes refused a task for which reasons."""
        self._of_task(task).counts.append(counts)

    def add_check(self, task: int, failure: CheckFailure) -> None:
        """Record a failed check, unless it is recorded already."""
        checks = self._of_task(task).checks
        if failure not in checks:
            checks.append(failure)

    def add_hopeless(self, task: int, failure: CheckFailure) -> None:
        """Record that evicting cannot help, unless a more specific failure is recorded already."""
        checks = self._of_task(task).checks
        if not checks:
            checks.append(replace(failure, stands_alone=True))

    def add_pod_group(self, pod_group: int, fit: GroupFit) -> None:
        """Record a refusal of a pod group, unless it is recorded already."""
        fits = self.pod_groups.setdefault(pod_group, [])
        if fit not in fits:
            fits.append(fit)

    def _of_task(self, task: int) -> TaskFit:
        fit = self.tasks.get(task)
        if fit is None:
            fit = self.tasks[task] = TaskFit()
        return fit
