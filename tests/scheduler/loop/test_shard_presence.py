"""A scheduler works on its shard's part of the cluster only: without the object there is none."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kube.resources import CONFIGS, SHARDS
from scheduler.load.usage import PrometheusUsage
from tests.scheduler.load.objects import meta
from tests.scheduler.loop.harness import Harness
from tests.scheduler.loop.harness import harness as open_harness

PARTITION = {"partitionLabelValue": "amber"}


@pytest.fixture
def amber() -> Iterator[Harness]:
    with open_harness("amber") as opened:
        yield opened


def test_the_default_shard_needs_no_object() -> None:
    with open_harness() as harness:
        assert not harness.worker.is_ready()
        assert harness.watch().worker.is_ready()


def test_another_shard_waits_for_its_object_and_stops_when_it_goes(amber: Harness) -> None:
    assert not amber.watch().worker.is_ready()
    amber.seed(SHARDS, {"metadata": meta("amber"), "spec": PARTITION})
    assert amber.watch().worker.is_ready()
    assert amber.worker.settings.params.partition_value == "amber"
    amber.gateway.delete(SHARDS, "amber")
    assert not amber.watch().worker.is_ready()
    # Not even then does it take the nodes without a pool for its own.
    assert amber.worker.settings.params.partition_value == "amber"


def test_settings_that_were_never_valid_start_nothing_and_later_invalid_ones_keep_the_old(
    amber: Harness,
) -> None:
    spoilt = {**PARTITION, "placementStrategy": {"gpu": "pile"}}
    amber.seed(SHARDS, {"metadata": meta("amber"), "spec": spoilt})
    assert not amber.watch().worker.is_ready()
    assert amber.worker.follower.error == (
        "placementStrategy.gpu: expected one of binpack, spread, fragmentation, got 'pile'"
    )
    amber.gateway.patch(SHARDS, "amber", {"spec": {"placementStrategy": {"gpu": "spread"}}})
    assert amber.watch().worker.is_ready()
    assert amber.worker.settings.core.has_plugin("gpuspread")
    amber.gateway.patch(SHARDS, "amber", {"spec": {"placementStrategy": {"gpu": "pile"}}})
    assert amber.watch().worker.is_ready()
    assert amber.worker.settings.core.has_plugin("gpuspread")


def test_an_edited_shard_is_followed_without_a_restart(amber: Harness) -> None:
    amber.seed(SHARDS, {"metadata": meta("amber"), "spec": PARTITION})
    amber.watch().worker.is_ready()
    amber.gateway.patch(
        SHARDS,
        "amber",
        {
            "spec": {
                "partitionLabelValue": "birch",
                "args": {"default-staleness-grace-period": "90s"},
                "plugins": {"elastic": {"enabled": False}},
                "actions": {"preempt": {"enabled": False}},
            }
        },
    )
    amber.watch().worker.is_ready()
    settings = amber.worker.settings
    assert settings.params.partition_value == "birch"
    assert settings.core.staleness_grace_s == 90
    assert not settings.core.has_plugin("elastic")
    assert "preempt" not in settings.core.actions


def test_the_address_of_prometheus_follows_the_config(amber: Harness) -> None:
    usage = {"usageDBConfig": {"clientType": "prometheus"}}
    amber.seed(SHARDS, {"metadata": meta("amber"), "spec": PARTITION})
    amber.watch().worker.is_ready()
    amber.gateway.patch(SHARDS, "amber", {"spec": usage})
    amber.watch().worker.is_ready()
    assert amber.worker.follower.error.startswith("prometheus connection string not configured: ")
    spec = {"namespace": "kai", "prometheus": {"enabled": True}}
    amber.seed(CONFIGS, {"metadata": meta("kai-config"), "spec": spec})
    amber.watch().worker.is_ready()
    assert amber.worker.follower.error == ""
    feed = amber.worker.follower.usage
    assert feed is not None
    assert isinstance(feed.reader.source, PrometheusUsage)
    assert feed.reader.source.address == "http://usage-prometheus.kai.svc.cluster.local:9090"
