"""Past use reaches the next cycle, and a wrong configuration keeps the old settings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kube.resources import PODGROUPS, PODS, SHARDS
from scheduler.loop.usage_feed import make_feed
from scheduler.settings.usage import UsageConfigError
from tests.scheduler.load.objects import group, meta, pod
from tests.scheduler.loop.harness import Harness
from tests.scheduler.loop.harness import harness as open_harness

HISTORY = {
    "clientType": "history",
    "connectionString": "own",
    "usageParams": {"fetchInterval": "10s", "windowSize": "1h"},
}


@pytest.fixture
def harness() -> Iterator[Harness]:
    with open_harness() as opened:
        yield opened


def test_what_a_queue_held_is_known_to_the_next_cycle(harness: Harness) -> None:
    harness.seed(SHARDS, {"metadata": meta("default"), "spec": {"usageDBConfig": HISTORY}})
    harness.cluster(gpus=8).seed(PODGROUPS, group("pg"))
    harness.seed(
        PODS, pod("p", group="pg", node="n0", phase="Running", requests={"nvidia.com/gpu": "4"})
    )
    first = harness.cycle()
    assert {queue.name: queue.gpu.usage for queue in first.snapshot.cluster.queues} == {
        "q": 0.0,
        "top": 0.0,
    }
    harness.cycle(seconds=30)
    third = harness.cycle(seconds=30)
    assert {queue.name: queue.gpu.usage for queue in third.snapshot.cluster.queues} == {
        "q": 0.5,
        "top": 0.5,
    }


def test_wrong_usage_configuration_is_shown(harness: Harness) -> None:
    broken = {"clientType": "oracle", "connectionString": "x"}
    harness.seed(SHARDS, {"metadata": meta("default"), "spec": {"usageDBConfig": broken}})
    harness.cluster().cycle()
    assert harness.worker.follower.error == "clientType: expected prometheus, history, got 'oracle'"


def test_own_history_lives_in_the_folder(tmp_path: Path) -> None:
    feed = make_feed(HISTORY, tmp_path, "default")
    assert feed is not None
    assert feed.history is not None
    assert feed.history.path == tmp_path / "usage-default.jsonl"
    assert make_feed(None, tmp_path, "default") is None
    with pytest.raises(UsageConfigError):
        make_feed({"clientType": "history"}, tmp_path, "default")
