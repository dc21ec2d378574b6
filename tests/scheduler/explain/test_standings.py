"""The order of those that wait: the turns that allocate really gave."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kube.resources import PODGROUPS, PODS, PRIORITY_CLASSES, SHARDS
from tests.scheduler.load.objects import group, pod
from tests.scheduler.loop.harness import Harness
from tests.scheduler.loop.harness import harness as open_harness


@pytest.fixture
def harness() -> Iterator[Harness]:
    with open_harness() as opened:
        yield opened


def full(harness: Harness) -> Harness:
    """Let one tenant hold the only node."""
    harness.cluster().seed(PODGROUPS, group("tenant", preemptibility="non-preemptible"))
    return harness.seed(
        PODS,
        pod(
            "tenant-0", group="tenant", node="n0", phase="Running", requests={"nvidia.com/gpu": "8"}
        ),
    )


def test_places_follow_the_order_of_turns(harness: Harness) -> None:
    full(harness).pending("late").pending("urgent", priorityClassName="high").pending("later")
    harness.seed(PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 90})
    cycle_standings = harness.cycle().standings
    assert {key: standing.position for key, standing in cycle_standings.items()} == {
        "ns/urgent": 1,
        "ns/late": 2,
        "ns/later": 3,
    }


def test_beyond_the_depth_of_its_queue_nobody_had_a_turn(harness: Harness) -> None:
    shard = {"metadata": {"name": "default"}, "spec": {"queueDepthPerAction": {"allocate": 2}}}
    full(harness).seed(SHARDS, shard).pending("a").pending("b").pending("c")
    third = harness.cycle().standings["ns/c"]
    assert (third.code, third.position) == ("OrderBehind", None)
    assert third.text == "Its turn did not come in this cycle; 2 workloads of its queue are ahead"


def test_only_the_first_thousand_positions_are_recorded(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scheduler.explain.standings.MAX_POSITIONS", 2)
    full(harness).pending("a").pending("b").pending("c")
    assert [standing.position for standing in harness.cycle().standings.values()] == [1, 2, None]
