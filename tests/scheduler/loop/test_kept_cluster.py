"""What a worker keeps between cycles is compared with what it would be if made anew, reported and repaired."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from scheduler.loop.kept_cluster import CHECK_EVERY_S, CHECK_LATEST_S, KeptCluster
from scheduler.metrics import SchedulerMetrics
from scheduler.settings.params import ShardParams
from tests.scheduler.load.changing import first_cluster
from tests.scheduler.load.objects import NOW, Cluster


@pytest.fixture
def metrics(monkeypatch: pytest.MonkeyPatch) -> SchedulerMetrics:
    fresh = SchedulerMetrics()
    monkeypatch.setattr("scheduler.loop.kept_cluster.METRICS", fresh)
    return fresh


def repairs(metrics: SchedulerMetrics) -> dict[str, float]:
    (series,) = metrics.repairs.collect()
    return {sample.labels["part"]: sample.value for sample in series.samples if sample.value}


def cycle(kept_cluster: KeptCluster, cluster: Cluster, after_s: float) -> int:
    """Take a snapshot and open a state on it; return how many pod groups have priority 50."""
    snapshot = kept_cluster.snapshot(
        cluster.store.view(),
        NOW + after_s,
        usage=None,
        marks={},
        refused_evictions={},
        past_requests={},
    )
    return kept_cluster.state.open(snapshot.cluster).pod_groups.priority.count(50)


def spoil_snapshot(kept_cluster: KeptCluster) -> None:
    sorted_groups = kept_cluster._builder._groups._sorted
    sorted_groups._values[0] = replace(sorted_groups._values[0], priority=7)
    sorted_groups._tuple = tuple(sorted_groups._values)


def spoil_state(kept_cluster: KeptCluster) -> None:
    assert kept_cluster.state.state is not None
    kept_cluster.state.state.pod_groups.priority[0] = 7


@pytest.mark.parametrize(("spoil", "part"), [(spoil_snapshot, "snapshot"), (spoil_state, "state")])
def test_a_difference_is_reported_and_repaired(
    spoil: Callable[[KeptCluster], None],
    part: str,
    metrics: SchedulerMetrics,
    caplog: pytest.LogCaptureFixture,
) -> None:
    kept_cluster, cluster = KeptCluster(ShardParams(), NOW), first_cluster()
    assert cycle(kept_cluster, cluster, 0) == 3
    spoil(kept_cluster)
    assert cycle(kept_cluster, cluster, 1) == 2
    kept_cluster.was_quiet = True
    assert cycle(kept_cluster, cluster, CHECK_EVERY_S) == 3
    assert repairs(metrics) == {part: 1.0}
    assert f"the kept {part} differed" in caplog.text
    assert cycle(kept_cluster, cluster, 2 * CHECK_EVERY_S) == 3
    assert repairs(metrics) == {part: 1.0}


def test_a_busy_worker_is_checked_after_an_hour(metrics: SchedulerMetrics) -> None:
    kept_cluster, cluster = KeptCluster(ShardParams(), NOW), first_cluster()
    cycle(kept_cluster, cluster, 0)
    spoil_state(kept_cluster)
    assert cycle(kept_cluster, cluster, CHECK_LATEST_S - 1) == 2
    assert cycle(kept_cluster, cluster, CHECK_LATEST_S) == 3
    assert repairs(metrics) == {"state": 1.0}
