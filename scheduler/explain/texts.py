"""The messages of a cycle: pure functions from what was refused or decided to text.

Tools match these texts, so they equal those of KAI exactly, including odd spacing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from kube.keys import MIG_PREFIX
from scheduler.core.arrays import Amounts
from scheduler.core.cluster.amount_text import human_amount
from scheduler.core.cluster.disruption_limits import DisruptionLimit, LimitKind
from scheduler.core.decisions import ActionName, Evict, EvictReason, QueueSide, TaskRef
from scheduler.core.session.fit import (
    CheckFailure,
    GangShortfall,
    NodeReason,
    NodeReasonKind,
    TaskFit,
)

NO_NODES = "no nodes with enough resources were found"
#: How many limits on evictions one message names.
NAMED_LIMITS = 3
UNABLE_TO_SCHEDULE_GROUP = "Unable to schedule podgroup"
UNABLE_TO_SCHEDULE_POD = "Unable to schedule pod"

_RESOURCE_WORDS = {"gpu": "GPUs", "cpu": "CPU cores", "memory": "memory"}
_PLAIN = {
    NodeReasonKind.INSUFFICIENT_GPU_MEMORY: "node(s) didn't have enough resources: GPU memory",
    NodeReasonKind.FRACTION_ON_DRA_NODE: (
        "fractional/shared GPU pods are not yet supported on DRA-only nodes"
    ),
    NodeReasonKind.WHOLE_ON_DRA_NODE: (
        "the node offers its GPUs to device claims only, and no device class provides them as a resource"
    ),
    NodeReasonKind.MIG_ON_PLAIN_NODE: "MIG job cannot be scheduled on non-MIG node",
    NodeReasonKind.NOT_WHOLE_ON_SINGLE: (
        "only whole gpu jobs can run on a node with MigStrategy='single'"
    ),
    NodeReasonKind.NOT_MIG_ON_MIXED: ("non MIG jobs cant run on a node with MigStrategy='mixed'"),
    NodeReasonKind.POD_SLOTS: "node(s) pod number exceeded",
    NodeReasonKind.UNSCHEDULABLE: "node is unschedulable",
    NodeReasonKind.NOT_READY: "node has NotReady condition",
    NodeReasonKind.PORTS: "node(s) didn't have free ports for the requested pod ports",
    NodeReasonKind.TAINT: "node(s) had untolerated taint(s)",
    NodeReasonKind.NODE_AFFINITY: "node(s) didn't match Pod's node affinity/selector",
    NodeReasonKind.POD_AFFINITY: "node(s) didn't match pod affinity rules",
    NodeReasonKind.POD_ANTI_AFFINITY: "node(s) didn't match pod anti-affinity rules",
    NodeReasonKind.EXISTING_ANTI_AFFINITY: (
        "node(s) didn't satisfy existing pods anti-affinity rules"
    ),
    NodeReasonKind.NUMA: (
        "node cannot NUMA-align the pod's resources under its Topology Manager policy"
    ),
}


def node_reason(reason: NodeReason, task: TaskRef, capacity_text: str = "") -> str:
    """Return the short text of one node's refusal.

    Parameters
    ----------
    capacity_text : why the queue refuses, for a reason of kind `OVER_CAPACITY`
    """
    return _reason(reason, task, capacity_text) + overhead_suffix(reason)


def overhead_suffix(reason: NodeReason) -> str:
    """Return what to add where only the pod's overhead makes it too large for a node."""
    if not reason.overhead:
        return ""
    return (
        ". Not enough resources due to pod overhead resources. "
        f"The overhead resources are {reason.overhead}"
    )


def _reason(reason: NodeReason, task: TaskRef, capacity_text: str) -> str:
    plain = _PLAIN.get(reason.kind)
    if plain is not None:
        return plain
    pod = f"<{task.namespace}/{task.name}>"
    match reason.kind:
        case NodeReasonKind.INSUFFICIENT:
            return _insufficient(reason.subject)
        case NodeReasonKind.OVER_CAPACITY:
            return (
                f"node does not have enough capacity. Reason: {reason.subject}, "
                f"Details: {capacity_text}"
            )
        case NodeReasonKind.LEGACY_MIG:
            return f"Legacy MIG jobs cannot be scheduled on node {reason.subject or reason.node}"
        case NodeReasonKind.MIG_BESIDE_LEGACY_MIG:
            return f"MIG job cannot be scheduled on node with legacy MIG jobs: {reason.subject}"
        case NodeReasonKind.GPU_MEMORY_UNKNOWN:
            return (
                "node is not a gpu node or the gpu memory count on the node was not synced yet, "
                f"task: {pod}, node: <{reason.node}>"
            )
        case NodeReasonKind.CONDITION:
            return f"node has {reason.subject} condition"
        case NodeReasonKind.DEVICES:
            if reason.subject:
                return f"cannot allocate DRA claims on node {reason.node}: {reason.subject}"
            return f"cannot allocate all DRA claims on node {reason.node}"
        case NodeReasonKind.CLAIM_ELSEWHERE:
            return f"claim {reason.subject} node selector does not match node {reason.node}"
        case NodeReasonKind.GPU_MODEL:
            return f"node(s) had a GPU model of which {reason.subject}"
        case NodeReasonKind.NOT_GPU_WORKER:
            return f"gpu task: {pod} can't run on non gpu nodes, node: <{reason.node}>"
        case NodeReasonKind.NOT_CPU_WORKER:
            return f"cpu task: {pod} can't run on non cpu nodes, node: <{reason.node}>"
        case _:
            return reason.subject or reason.kind.value


def task_message(
    task: TaskRef,
    checks: Sequence[CheckFailure],
    counts: Mapping[str, int],
) -> str:
    """Return the message of one pod: failed checks, then nodes counted by reason."""
    base = checks_message(task, checks) if checks else NO_NODES
    if not counts:
        return base
    entries = sorted(f"{count} {text}" for text, count in counts.items())
    return f"{base}: {_joined(entries)}"


def checks_message(task: TaskRef, checks: Sequence[CheckFailure]) -> str:
    """Return the message of failed checks that need no node; `checks` is not empty."""
    named = [check for check in checks if not check.stands_alone]
    if not named or checks[0].stands_alone:
        return checks[0].text
    lines = [f"{check.check}: {check.text}.{_further(check)}\n" for check in named]
    head = f"Scheduling conditions were not met for pod {task.namespace}/{task.name}:\n"
    return head + "".join(lines)


def counted_reasons(fit: TaskFit, task: TaskRef, capacity_text: str = "") -> dict[str, int]:
    """Return text -> number of nodes that refused for that reason, over all attempts."""
    counts: Counter[str] = Counter()
    for reason, count in fit.reasons().items():
        counts[node_reason(reason, task, capacity_text)] += count
    return dict(counts)


def shortfall_message(shortfall: GangShortfall, task: TaskRef, because: str) -> str:
    """Return why a gang has no room: how many pods found some, and what the next one lacks (`because`)."""
    if shortfall.minimum == 0:
        return f"Resources were not found for pod {task.namespace}/{task.name} due to: {because}"
    if not shortfall.subgroup:
        return (
            f"Resources were found for {shortfall.placed} pods while {shortfall.minimum} are "
            f"required for gang scheduling. Additional pods cannot be scheduled due to: {because}"
        )
    return (
        f"Resources were found for {shortfall.placed} pods from all sub-groups while sub-group "
        f"{shortfall.subgroup} requires {shortfall.minimum} pods for gang scheduling. "
        f"Additional pods cannot be scheduled in this sub-group due to: {because}"
    )


def disruption_message(limits: Sequence[DisruptionLimit]) -> str:
    """Return which limits on evictions keep pods in place; beyond the first few they are counted."""
    texts = [_limit_text(limit) for limit in limits[:NAMED_LIMITS]]
    if len(limits) > NAMED_LIMITS:
        texts.append(f"{len(limits) - NAMED_LIMITS} more limits on evictions")
    return f"Evictions that could make room are not allowed now: {'; '.join(texts)}"


def _limit_text(limit: DisruptionLimit) -> str:
    pods = "pod" if limit.allowed == 1 else "pods"
    match limit.kind:
        case LimitKind.BUDGET:
            return f"disruption budget {limit.subject} allows {limit.allowed} {pods}"
        case LimitKind.SEVERAL_BUDGETS:
            return f"disruption budgets {limit.subject} select the same pod, which rules out its eviction"
        case LimitKind.OWNER:
            return f"{limit.allowed} more {pods} of {limit.subject} may be evicted now"
    return f"the eviction of pod {limit.subject} was refused ({limit.detail})"


def group_message(reasons: Sequence[tuple[str, Sequence[str]]]) -> str:
    """Return the message of a pod group from its reasons, each with its messages."""
    head = _head(reasons)
    messages = Counter(
        message for _, messages_of_reason in reasons for message in messages_of_reason
    )
    if not messages:
        return head
    entries = sorted(
        f"{count} {message}" if count > 1 else message for message, count in messages.items()
    )
    return f"{head}: {_joined(entries)}"


def detailed_group_message(reasons: Sequence[tuple[str, str]]) -> str:
    """Return the long message of a pod group from its reasons, each with its detail."""
    return f"\n{_head(reasons)}." + "".join(sorted(f"\n{detail}." for _, detail in reasons))


def group_detail(messages: Sequence[str], *, subgroup: str = "", domain: str = "") -> str:
    """Return one reason of a pod group in the long form, with its subgroup and topology domain if any."""
    text = ", ".join(messages)
    if subgroup:
        text = f"subgroup {subgroup}: {text}"
    return f"<{domain}>: {text}" if domain else text


def not_ready_message(unready: Iterable[tuple[str, int, int, int]]) -> str:
    """Return why a pod group cannot be tried yet.

    Parameters
    ----------
    unready : (subgroup or "", minimum, alive, gated) of each pod set that lacks pods
    """
    parts = ["Job is not ready for scheduling."]
    for subgroup, minimum, alive, gated in unready:
        if subgroup:
            parts.append(
                f" Waiting for {minimum} pods for SubGroup {subgroup}, currently {alive} exist, "
                f"{gated} are gated."
            )
        else:
            parts.append(f" Waiting for {minimum} pods, currently {alive} exist, {gated} are gated")
    return "".join(parts)


def stale_message(active: int, minimum: int, lacking: Iterable[tuple[str, int, int]]) -> str:
    """Return what is wrong with a stale gang; `lacking` are (subgroup, minimum, active)."""
    text = f"Job is stale. {active} pods are active, minMember is {minimum}"
    for subgroup, least, running in lacking:
        text += f", subGroup {subgroup} minMember is {least} and {running} pods are active"
    return text


def evict_message(decision: Evict) -> str:
    """Return the message of a victim's event."""
    pod = f"{decision.task.namespace}/{decision.task.name}"
    reason = decision.reason
    evictor = f"{reason.evictor_namespace}/{reason.evictor}"
    match reason.action:
        case ActionName.PREEMPT:
            return f"Pod {pod} was preempted by higher priority workload {evictor}"
        case ActionName.RECLAIM:
            text = f"Pod {pod} was preempted by workload {evictor}."
            if reason.victim_side is None or reason.evictor_side is None:
                return text
            text = f"{text}\n{_side(reason.victim_side)}\n{_side(reason.evictor_side)}"
            return f"{text}\n{_in_quota(reason)}" if reason.in_quota else text
        case ActionName.CONSOLIDATION:
            return (
                f"Pod {pod} was preempted and rescheduled due to bin packing "
                "(resource consolidation) procedure"
            )
        case _:
            return _stale_eviction(pod, reason.stale_subgroup, reason.stale_minimum)


def amounts(triple: Amounts) -> str:
    """Return the text of (millicores, bytes, GPUs), in cores and GB."""
    return (
        f"GPU: {human_amount(triple[2], 2)}, CPU: {human_amount(triple[0], 0)} (cores), "
        f"memory: {human_amount(triple[1], 1)} (GB)"
    )


def _stale_eviction(pod: str, subgroup: str, minimum: int | None) -> str:
    least = "" if minimum is None else f" ({minimum})"
    place_text = f" in sub-group {subgroup}" if subgroup else ""
    return (
        f"Workload doesn't meet the minimum required number of pods{least}{place_text}, "
        f"evicting remaining pod: {pod}"
    )


def _side(side: QueueSide) -> str:
    return (
        f"{side.name} uses <{amounts(side.allocated)}> with a quota of <{amounts(side.quota)}>, "
        f"fair-share of <{amounts(side.fair_share)}> and queue priority of <{side.priority}>."
    )


def _in_quota(reason: EvictReason) -> str:
    """Return the rule that took within quota; KAI has none such, so nothing is appended without it."""
    assert reason.victim_side is not None
    assert reason.evictor_side is not None
    return (
        f"{reason.victim_side.name} is within its quota, but {reason.evictor_side.name} has a higher queue priority "
        "and reclaims within its own quota (reclaim-in-quota-by-priority)."
    )


def _insufficient(resource: str) -> str:
    if resource.startswith(MIG_PREFIX):
        return f"node(s) didn't have enough of mig profile: {resource}"
    word = _RESOURCE_WORDS.get(resource, resource)
    return f"node(s) didn't have enough resources: {word}"


def _head(reasons: Sequence[tuple[str, object]]) -> str:
    return reasons[0][0] if len(reasons) == 1 else UNABLE_TO_SCHEDULE_GROUP


def _further(check: CheckFailure) -> str:
    return f" Reasons: {', '.join(check.reasons)}" if check.reasons else ""


def _joined(entries: Iterable[str]) -> str:
    return ". \n".join(entries) + "."
