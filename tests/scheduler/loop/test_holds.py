"""Pod groups that a person holds, releases or requeues."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from kube.errors import DisruptionBudgetError
from kube.resources import PODGROUPS, PODS
from queues.workloads.holds import Hold, annotations_of_hold, annotations_of_requeue
from tests.scheduler.load.objects import group, pod
from tests.scheduler.loop.harness import START, Harness
from tests.scheduler.loop.harness import harness as open_harness

ONE_GPU = {"nvidia.com/gpu": "1"}


@pytest.fixture
def harness() -> Iterator[Harness]:
    with open_harness() as opened:
        opened.cluster(gpus=4)
        yield opened


def annotate(harness: Harness, name: str, annotations: dict[str, object]) -> None:
    body = {"metadata": {"annotations": annotations}}
    harness.gateway.patch(PODGROUPS, name, body, namespace="ns")


def bound(harness: Harness) -> list[str]:
    return [ref.name for ref in harness.cycle().commit.bound]


def run(harness: Harness, name: str) -> None:
    harness.seed(PODGROUPS, group(name))
    harness.seed(PODS, pod(f"{name}-0", group=name, node="n0", phase="Running", requests=ONE_GPU))


def evicted(harness: Harness) -> list[str]:
    return [ref.name for ref in harness.cycle().commit.evicted]


def test_a_held_group_starts_only_after_its_release(harness: Harness) -> None:
    harness.pending("held").pending("free")
    annotate(harness, "held", annotations_of_hold(Hold("budget")))
    assert bound(harness) == ["free-0"]
    annotate(harness, "held", annotations_of_hold(None))
    assert bound(harness) == ["held-0"]


def test_a_hold_ends_at_its_time(harness: Harness) -> None:
    harness.pending("held")
    annotate(harness, "held", annotations_of_hold(Hold("", START + timedelta(hours=1))))
    assert bound(harness) == []
    harness.now = START + timedelta(hours=1)
    assert bound(harness) == ["held-0"]


def test_the_running_pods_of_a_held_group_go_on_and_count(harness: Harness) -> None:
    run(harness, "half")
    harness.seed(PODS, pod("half-1", group="half", requests=ONE_GPU))
    annotate(harness, "half", annotations_of_hold(Hold("")))
    summary = harness.cycle()
    assert (summary.commit.bound, summary.commit.evicted) == ([], [])
    [pod_group] = summary.snapshot.cluster.pod_groups
    assert [task.status.name for task in pod_group.tasks] == ["RUNNING", "GATED"]


def test_a_requeue_evicts_the_pods_there_are_and_not_those_created_later(harness: Harness) -> None:
    run(harness, "old")
    run(harness, "other")
    annotate(harness, "old", annotations_of_requeue(START + timedelta(seconds=1)))
    assert evicted(harness) == ["old-0"]
    assert evicted(harness) == []
    body = pod("old-1", group="old", node="n0", phase="Running", requests=ONE_GPU)
    body["metadata"]["creationTimestamp"] = "2026-01-01T00:00:01Z"
    harness.seed(PODS, body)
    assert evicted(harness) == []


def test_a_requeue_keeps_to_disruption_budgets_and_is_tried_again(harness: Harness) -> None:
    run(harness, "old")
    annotate(harness, "old", annotations_of_requeue(START + timedelta(seconds=1)))
    refusal = DisruptionBudgetError("no", budget_text="budget ns/b allows 0 pods")
    harness.gateway.refuse("evict", "pods", "old-0", refusal)
    summary = harness.cycle()
    assert (summary.commit.evicted, len(summary.commit.failures)) == ([], 1)
    harness.gateway.allow("evict", "pods", "old-0")
    assert evicted(harness) == []
    harness.now = START + timedelta(minutes=10)
    assert evicted(harness) == ["old-0"]
