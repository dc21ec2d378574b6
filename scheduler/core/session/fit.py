"""Why things did not fit, as facts with evidence; the words people read are made from them elsewhere.

Looking and finding nothing is the commonest thing a full cluster does, so a refusal is cheap: tasks of
one class that fail against the same state share one count of reasons.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from scheduler.core.fairshare.capacity import CapacityRefusal


class NodeReasonKind(StrEnum):
    """What about a node turned a task away."""

    INSUFFICIENT = "insufficient"  # subject: resource name
    INSUFFICIENT_GPU_MEMORY = "insufficient-gpu-memory"
    OVER_CAPACITY = "over-capacity"  # subject: reason, figures: the refusal
    LEGACY_MIG = "legacy-mig"  # subject: node
    FRACTION_ON_DRA_NODE = "fraction-on-dra-node"
    MIG_ON_PLAIN_NODE = "mig-on-plain-node"
    MIG_BESIDE_LEGACY_MIG = "mig-beside-legacy-mig"  # subject: the legacy pods
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
    DEVICES = "devices"
    CLAIM_ELSEWHERE = "claim-elsewhere"  # subject: the claim
    NUMA = "numa"


@dataclass(frozen=True, slots=True)
class NodeReason:
    """One reason of one node; equal reasons of many nodes are counted together.

    `node` is filled only where the text names the node, because then every node has its own reason.
    `overhead`: the pod's overhead in words, where the node lacks no more than that.
    """

    kind: NodeReasonKind
    subject: str = ""
    node: str = ""
    refusal: CapacityRefusal | None = None
    overhead: str = ""


@dataclass(frozen=True, slots=True)
class CheckFailure:
    """A check that needs no node failed (a missing config map, a request larger than any node).

    `check` is the name of the check, `text` its message, `reasons` further lines of the same check.
    `is_victim_invariant`: no eviction can cure it. `stands_alone`: the text is all there is to say.
    """

    check: str
    text: str
    reasons: tuple[str, ...] = ()
    is_victim_invariant: bool = False
    stands_alone: bool = False


@dataclass(slots=True)
class TaskFit:
    """All that turned one task away in this cycle; attempts add up."""

    checks: list[CheckFailure] = field(default_factory=list)
    counts: list[Mapping[NodeReason, int]] = field(default_factory=list)

    def reasons(self) -> Counter[NodeReason]:
        """Return how many rejections each reason has over all attempts."""
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


@dataclass(frozen=True, slots=True)
class GangShortfall:
    """The gang stopped at `task`; `placed` tasks had found room before.

    `minimum` 0: not a matter of the gang (a single task, or the minimum runs already).
    """

    task: int
    placed: int = 0
    minimum: int = 0
    subgroup: str = ""


@dataclass(frozen=True, slots=True)
class TopologyRefusal:
    """A topology wish that cannot be met, in words.

    `texts`: what is wrong; `details`: the same with figures, where there are any; `domain`: the domain
    that lacks room, if one is named; `subgroup`: whose wish it was, empty for the whole group's.
    """

    texts: tuple[str, ...]
    details: tuple[str, ...] = ()
    domain: str = ""
    subgroup: str = ""


@dataclass(frozen=True, slots=True)
class DelayRefusal:
    """Evictions are not allowed before `until` (seconds relative to the cycle)."""

    delay_s: float
    until: float


@dataclass(frozen=True, slots=True)
class GroupFit:
    """One refusal of a pod group with its evidence."""

    reason: GroupReason
    evidence: CapacityRefusal | GangShortfall | TopologyRefusal | DelayRefusal | str


class FitLog:
    """Refusals of one cycle, by task and by pod group."""

    __slots__ = ("pod_groups", "tasks")

    def __init__(self) -> None:
        self.tasks: dict[int, TaskFit] = {}
        self.pod_groups: dict[int, list[GroupFit]] = {}

    def add_counts(self, task: int, counts: Mapping[NodeReason, int]) -> None:
        """Record that nodes turned a task away."""
        self._of_task(task).counts.append(counts)

    def add_check(self, task: int, failure: CheckFailure) -> None:
        """Record a failed check; the same one twice counts once."""
        checks = self._of_task(task).checks
        if failure not in checks:
            checks.append(failure)

    def add_hopeless(self, task: int, failure: CheckFailure) -> None:
        """Record that no eviction would help a task; what placing it said before stands, as it says more."""
        checks = self._of_task(task).checks
        if not checks:
            checks.append(replace(failure, stands_alone=True))

    def add_pod_group(self, group: int, fit: GroupFit) -> None:
        """Record a refusal of a pod group; the same one twice counts once."""
        fits = self.pod_groups.setdefault(group, [])
        if fit not in fits:
            fits.append(fit)

    def _of_task(self, task: int) -> TaskFit:
        found = self.tasks.get(task)
        if found is None:
            found = self.tasks[task] = TaskFit()
        return found
