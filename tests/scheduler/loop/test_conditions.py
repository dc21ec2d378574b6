"""What a cycle writes about work that waits or starts: events and conditions, and which are not repeated."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kube.resources import BINDREQUESTS, NODES, PODGROUPS, PODS, SHARDS
from tests.scheduler.load.objects import group, meta, node, pod
from tests.scheduler.loop.harness import NOTHING, Harness
from tests.scheduler.loop.harness import harness as open_harness


@pytest.fixture
def harness() -> Iterator[Harness]:
    with open_harness() as opened:
        yield opened


# --------------------------------------------------------------------------------------- messages


def test_pod_too_large_for_the_free_room(harness: Harness) -> None:
    harness.cluster(nodes=2, gpus=4)
    harness.seed(PODS, pod("busy-0", node="n0", phase="Running", requests={"nvidia.com/gpu": "2"}))
    harness.seed(PODS, pod("busy-1", node="n1", phase="Running", requests={"nvidia.com/gpu": "2"}))
    harness.pending("pg", gpus=4)
    summary = harness.cycle()
    text = (
        "no nodes with enough resources were found: 2 node(s) didn't have enough resources: GPUs."
    )
    assert harness.events("pg-0") == [("Warning", "Unschedulable", text)]
    assert harness.condition("pg-0") == {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": text,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    (condition,) = harness.group_conditions("pg")
    assert condition["message"] == (
        f"PodSchedulingErrors: Resources were not found for pod ns/pg-0 due to: {text}."
    )
    assert (condition["transitionID"], condition["nodePool"], condition["status"]) == (
        "1",
        "default",
        "True",
    )
    assert condition["reasons"][0]["reason"] == "PodSchedulingErrors"
    assert summary.unschedulable == 1


def test_non_preemptible_work_over_quota(harness: Harness) -> None:
    harness.cluster(queue_gpu=NOTHING).pending("firm", preemptibility="non-preemptible")
    harness.cycle()
    message = (
        "Non-preemptible workload is over quota. Workload requested 1 GPUs, but The queue quota is "
        "0 GPUs, while 0 GPUs are already allocated for non-preemptible pods. "
        "Use a preemptible workload to go over quota."
    )
    assert harness.condition("firm-0")["message"] == f"NonPreemptibleOverQuota: {message}."
    (reason,) = harness.group_conditions("firm")[0]["reasons"]
    assert (reason["reason"], reason["message"]) == ("NonPreemptibleOverQuota", message)
    details = reason["details"]["queueDetails"]
    assert details["name"] == "q"
    assert details["queueDeservedResources"] == {
        "cpu": "-1m",
        "memory": "-1",
        "nvidia.com/gpu": "0",
    }
    assert details["podGroupRequestedNonPreemptibleResources"]["nvidia.com/gpu"] == "1"


def test_work_that_only_its_queue_holds_can_be_told_apart(harness: Harness) -> None:
    harness.cluster(gpus=4, queue_gpu=NOTHING).pending("firm", preemptibility="non-preemptible")
    harness.pending("large", gpus=5)
    args = {"queue-limited-condition": "QueueLimited"}
    harness.seed(SHARDS, {"metadata": meta("default"), "spec": {"args": args}})
    harness.cycle()
    condition = harness.condition("firm-0")
    assert (condition["status"], condition["reason"]) == ("False", "QueueLimited")
    assert condition["message"].startswith("NonPreemptibleOverQuota: ")
    assert harness.events("firm-0")[0][:2] == ("Warning", "Unschedulable")
    assert harness.condition("large-0")["reason"] == "Unschedulable"


def test_held_work_has_kais_reason_by_default_and_an_unknown_reason_is_refused(
    harness: Harness,
) -> None:
    harness.cluster(queue_gpu=NOTHING).pending("firm", preemptibility="non-preemptible")
    harness.cycle()
    assert harness.condition("firm-0")["reason"] == "Unschedulable"
    args = {"queue-limited-condition": "Gone"}
    harness.seed(SHARDS, {"metadata": meta("default"), "spec": {"args": args}})
    harness.cycle()
    assert harness.worker.follower.error == (
        "queue-limited-condition: expected Unschedulable or QueueLimited, got 'Gone'"
    )


def test_gang_that_finds_room_for_some(harness: Harness) -> None:
    harness.cluster(gpus=4).pending("gang", gpus=3, pods=2)
    harness.cycle()
    assert harness.gateway.names(BINDREQUESTS) == []
    (condition,) = harness.group_conditions("gang")
    assert condition["message"] == (
        "PodSchedulingErrors: Resources were found for 1 pods while 2 are required for gang "
        "scheduling. Additional pods cannot be scheduled due to: no nodes with enough resources "
        "were found: 1 node(s) didn't have enough resources: GPUs.."
    )


def test_gang_without_all_its_pods_is_not_ready(harness: Harness) -> None:
    harness.cluster().pending("gang", pods=1, minMember=3)
    harness.cycle()
    assert harness.events("gang") == [
        (
            "Normal",
            "NotReady",
            "Job is not ready for scheduling. Waiting for 3 pods, currently 1 exist, 0 are gated",
        )
    ]
    assert harness.events("gang-0") == []
    assert harness.group_conditions("gang") == []


def test_missing_queue(harness: Harness) -> None:
    harness.cluster().pending("lost", queue="nowhere")
    harness.cycle()
    assert harness.group_conditions("lost")[0]["message"] == (
        "QueueDoesNotExist: Queue 'nowhere' does not exist."
    )


def test_a_pod_of_an_unknown_subgroup_gets_an_event(harness: Harness) -> None:
    harness.cluster().pending("pg")
    label = {"kai.scheduler/subgroup-name": "nosuch"}
    harness.seed(PODS, pod("stray", group="pg", labels=label))
    harness.cycle()
    assert harness.condition("stray")["message"] == (
        'Pod references subgroup "nosuch", which does not exist in PodGroup ns/pg'
    )


def test_backoff_of_one_names_the_pool(harness: Harness) -> None:
    harness.cluster(gpus=1).pending("pg", gpus=2, schedulingBackoff=1)
    harness.cycle()
    assert harness.condition("pg-0")["message"].startswith("Node-Pool 'default': ")
    assert harness.group_conditions("pg")[0]["message"].startswith("Node-Pool 'default': ")


def test_pods_have_events_but_no_condition_if_their_group_is_not_to_be_marked(
    harness: Harness,
) -> None:
    harness.cluster(gpus=1).pending("pg", gpus=2, markUnschedulable=False)
    harness.cycle()
    assert harness.condition("pg-0") == {}
    assert harness.events("pg-0")[0][1] == "Unschedulable"


def test_detailed_errors_go_node_by_node(harness: Harness) -> None:
    harness.seed(
        SHARDS, {"metadata": meta("default"), "spec": {"args": {"detailed-fit-errors": "true"}}}
    )
    harness.cluster(nodes=2, gpus=4)
    harness.seed(NODES, node("n9", gpus=8, unschedulable=True))
    busy = {"phase": "Running", "requests": {"nvidia.com/gpu": "1"}}
    harness.seed(PODS, pod("a", node="n0", **busy), pod("b", node="n1", **busy))
    harness.pending("pg", gpus=4)
    harness.cycle()
    lacks = "Node didn't have enough resources: GPUs, requested: 4, used: 1, capacity: 4"
    assert harness.condition("pg-0")["message"] == (
        f"\n<n0>: {lacks}."
        f"\n<n1>: {lacks}."
        "\n<n9>: node is unschedulable."
        "\nno nodes with enough resources were found."
    )


def test_detailed_errors_of_a_gang_hide_figures(harness: Harness) -> None:
    harness.seed(
        SHARDS, {"metadata": meta("default"), "spec": {"args": {"detailed-fit-errors": "true"}}}
    )
    busy = {"phase": "Running", "requests": {"nvidia.com/gpu": "2"}}
    harness.cluster(gpus=4).seed(PODS, pod("a", node="n0", **busy))
    harness.pending("gang", gpus=3, pods=2)
    harness.cycle()
    assert (
        "\n<n0>: Node didn't have enough resources: GPUs, taking all considerations into account."
        in harness.group_conditions("gang")[0]["message"]
    )


# --------------------------------------------------------------------------------- not repeated


def test_same_verdict_is_written_once(harness: Harness) -> None:
    harness.cluster(gpus=1).pending("pg", gpus=2)
    harness.cycle()
    writes_before = len(harness.writes())
    harness.cycle_unseen()  # the watch has not brought the conditions back yet
    for _ in range(5):
        harness.cycle(seconds=1)
    assert len(harness.writes()) == writes_before


def test_new_verdict_replaces_the_condition_and_counts_up(harness: Harness) -> None:
    busy = {"node": "n0", "phase": "Running", "requests": {"nvidia.com/gpu": "1"}}
    harness.cluster(gpus=2).seed(PODS, pod("busy", **busy))
    harness.pending("pg", gpus=2)
    harness.cycle()
    first = harness.condition("pg-0")
    harness.seed(NODES, node("n7", gpus=1))
    harness.cycle(seconds=60)
    (condition,) = harness.group_conditions("pg")
    assert condition["transitionID"] == "2"
    assert "2 node(s)" in condition["message"]
    assert harness.condition("pg-0")["lastTransitionTime"] == first["lastTransitionTime"]


def test_running_group_loses_its_old_conditions(harness: Harness) -> None:
    old = {"schedulingConditions": [{"type": "UnschedulableOnNodePool", "nodePool": "default"}]}
    harness.cluster().seed(PODGROUPS, group("pg", status=old))
    harness.seed(PODS, pod("p", group="pg", node="n0", phase="Running"))
    harness.cycle()
    assert harness.group_conditions("pg") == []


def test_group_with_running_pods_gets_no_condition(harness: Harness) -> None:
    harness.cluster(gpus=1).seed(PODGROUPS, group("pg", minMember=1))
    requests = {"nvidia.com/gpu": "1"}
    harness.seed(PODS, pod("a", group="pg", node="n0", phase="Running", requests=requests))
    harness.seed(PODS, pod("b", group="pg", requests=requests))
    harness.cycle()
    assert harness.group_conditions("pg") == []
    assert harness.condition("b")["reason"] == "Unschedulable"


def test_a_start_within_a_second_is_written_rounded_down(harness: Harness) -> None:
    harness.cluster().pending("pg")
    harness.cycle(seconds=0.9)
    annotations = harness.gateway.raw(PODGROUPS, "pg", "ns")["metadata"]["annotations"]
    assert annotations["kai.scheduler/last-start-timestamp"] == "2026-01-01T00:00:00Z"


def test_start_is_remembered_on_the_group(harness: Harness) -> None:
    harness.cluster().pending("pg")
    harness.cycle()
    annotations = harness.gateway.raw(PODGROUPS, "pg", "ns")["metadata"]["annotations"]
    assert annotations["kai.scheduler/last-start-timestamp"] == "2026-01-01T00:00:00Z"
    before = len(harness.writes())
    harness.cycle(seconds=5)
    assert harness.writes()[before:] == []
