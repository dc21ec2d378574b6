"""The messages of events and conditions, word for word."""

from __future__ import annotations

import pytest

from scheduler.core.decisions import ActionName, Evict, EvictReason, QueueSide, TaskRef
from scheduler.core.session.fit import CheckFailure, GangShortfall, NodeReason, TaskFit
from scheduler.core.session.fit import NodeReasonKind as Kind
from scheduler.explain import texts

POD = TaskRef("ns", "p", "uid")


def evict(reason: EvictReason) -> str:
    return texts.evict_message(Evict(POD, "victim", "ns", "n0", reason))


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        (NodeReason(Kind.INSUFFICIENT, "gpu"), "node(s) didn't have enough resources: GPUs"),
        (NodeReason(Kind.INSUFFICIENT, "cpu"), "node(s) didn't have enough resources: CPU cores"),
        (NodeReason(Kind.INSUFFICIENT, "memory"), "node(s) didn't have enough resources: memory"),
        (NodeReason(Kind.INSUFFICIENT, "x/y"), "node(s) didn't have enough resources: x/y"),
        (
            NodeReason(Kind.INSUFFICIENT, "nvidia.com/mig-1g.5gb"),
            "node(s) didn't have enough of mig profile: nvidia.com/mig-1g.5gb",
        ),
        (NodeReason(Kind.POD_SLOTS), "node(s) pod number exceeded"),
        (NodeReason(Kind.TAINT), "node(s) had untolerated taint(s)"),
        (NodeReason(Kind.CONDITION, "DiskPressure"), "node has DiskPressure condition"),
        (
            NodeReason(Kind.GPU_MEMORY_UNKNOWN, node="n1"),
            "node is not a gpu node or the gpu memory count on the node was not synced yet, "
            "task: <ns/p>, node: <n1>",
        ),
        (
            NodeReason(Kind.NOT_GPU_WORKER, node="n1"),
            "gpu task: <ns/p> can't run on non gpu nodes, node: <n1>",
        ),
        (
            NodeReason(Kind.DEVICES, "the search took too long", node="n"),
            "cannot allocate DRA claims on node n: the search took too long",
        ),
        (
            NodeReason(Kind.DEVICES, node="n"),
            "cannot allocate all DRA claims on node n",
        ),
        (
            NodeReason(Kind.OVER_CAPACITY, "OverLimit"),
            "node does not have enough capacity. Reason: OverLimit, Details: the queue is full",
        ),
    ],
)
def test_node_reasons(reason: NodeReason, text: str) -> None:
    assert texts.node_reason(reason, POD, capacity_text="the queue is full") == text


def test_every_kind_of_reason_has_a_message() -> None:
    for kind in Kind:
        assert texts.node_reason(NodeReason(kind, "subject", "node"), POD) not in ("", kind.value)


def test_task_message_counts_and_sorts() -> None:
    fit = TaskFit(
        counts=[
            {NodeReason(Kind.INSUFFICIENT, "gpu"): 3, NodeReason(Kind.TAINT): 1},
            {NodeReason(Kind.TAINT): 1},
        ]
    )
    counts = texts.counted_reasons(fit, POD)
    assert texts.task_message(POD, [], counts) == (
        "no nodes with enough resources were found: 2 node(s) had untolerated taint(s). \n"
        "3 node(s) didn't have enough resources: GPUs."
    )
    assert texts.task_message(POD, [], {}) == "no nodes with enough resources were found"


def test_failed_checks_are_listed() -> None:
    checks = [
        CheckFailure("ConfigMap", "Missing required configmaps: [a b]"),
        CheckFailure("NodeAffinity", "no", ("r1", "r2")),
    ]
    assert texts.checks_message(POD, checks) == (
        "Scheduling conditions were not met for pod ns/p:\n"
        "ConfigMap: Missing required configmaps: [a b].\n"
        "NodeAffinity: no. Reasons: r1, r2\n"
    )


@pytest.mark.parametrize(
    ("shortfall", "text"),
    [
        (GangShortfall(0), "Resources were not found for pod ns/p due to: why"),
        (
            GangShortfall(0, placed=2, minimum=4),
            "Resources were found for 2 pods while 4 are required for gang scheduling. "
            "Additional pods cannot be scheduled due to: why",
        ),
        (
            GangShortfall(0, placed=5, minimum=3, subgroup="workers"),
            "Resources were found for 5 pods from all sub-groups while sub-group workers requires "
            "3 pods for gang scheduling. Additional pods cannot be scheduled in this sub-group "
            "due to: why",
        ),
    ],
)
def test_gang_shortfalls(shortfall: GangShortfall, text: str) -> None:
    assert texts.shortfall_message(shortfall, POD, "why") == text


def test_group_message_merges_equal_messages() -> None:
    assert texts.group_message([]) == "Unable to schedule podgroup"
    assert texts.group_message([("OverLimit", ["full"])]) == "OverLimit: full."
    assert texts.group_message([("A", ["same"]), ("B", ["same", "other"])]) == (
        "Unable to schedule podgroup: 2 same. \nother."
    )


def test_the_long_group_message_has_a_line_for_each_reason() -> None:
    assert texts.detailed_group_message([]) == "\nUnable to schedule podgroup."
    assert texts.detailed_group_message([("OverLimit", "full")]) == "\nOverLimit.\nfull."
    lacking = texts.group_detail(("no GPUs", "no memory"), subgroup="workers", domain="a.r1")
    assert texts.detailed_group_message([("A", lacking), ("B", "also")]) == (
        "\nUnable to schedule podgroup.\n<a.r1>: subgroup workers: no GPUs, no memory.\nalso."
    )


def test_not_ready_and_stale() -> None:
    assert texts.not_ready_message([("", 3, 2, 1)]) == (
        "Job is not ready for scheduling. Waiting for 3 pods, currently 2 exist, 1 are gated"
    )
    assert texts.not_ready_message([("a", 2, 1, 0), ("b", 1, 0, 0)]) == (
        "Job is not ready for scheduling."
        " Waiting for 2 pods for SubGroup a, currently 1 exist, 0 are gated."
        " Waiting for 1 pods for SubGroup b, currently 0 exist, 0 are gated."
    )
    assert texts.stale_message(1, 3, [("a", 2, 1)]) == (
        "Job is stale. 1 pods are active, minMember is 3"
        ", subGroup a minMember is 2 and 1 pods are active"
    )


def test_reclaim_writes_events_on_both_pod_groups() -> None:
    inf = float("inf")
    victim = QueueSide("left", (500.0, 2e9, 3.0), (inf, inf, 2.0), (inf, inf, 2.5), 100)
    evictor = QueueSide("right", (0.0, 0.0, 0.0), (1000.0, 1e9, 4.0), (1000.0, 1e9, 4.0), 50)
    reason = EvictReason(ActionName.RECLAIM, 1, "mine", "other", victim, evictor)
    assert evict(reason) == (
        "Pod ns/p was preempted by workload other/mine.\n"
        "left uses <GPU: 3, CPU: 0.5 (cores), memory: 2 (GB)> with a quota of "
        "<GPU: 2, CPU: Unlimited (cores), memory: Unlimited (GB)>, fair-share of "
        "<GPU: 2.5, CPU: Unlimited (cores), memory: Unlimited (GB)> and queue priority of <100>.\n"
        "right uses <GPU: 0, CPU: 0 (cores), memory: 0 (GB)> with a quota of "
        "<GPU: 4, CPU: 1 (cores), memory: 1 (GB)>, fair-share of "
        "<GPU: 4, CPU: 1 (cores), memory: 1 (GB)> and queue priority of <50>."
    )
    bare = EvictReason(ActionName.RECLAIM, 1, "mine", "other")
    assert evict(bare) == "Pod ns/p was preempted by workload other/mine."


def test_other_evictions() -> None:
    assert evict(EvictReason(ActionName.CONSOLIDATION)) == (
        "Pod ns/p was preempted and rescheduled due to bin packing "
        "(resource consolidation) procedure"
    )
    assert evict(EvictReason(ActionName.STALE_GANG_EVICTION, stale_minimum=3)) == (
        "Workload doesn't meet the minimum required number of pods (3), "
        "evicting remaining pod: ns/p"
    )
    assert evict(
        EvictReason(ActionName.STALE_GANG_EVICTION, stale_subgroup="w", stale_minimum=2)
    ) == (
        "Workload doesn't meet the minimum required number of pods (2) in sub-group w, "
        "evicting remaining pod: ns/p"
    )
