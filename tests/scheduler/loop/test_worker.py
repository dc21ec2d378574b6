"""One cycle on a cluster: which objects and messages are written, and which are not repeated."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kube.errors import AlreadyExistsError, ServerError, UnauthorizedError
from kube.resources import BINDREQUESTS, NODES, PODGROUPS, PODS, PRIORITY_CLASSES, QUEUES, SHARDS
from scheduler.core.actions.table import ACTIONS
from scheduler.core.decisions import ActionName
from scheduler.core.errors import InvariantError
from tests.scheduler.load.objects import bind_request, group, meta, node, pod, queue
from tests.scheduler.loop.harness import FREE, NOTHING, Harness
from tests.scheduler.loop.harness import harness as open_harness


@pytest.fixture
def harness() -> Iterator[Harness]:
    with open_harness() as opened:
        yield opened


def writes(harness: Harness) -> list[tuple[str, str, str]]:
    """Return the writes so far, without events."""
    return [call for call in harness.gateway.calls if call[1] != "events"]


# ------------------------------------------------------------------------------------------- binds


def test_pending_pod_becomes_a_bind_request(harness: Harness) -> None:
    harness.cluster().pending("pg")
    harness.cycle(fence=7)
    body = harness.gateway.raw(BINDREQUESTS, "pg-0", "ns")
    assert body["metadata"]["labels"] == {"selected-node": "n0"}
    assert body["metadata"]["annotations"] == {"kaiweb.dev/fence": "7"}
    assert body["metadata"]["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Pod", "name": "pg-0", "uid": "uid-pg-0"}
    ]
    assert body["spec"] == {
        "podName": "pg-0",
        "selectedNode": "n0",
        "receivedResourceType": "Regular",
        "receivedGPU": {"count": 1, "portion": "1.00"},
        "backoffLimit": 1,
    }
    assert harness.events("pg-0") == []  # the binder announces a pod that is bound


def test_a_pod_that_cannot_be_read_gets_an_event_and_does_not_block_the_others(
    harness: Harness,
) -> None:
    term = {"matchExpressions": [{"key": "a", "operator": "Near", "values": ["b"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    harness.cluster().pending("bad", pod={"affinity": {"nodeAffinity": required}}).pending("good")
    harness.cycle()
    assert (
        harness.condition("bad-0")["message"] == "The pod cannot be read: unknown operator 'Near'"
    )
    assert harness.gateway.names(BINDREQUESTS, "ns") == ["good-0"]


def test_next_cycle_knows_the_binds_of_the_last_one_before_the_watch_does(harness: Harness) -> None:
    harness.cluster(gpus=1).pending("first").pending("second")
    harness.cycle()
    before = len(harness.gateway.calls)
    summary = harness.cycle_unseen()
    assert len(harness.gateway.names(BINDREQUESTS)) == 1
    assert summary.commit.bound == []
    assert [call for call in harness.gateway.calls[before:] if call[0] == "create"] == []


def test_a_failed_bind_is_an_event_and_is_retried(harness: Harness) -> None:
    harness.cluster().pending("pg")
    harness.gateway.fail_next("create", "bindrequests", ServerError("busy"))
    harness.cycle()
    text = "Failed to bind pod ns/pg-0 to node n0. busy"
    assert ("Warning", "FailedBinding", text) in harness.events("pg-0")
    assert (harness.condition("pg-0")["reason"], harness.condition("pg-0")["message"]) == (
        "BindingError",
        text,
    )
    harness.cycle(seconds=1)
    assert harness.gateway.names(BINDREQUESTS) == []
    harness.cycle(seconds=1)
    assert harness.gateway.names(BINDREQUESTS) == ["pg-0"]


def test_an_existing_bind_request_causes_no_condition_on_the_pod(harness: Harness) -> None:
    harness.cluster().pending("pg")
    harness.gateway.fail_next("create", "bindrequests", AlreadyExistsError("there"))
    harness.cycle()
    assert harness.condition("pg-0") == {}


def test_a_request_for_a_node_that_is_gone_is_deleted_and_made_anew_in_the_same_cycle(
    harness: Harness,
) -> None:
    harness.cluster().pending("pg")
    harness.seed(BINDREQUESTS, bind_request("pg-0", "a-node-that-is-gone"))
    harness.cycle()
    assert writes(harness)[:2] == [
        ("delete", "bindrequests", "pg-0"),
        ("create", "bindrequests", "pg-0"),
    ]
    assert harness.gateway.raw(BINDREQUESTS, "pg-0", "ns").get("status", {}) == {}


def test_refused_credentials_end_the_cycle(harness: Harness) -> None:
    harness.cluster().pending("pg")
    harness.gateway.fail_next("create", "bindrequests", UnauthorizedError("401"))
    with pytest.raises(UnauthorizedError):
        harness.cycle()


def test_defect_in_a_later_action_does_not_undo_earlier_decisions(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness.cluster().pending("pg")

    class Broken:
        name = ActionName.CONSOLIDATION

        def run(self, *_: object) -> None:
            raise InvariantError("oops")

    monkeypatch.setitem(ACTIONS, ActionName.CONSOLIDATION, Broken)
    with pytest.raises(InvariantError):
        harness.cycle()
    assert harness.gateway.names(BINDREQUESTS) == ["pg-0"]


def test_worker_that_lost_its_shard_writes_nothing(harness: Harness) -> None:
    harness.cluster().pending("pg")
    harness.is_allowed = False
    summary = harness.cycle()
    assert harness.gateway.names(BINDREQUESTS) == []
    assert summary.commit.bound == []


def test_shard_labels_its_requests_and_pods() -> None:
    pool = "kai.scheduler/node-pool"
    with open_harness("a100") as harness:
        harness.seed(SHARDS, {"metadata": meta("a100"), "spec": {"partitionLabelValue": "a100"}})
        harness.seed(NODES, node("n0", labels={pool: "a100"}), node("other"))
        harness.seed(
            QUEUES,
            queue(
                "q", labels={pool: "a100"}, resources=dict.fromkeys(("gpu", "cpu", "memory"), FREE)
            ),
        )
        harness.seed(PODGROUPS, group("pg", labels={pool: "a100"}))
        harness.seed(PODS, pod("p", group="pg", requests={"nvidia.com/gpu": "1"}))
        harness.cycle()
        labels = harness.gateway.raw(BINDREQUESTS, "p", "ns")["metadata"]["labels"]
        assert labels == {"selected-node": "n0", pool: "a100"}
        assert harness.gateway.raw(PODS, "p", "ns")["metadata"]["labels"] == {pool: "a100"}


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
    held = harness.condition("firm-0")
    assert (held["status"], held["reason"]) == ("False", "QueueLimited")
    assert held["message"].startswith("NonPreemptibleOverQuota: ")
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
    written = len(writes(harness))
    harness.cycle_unseen()  # the watch has not brought the conditions back yet
    for _ in range(5):
        harness.cycle(seconds=1)
    assert len(writes(harness)) == written


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
    one = {"nvidia.com/gpu": "1"}
    harness.seed(PODS, pod("a", group="pg", node="n0", phase="Running", requests=one))
    harness.seed(PODS, pod("b", group="pg", requests=one))
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
    before = len(writes(harness))
    harness.cycle(seconds=5)
    assert writes(harness)[before:] == []


# ------------------------------------------------------------------------------------- evictions


def test_a_preempted_pod_gets_a_condition_and_is_deleted_once(harness: Harness) -> None:
    harness.cluster(gpus=1)
    harness.seed(PODGROUPS, group("low", priorityClassName="low"))
    harness.seed(
        PODS,
        pod("low-0", group="low", node="n0", phase="Running", requests={"nvidia.com/gpu": "1"}),
    )
    harness.seed(PRIORITY_CLASSES, {"metadata": meta("high"), "value": 90})
    harness.pending("high", priorityClassName="high")
    harness.cycle()
    assert "deletionTimestamp" in harness.gateway.raw(PODS, "low-0", "ns")["metadata"]
    assert harness.events("low") == [
        (
            "Normal",
            "Evict",
            "Pod ns/low-0 was preempted by higher priority workload ns/high",
        )
    ]
    deletes = [call for call in harness.gateway.calls if call[0] == "delete"]
    harness.cycle_unseen()
    assert [call for call in harness.gateway.calls if call[0] == "delete"] == deletes
    assert ("Normal", "Pipelined", "Pod ns/high-0 was pipelined to node n0") in harness.events(
        "high-0"
    )


def test_a_pod_that_waits_for_its_victims_keeps_its_nominated_node_without_another_write(
    harness: Harness,
) -> None:
    harness.cluster(gpus=1)
    harness.seed(PODGROUPS, group("low", priorityClassName="low"))
    harness.seed(
        PODS,
        pod("low-0", group="low", node="n0", phase="Running", requests={"nvidia.com/gpu": "1"}),
    )
    harness.seed(PRIORITY_CLASSES, {"metadata": meta("high"), "value": 90})
    harness.pending("high", priorityClassName="high")

    def nominated() -> str | None:
        status = harness.gateway.raw(PODS, "high-0", "ns").get("status", {})
        return status.get("nominatedNodeName")

    harness.cycle()
    assert nominated() == "n0"
    before = len(harness.gateway.calls)
    harness.cycle(seconds=1)
    writes_of_pod = [call for call in harness.gateway.calls[before:] if call[2] == "high-0"]
    assert (nominated(), writes_of_pod) == ("n0", [])


def test_a_nomination_that_no_cycle_renews_is_taken_back(harness: Harness) -> None:
    harness.cluster(gpus=1)
    harness.pending("large", gpus=2)
    harness.gateway.patch(
        PODS, "large-0", {"status": {"nominatedNodeName": "n0"}}, namespace="ns", sub="status"
    )
    harness.cycle()
    status = harness.gateway.raw(PODS, "large-0", "ns").get("status", {})
    assert "nominatedNodeName" not in status


# -------------------------------------------------------------------------------------- settings


def test_invalid_settings_of_a_shard_are_reported_and_the_old_ones_stay(harness: Harness) -> None:
    harness.cluster().pending("pg")
    harness.seed(
        SHARDS, {"metadata": meta("default"), "spec": {"placementStrategy": {"gpu": "sideways"}}}
    )
    harness.cycle()
    assert harness.worker.follower.error == (
        "placementStrategy.gpu: expected one of binpack, spread, fragmentation, got 'sideways'"
    )
    assert harness.gateway.names(BINDREQUESTS) == ["pg-0"]
