"""Evictions as the cluster sees them: through the Eviction API, kept to disruption budgets, refusals told."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kube.errors import (
    BadRequestError,
    DisruptionBudgetError,
    ForbiddenError,
    NotFoundError,
    TooManyRequestsError,
)
from kube.resources import POD_DISRUPTION_BUDGETS, PODGROUPS, PODS, PRIORITY_CLASSES, SHARDS
from queues.workloads.reasons import DISRUPTION_BUDGET
from scheduler.apply import evictions
from tests.scheduler.load.objects import group, pod
from tests.scheduler.loop.harness import Harness
from tests.scheduler.loop.harness import harness as open_harness

ONE_GPU = {"nvidia.com/gpu": "1"}
READY = [{"type": "Ready", "status": "True"}]


@pytest.fixture
def harness() -> Iterator[Harness]:
    with open_harness() as opened:
        for name, value in (("low", 10), ("high", 50)):
            opened.seed(PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value})
        opened.cluster(gpus=4)
        yield opened


def running(harness: Harness, *names: str, ready: bool = True) -> Harness:
    """Add pod groups of one running pod each, on the only node; the last one would be evicted first."""
    for number, name in enumerate(names):
        created = f"2025-12-01T00:00:{number:02d}Z"
        body = group(name, priorityClassName="low")
        body["metadata"]["creationTimestamp"] = created
        harness.seed(PODGROUPS, body)
        on_node = pod(
            f"{name}-0",
            group=name,
            node="n0",
            phase="Running",
            requests=ONE_GPU,
            labels={"app": name[0]},
        )
        on_node["status"]["conditions"] = READY if ready else []
        harness.seed(PODS, on_node)
    return harness


def budget(harness: Harness, app: str, allowed: int, **status: int) -> Harness:
    body = {
        "metadata": {"name": f"of-{app}", "namespace": "ns"},
        "spec": {"selector": {"matchLabels": {"app": app}}},
        "status": {"disruptionsAllowed": allowed, **status},
    }
    return harness.seed(POD_DISRUPTION_BUDGETS, body)


def shard(harness: Harness, **texts: str) -> Harness:
    settings = {key.replace("_", "-"): value for key, value in texts.items()}
    return harness.seed(SHARDS, {"metadata": {"name": "default"}, "spec": {"args": settings}})


def leaving(harness: Harness) -> list[str]:
    bodies = {name: harness.gateway.raw(PODS, name, "ns") for name in harness.gateway.names(PODS)}
    return [name for name, body in bodies.items() if body["metadata"].get("deletionTimestamp")]


def verbs(harness: Harness, name: str) -> list[str]:
    return [call[0] for call in harness.gateway.calls if call[1:] == ("pods", name)]


def test_a_victim_is_evicted_and_not_deleted(harness: Harness) -> None:
    running(harness, "a1", "a2", "a3", "a4").pending("want", priorityClassName="high")
    harness.cycle()
    assert leaving(harness) == ["a4-0"]
    assert verbs(harness, "a4-0") == ["evict"]


def test_a_budget_of_one_blocks_the_second_eviction(harness: Harness) -> None:
    running(harness, "a1", "a2", "b1", "b2")
    budget(harness, "b", 1).pending("want", gpus=2, priorityClassName="high")
    summary = harness.cycle()
    assert leaving(harness) == ["a2-0", "b2-0"]
    assert summary.commit.failures == []
    budget_left = harness.gateway.raw(POD_DISRUPTION_BUDGETS, "of-b", "ns")["status"]
    assert budget_left["disruptionsAllowed"] == 0


def test_the_next_cycle_knows_what_was_taken_before_the_watch_brings_it(harness: Harness) -> None:
    running(harness, "b1", "b2", "b3", "b4")
    budget(harness, "b", 1).pending("want", priorityClassName="high")
    harness.cycle()
    harness.pending("more", priorityClassName="high")
    summary = harness.cycle_unseen()
    assert summary.commit.evicted == []
    assert leaving(harness) == ["b4-0"]


def test_a_budget_in_the_way_is_named_as_the_reason(harness: Harness) -> None:
    running(harness, "b1", "b2", "b3", "b4")
    budget(harness, "b", 0).pending("want", priorityClassName="high")
    summary = harness.cycle()
    assert leaving(harness) == []
    standing = summary.standings["ns/want"]
    text = "Evictions that could make room are not allowed now: disruption budget ns/of-b allows 0 pods"
    assert (standing.code, standing.text) == (DISRUPTION_BUDGET, text)
    [condition] = harness.group_conditions("want")
    assert text in condition["message"]
    assert DISRUPTION_BUDGET in [item["reason"] for item in condition["reasons"]]


def test_unready_pods_go_freely_while_enough_others_are_healthy(harness: Harness) -> None:
    running(harness, "b1", "b2", "b3", "b4", ready=False)
    budget(harness, "b", 0, currentHealthy=1, desiredHealthy=1)
    harness.pending("want", priorityClassName="high").cycle()
    assert verbs(harness, "b4-0") == ["evict"]


def test_a_refused_eviction_is_told_and_others_are_taken_meanwhile(harness: Harness) -> None:
    running(harness, "a1", "a2", "a3", "a4").pending("want", priorityClassName="high")
    refusal = DisruptionBudgetError(
        "Cannot evict pod", budget_text="The disruption budget x needs 4 healthy pods and has 4"
    )
    harness.gateway.fail_next("evict", "pods", refusal)
    summary = harness.cycle()
    assert leaving(harness) == []
    assert [what for what, _ in summary.commit.failures] == ["eviction of pod ns/a4-0"]
    assert harness.events("a4-0")[-1] == (
        "Warning",
        "EvictionRefused",
        "Pod ns/a4-0 was to be evicted for workload ns/want, which was refused: The disruption budget x "
        "needs 4 healthy pods and has 4. It is not tried again before 2026-01-01T00:00:10Z",
    )
    assert harness.events("a4") == []
    harness.cycle(seconds=1)
    assert leaving(harness) == ["a3-0"]


def test_a_refusal_is_tried_again_after_a_pause_that_doubles(harness: Harness) -> None:
    running(harness, "a1").pending("want", gpus=4, priorityClassName="high")
    attempts = []
    for second in range(35):
        harness.gateway.fail_next("evict", "pods", ForbiddenError("no", status=403))
        summary = harness.cycle(seconds=1)
        if summary.commit.failures:
            attempts.append(second)
    assert attempts == [0, 10, 30]
    assert summary.standings["ns/want"].text == (
        "Evictions that could make room are not allowed now: the eviction of pod ns/a1-0 was refused (no)"
    )


def test_after_a_refusal_the_other_victims_of_the_same_workload_stay(harness: Harness) -> None:
    running(harness, "a1", "a2", "b1", "b2")
    budget(harness, "b", 2).pending("want", gpus=4, priorityClassName="high")
    harness.watch()
    stale = harness.gateway.raw(POD_DISRUPTION_BUDGETS, "of-b", "ns")
    harness.gateway.patch(
        POD_DISRUPTION_BUDGETS,
        "of-b",
        {"status": {**stale["status"], "disruptionsAllowed": 0}},
        namespace="ns",
    )
    summary = harness.cycle_unseen()
    assert leaving(harness) == []
    assert len(summary.commit.failures) == 1


def test_an_overloaded_server_is_asked_again_after_its_pause(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evictions, "MAX_PAUSE_S", 0.0)
    running(harness, "a1", "a2", "a3", "a4").pending("want", priorityClassName="high")
    for _ in range(2):
        harness.gateway.fail_next(
            "evict", "pods", TooManyRequestsError("slow down", retry_after_s=0.5)
        )
    summary = harness.cycle()
    assert leaving(harness) == ["a4-0"]
    assert summary.commit.failures == []
    assert verbs(harness, "a4-0") == ["evict"]


def test_a_server_that_stays_overloaded_is_no_refusal_of_the_pod(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evictions, "MAX_PAUSE_S", 0.0)
    running(harness, "a1", "a2", "a3", "a4").pending("want", priorityClassName="high")
    for _ in range(evictions.ATTEMPTS):
        harness.gateway.fail_next("evict", "pods", TooManyRequestsError("slow down"))
    summary = harness.cycle()
    assert [str(error) for _, error in summary.commit.failures] == ["slow down"]
    assert harness.events("a4-0") == []
    harness.cycle(seconds=1)
    assert leaving(harness) == ["a4-0"]


@pytest.mark.parametrize(
    "error",
    [
        NotFoundError("no such path", status=404),
        BadRequestError("method not allowed", status=405),
    ],
    ids=["404", "405"],
)
def test_a_server_without_evictions_gets_a_deletion(harness: Harness, error: Any) -> None:
    running(harness, "a1", "a2", "a3", "a4").pending("want", priorityClassName="high")
    harness.gateway.fail_next("evict", "pods", error)
    harness.cycle()
    assert verbs(harness, "a4-0") == ["delete"]


def test_a_shard_may_evict_in_kais_way(harness: Harness) -> None:
    running(harness, "b1", "b2", "b3", "b4")
    budget(shard(harness, use_eviction_api="false"), "b", 0)
    harness.pending("want", priorityClassName="high").cycle()
    assert verbs(harness, "b4-0") == ["delete"]


def test_no_more_pods_of_one_owner_go_at_a_time_than_the_shard_allows(harness: Harness) -> None:
    shard(harness, max_evictions_per_owner="1")
    running(harness, "a1", "b1", "b2", "b3")
    owner = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": "b",
        "uid": "rs",
        "controller": True,
    }
    for name in ("b1-0", "b2-0", "b3-0"):
        harness.gateway.patch(
            PODS, name, {"metadata": {"ownerReferences": [owner]}}, namespace="ns"
        )
    harness.pending("want", gpus=2, priorityClassName="high").cycle()
    assert leaving(harness) == ["a1-0", "b3-0"]
    harness.pending("more", gpus=4, priorityClassName="high")
    summary = harness.cycle(seconds=1)
    assert leaving(harness) == ["a1-0", "b3-0"]
    assert summary.standings["ns/more"].text.endswith(
        "0 more pods of ReplicaSet ns/b may be evicted now"
    )
