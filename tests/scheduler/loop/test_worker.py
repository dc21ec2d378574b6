"""One cycle on a cluster: bind requests, evictions, and settings that cannot be used."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kube.errors import AlreadyExistsError, ServerError, UnauthorizedError
from kube.resources import BINDREQUESTS, NODES, PODGROUPS, PODS, PRIORITY_CLASSES, QUEUES, SHARDS
from scheduler.core.actions.table import ACTIONS
from scheduler.core.decisions import ActionName
from scheduler.core.errors import InvariantError
from tests.scheduler.load.objects import bind_request, group, meta, node, pod, queue
from tests.scheduler.loop.harness import FREE, Harness
from tests.scheduler.loop.harness import harness as open_harness


@pytest.fixture
def harness() -> Iterator[Harness]:
    with open_harness() as opened:
        yield opened


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
    assert harness.writes()[:2] == [
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
