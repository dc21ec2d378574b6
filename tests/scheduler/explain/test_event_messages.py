"""Events and conditions of what the scheduler does: binds, waits, and the five ways to lose one's place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kube.errors import ServerError
from kube.resources import (
    BINDREQUESTS,
    EVENTS,
    NODES,
    PODGROUPS,
    PODS,
    PRIORITY_CLASSES,
    QUEUES,
)
from scheduler.metrics import METRICS
from tests.scheduler.explain.waiting_pod import args, queues, sits, wants
from tests.scheduler.load.objects import group, meta, node, pod, queue
from tests.scheduler.loop.harness import FREE, Harness
from tests.scheduler.loop.harness import harness as open_harness

ONE_GPU = {"nvidia.com/gpu": "1"}
POOL = "kai.scheduler/node-pool"


@pytest.fixture
def harness() -> Iterator[Harness]:
    with open_harness() as opened:
        yield opened


def evict_events(harness: Harness, of: str) -> list[tuple[str, dict[str, str]]]:
    """Return (message, annotations) of the Evict events of a pod group."""
    events = [
        harness.gateway.raw(EVENTS, k[2], k[1])
        for k in list(harness.gateway.objects)
        if k[0] == EVENTS
    ]
    return sorted(
        (event["message"], event["metadata"].get("annotations", {}))
        for event in events
        if event["involvedObject"]["name"] == of
        and (event["type"], event["reason"]) == ("Normal", "Evict")
    )


def gone(harness: Harness, *names: str) -> list[bool]:
    return [
        "deletionTimestamp" in harness.gateway.raw(PODS, name, "ns")["metadata"] for name in names
    ]


# ------------------------------------------------------------------------------- places and waits


def test_a_bind_that_could_not_be_written(harness: Harness) -> None:
    queues(harness).seed(NODES, node("n0"))
    harness.gateway.fail_next("create", "bindrequests", ServerError("etcdserver: no leader"))
    wants(harness, ONE_GPU).cycle()
    text = "Failed to bind pod ns/p to node n0. etcdserver: no leader"
    assert harness.events("p") == [("Warning", "FailedBinding", text)]
    assert harness.condition("p") == {
        "type": "PodScheduled",
        "status": "False",
        "reason": "BindingError",
        "message": text,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }


def test_a_percent_sign_is_kept(harness: Harness) -> None:
    queues(harness).seed(NODES, node("n0"))
    harness.gateway.fail_next("create", "bindrequests", ServerError("disk 100%s full"))
    wants(harness, ONE_GPU).cycle()
    assert harness.events("p")[0][2] == "Failed to bind pod ns/p to node n0. disk 100%s full"


def test_a_gang_that_waits_for_pods_by_subgroup(harness: Harness) -> None:
    subgroups = [{"name": "lead", "minMember": 1}, {"name": "work", "minMember": 3}]
    queues(harness).seed(NODES, node("n0"))
    harness.seed(PODGROUPS, group("gang", subGroups=subgroups))
    label = "kai.scheduler/subgroup-name"
    harness.seed(PODS, pod("a", group="gang", labels={label: "work"}))
    gate = [{"name": "wait"}]
    harness.seed(PODS, pod("b", group="gang", labels={label: "work"}, schedulingGates=gate))
    harness.cycle()
    assert harness.events("gang") == [
        (
            "Normal",
            "NotReady",
            "Job is not ready for scheduling. Waiting for 1 pods for SubGroup lead, currently 0 exist, "
            "0 are gated. Waiting for 3 pods for SubGroup work, currently 2 exist, 1 are gated.",
        )
    ]
    assert (harness.events("a"), harness.condition("a"), harness.group_conditions("gang")) == (
        [],
        {},
        [],
    )


def test_gated_pods_of_a_group_that_is_not_ready(harness: Harness) -> None:
    queues(harness).seed(NODES, node("n0")).seed(PODGROUPS, group("gang", minMember=2))
    harness.seed(PODS, pod("a", group="gang"))
    harness.seed(PODS, pod("b", group="gang", schedulingGates=[{"name": "wait"}]))
    harness.cycle()
    text = "Job is not ready for scheduling. Waiting for 2 pods, currently 2 exist, 1 are gated"
    assert harness.events("gang") == [("Normal", "NotReady", text)]


def test_a_pod_of_a_subgroup_that_is_not_there(harness: Harness) -> None:
    """Told always, even where the group wants no conditions on its pods."""
    queues(harness).seed(NODES, node("n0")).seed(PODGROUPS, group("pg", markUnschedulable=False))
    harness.seed(PODS, pod("p", group="pg", labels={"kai.scheduler/subgroup-name": "nosuch"}))
    harness.cycle()
    text = 'Pod references subgroup "nosuch", which does not exist in PodGroup ns/pg'
    assert harness.events("p") == [("Warning", "Unschedulable", text)]
    assert (harness.condition("p")["reason"], harness.condition("p")["message"]) == (
        "Unschedulable",
        text,
    )


def test_a_pod_of_a_subgroup_that_is_not_there_hears_of_the_pool_it_is_tried_in(
    harness: Harness,
) -> None:
    queues(harness).seed(NODES, node("n0")).seed(PODGROUPS, group("pg", schedulingBackoff=1))
    harness.seed(PODS, pod("p", group="pg", labels={"kai.scheduler/subgroup-name": "nosuch"}))
    harness.cycle()
    text = 'Pod references subgroup "nosuch", which does not exist in PodGroup ns/pg'
    assert harness.condition("p")["message"] == f"Node-Pool 'default': {text}"
    assert harness.events("p") == [("Warning", "Unschedulable", f"Node-Pool 'default': {text}")]


# -------------------------------------------------------------------------------------- evictions


def _preempting(harness: Harness) -> None:
    queues(harness).seed(NODES, node("n0", gpus=2))
    harness.seed(PRIORITY_CLASSES, {"metadata": meta("high"), "value": 90})
    harness.seed(PODGROUPS, group("low", minMember=2))
    harness.seed(PODS, *(sits(f"low-{n}", ONE_GPU, group="low") for n in range(2)))
    harness.seed(PODGROUPS, group("pg", priorityClassName="high"))
    harness.seed(PODS, pod("p", group="pg", requests=ONE_GPU))


def test_preemption(harness: Harness) -> None:
    _preempting(harness)
    before = _counted("preempt")
    harness.cycle()
    annotations = {
        "num-evicted-pods": "2",
        "evictor-action-type": "preempt",
        "evictor-pod-group-name": "pg",
        "evictor-pod-group-namespace": "ns",
    }
    assert evict_events(harness, "low") == [
        (f"Pod ns/low-{n} was preempted by higher priority workload ns/pg", annotations)
        for n in range(2)
    ]
    assert gone(harness, "low-0", "low-1") == [True, True]
    text = "Pod ns/p was pipelined to node n0"
    assert ("Normal", "Pipelined", text) in harness.events("p")
    assert _counted("preempt") - before == 2


def _counted(action: str) -> float:
    labels = {"podgroup": "low", "namespace": "ns", "uid": "uid-low", "nodepool": "default"}
    name = "kai_pod_group_evicted_pods_total"
    return METRICS.registry.get_sample_value(name, {**labels, "action": action}) or 0.0


def _reclaiming(harness: Harness) -> None:
    free = {"cpu": FREE, "memory": FREE}
    resources = {"gpu": {"quota": 1, "limit": -1, "overQuotaWeight": 1}, **free}
    harness.seed(QUEUES, queue("top", resources={**free, "gpu": FREE}))
    harness.seed(
        QUEUES,
        queue("left", parentQueue="top", displayName="Left", priority=90, resources=resources),
    )
    harness.seed(QUEUES, queue("right", parentQueue="top", resources=resources))
    harness.seed(NODES, node("n0", gpus=2))
    for index in range(2):
        harness.seed(PODGROUPS, group(f"l{index}", queue="left"))
        harness.seed(PODS, sits(f"l{index}-0", {**ONE_GPU, "cpu": "500m"}, group=f"l{index}"))
    harness.seed(PODGROUPS, group("pg", queue="right"))
    harness.seed(PODS, pod("p", group="pg", requests={**ONE_GPU, "memory": "2G"}))


def test_a_reclaim_event_names_both_queues(harness: Harness) -> None:
    _reclaiming(harness)
    harness.cycle()
    ((message, annotations),) = evict_events(harness, "l0") + evict_events(harness, "l1")
    victim = "l0-0" if gone(harness, "l0-0") == [True] else "l1-0"
    assert message == (
        f"Pod ns/{victim} was preempted by workload ns/pg.\n"
        "Left uses <GPU: 2, CPU: 1 (cores), memory: 0 (GB)> with a quota of <GPU: 1, CPU: Unlimited "
        "(cores), memory: Unlimited (GB)>, fair-share of <GPU: 1, CPU: 1 (cores), memory: 0 (GB)> and "
        "queue priority of <90>.\n"
        "right uses <GPU: 0, CPU: 0 (cores), memory: 0 (GB)> with a quota of <GPU: 1, CPU: Unlimited "
        "(cores), memory: Unlimited (GB)>, fair-share of <GPU: 1, CPU: 0 (cores), memory: 2 (GB)> and "
        "queue priority of <100>."
    )
    assert annotations == {
        "num-evicted-pods": "1",
        "evictor-action-type": "reclaim",
        "evictor-pod-group-name": "pg",
        "evictor-pod-group-namespace": "ns",
    }


def test_consolidation(harness: Harness) -> None:
    queues(harness).seed(NODES, node("n0", gpus=2), node("n1", gpus=2))
    harness.seed(PODGROUPS, group("a"), group("b"))
    harness.seed(PODS, sits("a-0", ONE_GPU, group="a"))
    harness.seed(PODS, pod("b-0", group="b", node="n1", phase="Running", requests=ONE_GPU))
    wants(harness, {"nvidia.com/gpu": "2"}).cycle()
    ((message, annotations),) = evict_events(harness, "a") + evict_events(harness, "b")
    victim = "a-0" if gone(harness, "a-0") == [True] else "b-0"
    assert message == (
        f"Pod ns/{victim} was preempted and rescheduled due to bin packing (resource consolidation) "
        "procedure"
    )
    assert annotations == {
        "num-evicted-pods": "1",
        "evictor-action-type": "consolidation",
        "evictor-pod-group-name": "pg",
        "evictor-pod-group-namespace": "ns",
    }


LONG_AGO = {"kai.scheduler/stale-podgroup-timestamp": "2025-12-31T23:00:00Z"}


def test_a_stale_gang(harness: Harness) -> None:
    queues(harness).seed(NODES, node("n0"))
    harness.seed(PODGROUPS, group("gang", minMember=3, annotations=LONG_AGO))
    harness.seed(PODS, *(sits(f"g{n}", ONE_GPU, group="gang") for n in range(2)))
    harness.cycle()
    annotations = {"num-evicted-pods": "2", "evictor-action-type": "stalegangeviction"}
    assert evict_events(harness, "gang") == [
        (
            "Workload doesn't meet the minimum required number of pods (3), evicting remaining pod: "
            f"ns/g{n}",
            annotations,
        )
        for n in range(2)
    ]
    assert gone(harness, "g0", "g1") == [True, True]
    other_events = [event for event in harness.events("gang") if event[1] != "Evict"]
    assert other_events == [
        ("Normal", "StaleJob", "Job is stale. 2 pods are active, minMember is 3")
    ]


def test_a_gang_that_has_just_become_stale_is_told_so(harness: Harness) -> None:
    queues(harness).seed(NODES, node("n0")).seed(PODGROUPS, group("gang", minMember=3))
    harness.seed(PODS, *(sits(f"g{n}", ONE_GPU, group="gang") for n in range(2)))
    harness.cycle()
    text = "Job is stale. 2 pods are active, minMember is 3"
    assert harness.events("gang") == [("Normal", "StaleJob", text)]
    annotations = harness.gateway.raw(PODGROUPS, "gang", "ns")["metadata"]["annotations"]
    assert annotations["kai.scheduler/stale-podgroup-timestamp"] == "2026-01-01T00:00:00Z"


def _with_subgroups(harness: Harness, **more: Any) -> None:
    subgroups = [{"name": "lead", "minMember": 1}, {"name": "work", "minMember": 2}]
    queues(harness).seed(NODES, node("n0")).seed(
        PODGROUPS, group("gang", subGroups=subgroups, **more)
    )
    label = "kai.scheduler/subgroup-name"
    harness.seed(PODS, sits("l", ONE_GPU, group="gang", labels={label: "lead"}))
    harness.seed(PODS, sits("w", ONE_GPU, group="gang", labels={label: "work"}))
    harness.seed(PODS, sits("x", ONE_GPU, group="gang", labels={label: "gone"}))


def test_a_stale_gang_names_the_subgroup(harness: Harness) -> None:
    _with_subgroups(harness)
    harness.cycle()
    assert harness.events("gang") == [
        (
            "Normal",
            "StaleJob",
            "Job is stale. 2 pods are active, minMember is 3, subGroup work minMember is 2 and 1 pods "
            "are active",
        )
    ]


def test_what_is_left_of_a_gang_with_subgroups_goes_and_strays_with_it(harness: Harness) -> None:
    _with_subgroups(harness, annotations=LONG_AGO)
    harness.cycle()
    lacking = "Workload doesn't meet the minimum required number of pods"
    annotations = {"num-evicted-pods": "3", "evictor-action-type": "stalegangeviction"}
    assert evict_events(harness, "gang") == [
        (f"{lacking} (2) in sub-group work, evicting remaining pod: ns/l", annotations),
        (f"{lacking} (2) in sub-group work, evicting remaining pod: ns/w", annotations),
        (f"{lacking} in sub-group gone, evicting remaining pod: ns/x", annotations),
    ]
    assert gone(harness, "l", "w", "x") == [True, True, True]


# ------------------------------------------------------------------------------- disruption target


def test_a_victim_gets_its_condition_before_its_deletion(harness: Harness) -> None:
    _preempting(harness)
    args(harness, update_pod_eviction_condition="true", use_eviction_api="false").cycle()
    calls = [c[:3] for c in harness.gateway.calls if c[1] == "pods" and c[2] == "low-0"]
    assert calls == [("patch", "pods", "low-0"), ("delete", "pods", "low-0")]
    conditions = harness.gateway.raw(PODS, "low-0", "ns")["status"]["conditions"]
    assert conditions == [
        {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": "Pod ns/low-0 was preempted by higher priority workload ns/pg",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
    ]


def test_a_victim_whose_condition_could_not_be_written_is_not_deleted(harness: Harness) -> None:
    _preempting(harness)
    args(harness, update_pod_eviction_condition="true", use_eviction_api="false")
    for _ in range(2):
        harness.gateway.fail_next("patch", "pods", ServerError("busy"))
    summary = harness.cycle()
    assert gone(harness, "low-0", "low-1") == [False, False]
    assert evict_events(harness, "low") == []
    assert summary.commit.evicted == []
    assert [what for what, _ in summary.commit.failures] == [
        "eviction of pod ns/low-0",
        "eviction of pod ns/low-1",
    ]


def test_without_the_setting_a_deleted_victim_just_goes(harness: Harness) -> None:
    _preempting(harness)
    args(harness, use_eviction_api="false").cycle()
    assert "conditions" not in harness.gateway.raw(PODS, "low-0", "ns")["status"]
    assert harness.gateway.names(BINDREQUESTS) == []


def test_the_api_servers_condition_of_an_evicted_pod_is_replaced_by_the_reason(
    harness: Harness,
) -> None:
    _preempting(harness)
    args(harness, update_pod_eviction_condition="true").cycle()
    calls = [c[:3] for c in harness.gateway.calls if c[1] == "pods" and c[2] == "low-0"]
    assert calls == [("evict", "pods", "low-0"), ("patch", "pods", "low-0")]
    [condition] = harness.gateway.raw(PODS, "low-0", "ns")["status"]["conditions"]
    assert (condition["type"], condition["reason"], condition["message"]) == (
        "DisruptionTarget",
        "PreemptionByScheduler",
        "Pod ns/low-0 was preempted by higher priority workload ns/pg",
    )
