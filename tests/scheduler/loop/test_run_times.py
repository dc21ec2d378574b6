"""Maximum run times: eviction at the deadline, the wait that follows, and what is written about both."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from kube.errors import DisruptionBudgetError
from kube.resources import PODGROUPS, PODS, QUEUES
from queues.workloads.holds import Hold, annotations_of_hold
from scheduler.loop.workload_decisions import decisions_of
from tests.scheduler.load.objects import group, pod
from tests.scheduler.loop.harness import START, Harness
from tests.scheduler.loop.harness import harness as open_harness

ONE_GPU = {"nvidia.com/gpu": "1"}
HOUR = 3600.0
MAXIMUM, DELAY = "kaiweb.dev/max-run-time", "kaiweb.dev/requeue-delay"
DEADLINE, UNTIL = "kaiweb.dev/run-deadline", "kaiweb.dev/hold-until"


@pytest.fixture
def harness() -> Iterator[Harness]:
    with open_harness() as opened:
        opened.cluster(gpus=4)
        yield opened


def annotate_queue(harness: Harness, name: str, **annotations: str) -> None:
    keys = {"maximum": MAXIMUM, "delay": DELAY}
    body = {"metadata": {"annotations": {keys[key]: text for key, text in annotations.items()}}}
    harness.gateway.patch(QUEUES, name, body)


def run(harness: Harness, name: str, *, pods: int = 1, **annotations: str) -> None:
    """Add a group whose pods were created an hour ago, and were bound at the start of the test."""
    body = group(name, minMember=pods)
    body["metadata"]["annotations"] = {
        "kai.scheduler/last-start-timestamp": "2026-01-01T00:00:00Z",
        **{{"maximum": MAXIMUM, "delay": DELAY}[key]: text for key, text in annotations.items()},
    }
    harness.seed(PODGROUPS, body)
    for number in range(pods):
        harness.seed(PODS, running_pod(name, number, "2025-12-31T23:00:00Z"))


def running_pod(name: str, number: int, created: str) -> dict[str, Any]:
    body = pod(f"{name}-{number}", group=name, node="n0", phase="Running", requests=ONE_GPU)
    body["metadata"]["creationTimestamp"] = created
    return body


def annotations_of(harness: Harness, name: str) -> dict[str, str]:
    annotations: dict[str, str] = harness.gateway.raw(PODGROUPS, name, "ns")["metadata"][
        "annotations"
    ]
    return annotations


def evicted(harness: Harness, seconds: float = 0.0) -> list[str]:
    return sorted(ref.name for ref in harness.cycle(seconds=seconds).commit.evicted)


def test_a_workload_is_evicted_at_the_end_of_its_maximum_run_time(harness: Harness) -> None:
    run(harness, "long", pods=2, maximum="1h")
    assert evicted(harness) == []
    assert annotations_of(harness, "long")[DEADLINE] == "2026-01-01T01:00:00Z"
    assert evicted(harness, HOUR - 1) == []
    assert evicted(harness, 1) == ["long-0", "long-1"]
    assert evicted(harness) == []
    assert DEADLINE not in annotations_of(harness, "long")
    assert ("Normal", "Evict", EVICTED) in harness.events("long")


EVICTED = "Pod ns/long-0 was evicted because the workload ran for its maximum run time of 1h0m0s"


def test_the_record_of_the_cycle_names_the_rule(harness: Harness) -> None:
    run(harness, "long", pods=2, maximum="1h")
    rows = decisions_of(harness.cycle(seconds=HOUR))
    assert [(row.action, row.workload, row.pods) for row in rows] == [("maxruntime", "ns/long", 2)]


def test_the_maximum_of_a_queue_is_inherited_and_a_workload_may_only_state_less(
    harness: Harness,
) -> None:
    annotate_queue(harness, "top", maximum="2h", delay="10m")
    run(harness, "silent")
    run(harness, "shorter", maximum="1h")
    run(harness, "longer", maximum="9h")
    harness.cycle()
    deadlines = [
        annotations_of(harness, name)[DEADLINE] for name in ("silent", "shorter", "longer")
    ]
    assert [text[11:16] for text in deadlines] == ["02:00", "01:00", "02:00"]
    annotate_queue(harness, "q", maximum="3h")
    harness.cycle()
    assert annotations_of(harness, "silent")[DEADLINE] == "2026-01-01T03:00:00Z"
    annotate_queue(harness, "q", maximum="0s")
    harness.cycle()
    assert DEADLINE not in annotations_of(harness, "silent")
    assert annotations_of(harness, "shorter")[DEADLINE] == "2026-01-01T01:00:00Z"


def test_what_its_owner_creates_anew_waits_for_the_delay(harness: Harness) -> None:
    annotate_queue(harness, "q", maximum="1h", delay="30m")
    run(harness, "long")
    assert evicted(harness, HOUR) == ["long-0"]
    carried = annotations_of(harness, "long")
    assert carried[UNTIL] == "2026-01-01T01:30:00Z"
    assert carried["kaiweb.dev/held-by"] == "max-run-time"
    body = pod("long-1", group="long", requests=ONE_GPU)
    body["metadata"]["creationTimestamp"] = "2026-01-01T01:00:05Z"
    harness.seed(PODS, body)
    assert harness.cycle(seconds=HOUR / 2 - 1).commit.bound == []
    assert [ref.name for ref in harness.cycle(seconds=1).commit.bound] == ["long-1"]


def test_without_a_delay_the_workload_competes_again_at_once(harness: Harness) -> None:
    run(harness, "long", maximum="1h")
    assert evicted(harness, HOUR) == ["long-0"]
    assert UNTIL not in annotations_of(harness, "long")


def test_the_next_run_has_its_full_time_also_after_a_restart_of_the_scheduler() -> None:
    """The start of the earlier run may still be on the group; the pods are younger than that."""
    with open_harness() as here:
        here.cluster(gpus=4)
        run(here, "again", maximum="1h")
        here.gateway.delete(PODS, "again-0", namespace="ns", grace_period_s=0)
        body = running_pod("again", 1, "2026-01-01T02:00:00Z")
        bound = {
            "type": "PodScheduled",
            "status": "True",
            "lastTransitionTime": "2026-01-01T02:10:00Z",
        }
        body["status"]["conditions"] = [bound]
        here.seed(PODS, body)
        assert evicted(here, 3 * HOUR) == []
        assert annotations_of(here, "again")[DEADLINE] == "2026-01-01T03:10:00Z"
        assert evicted(here, HOUR / 6) == ["again-1"]


def test_the_deadline_survives_a_restart_and_is_kept_while_the_scheduler_was_away() -> None:
    with open_harness() as here:
        here.cluster(gpus=4)
        run(here, "long", maximum="1h")
        here.cycle()
        gateway = here.gateway
    with open_harness(gateway=gateway) as restarted:
        restarted.now = START + timedelta(hours=5)
        assert evicted(restarted) == ["long-0"]


def test_a_disruption_budget_delays_the_end_and_it_is_tried_again(harness: Harness) -> None:
    run(harness, "long", maximum="1h")
    refusal = DisruptionBudgetError("no", budget_text="budget ns/b allows 0 pods")
    harness.gateway.refuse("evict", "pods", "long-0", refusal)
    summary = harness.cycle(seconds=HOUR)
    assert (summary.commit.evicted, len(summary.commit.failures)) == ([], 1)
    assert annotations_of(harness, "long")[DEADLINE] == "2026-01-01T01:00:00Z"
    harness.gateway.allow("evict", "pods", "long-0")
    assert evicted(harness) == []
    assert evicted(harness, 600) == ["long-0"]


def test_the_hold_of_a_person_that_lasts_longer_stays(harness: Harness) -> None:
    run(harness, "long", maximum="1h", delay="10m")
    body = {"metadata": {"annotations": annotations_of_hold(Hold("budget"))}}
    harness.gateway.patch(PODGROUPS, "long", body, namespace="ns")
    assert evicted(harness, HOUR) == ["long-0"]
    assert annotations_of(harness, "long")["kaiweb.dev/hold"] == "budget"


def test_groups_of_other_shards_and_without_a_maximum_are_left_alone(harness: Harness) -> None:
    run(harness, "free")
    run(harness, "odd", maximum="soon")
    other = group("other", minMember=1)
    other["metadata"]["labels"] = {"kai.scheduler/node-pool": "elsewhere"}
    other["metadata"]["annotations"] = {MAXIMUM: "1s"}
    harness.seed(PODGROUPS, other)
    harness.seed(PODS, running_pod("other", 0, "2025-12-31T23:00:00Z"))
    assert evicted(harness, 9 * HOUR) == []
    assert DEADLINE not in annotations_of(harness, "other")
