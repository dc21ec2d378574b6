"""A saved cycle replays to the same decisions; KAI's own file is read."""

from __future__ import annotations

import json
import zipfile
from math import inf
from pathlib import Path

import pytest

from kube.objects.config import Override, SchedulingShard, ShardSpec
from kube.resources import NODES, PODGROUPS, PODS, QUEUES
from scheduler.core.cluster.constraints import Expression, NodeTerm, Operator, TaskConstraints
from scheduler.core.cluster.inputs import PlainRequest
from scheduler.core.config import PluginConfig
from scheduler.core.decisions import ActionName
from scheduler.core.plugins.placement_strategy import NodePlacementArguments
from scheduler.core.plugins.table import PLUGINS
from scheduler.load.archive import (
    Archive,
    ArchiveError,
    read_archive,
    read_objects,
    write_archive,
)
from scheduler.settings.params import ShardParams
from scheduler.settings.shard import ShardSettings, core_config, settings_of
from scheduler.tools.replay import decision_lines, explanation, replay, timings
from tests.fakes.gateway import FakeGateway
from tests.scheduler.load.objects import NOW, group, node, pod, queue

FREE = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
RESOURCES = {"gpu": FREE, "cpu": FREE, "memory": FREE}


def cluster() -> FakeGateway:
    gateway = FakeGateway()
    gateway.seed(NODES, node("n0", gpus=2))
    gateway.seed(QUEUES, queue("q", resources=RESOURCES))
    gateway.seed(PODGROUPS, group("small"), group("large"))
    gateway.seed(PODS, pod("small", group="small", requests={"nvidia.com/gpu": "1"}))
    gateway.seed(PODS, pod("large", group="large", requests={"nvidia.com/gpu": "2"}))
    return gateway


def saved(tmp_path: Path, settings: ShardSettings | None = None) -> Archive:
    path = tmp_path / "snapshot.zip"
    settings = settings or ShardSettings()
    write_archive(path, read_objects(cluster(), settings.params), settings, NOW)
    return read_archive(path)


def test_what_pods_that_are_gone_requested_is_kept(tmp_path: Path) -> None:
    term = NodeTerm(labels=(Expression("gpu", Operator.IN, ("a", "b")),))
    selection = TaskConstraints(node_selector=(("zone", "z"),), node_affinity=(term,))
    past = {PlainRequest(500.0, 0.5, 1): 2.5, PlainRequest(0.0, 1.0, 8, selection): 1.0}
    path = tmp_path / "snapshot.zip"
    write_archive(path, read_objects(cluster(), ShardParams()), ShardSettings(), NOW, past)
    assert read_archive(path).past_requests == past
    assert replay(read_archive(path)).snapshot.cluster.past_requests == past


def test_saved_cycle_decides_and_explains(tmp_path: Path) -> None:
    archive = saved(tmp_path)
    assert archive.now == NOW
    replayed = replay(archive)
    assert decision_lines(replayed) == ["bind ns/large to n0"]
    assert next(iter(timings(replayed)["action_durations_ms"])) == "allocate"
    lines = explanation(replayed, "ns/small")
    assert lines[0].startswith("ns/small: PodSchedulingErrors: Resources were not found")
    assert explanation(replayed, "ns/large") == [
        "ns/large: nothing of it waits",
        "  pod large: on n0 by only-node; 1 of 1 nodes could take it",
    ]
    assert explanation(replayed, "ns/none") == ["ns/none: not in the snapshot"]


def test_settings_survive(tmp_path: Path) -> None:
    spec = ShardSpec(
        args={"max-consolidation-preemptees": "-1", "default-staleness-grace-period": "90s"},
        queue_depth_per_action={"allocate": 5},
        k_value=0.5,
    )
    params = ShardParams(partition_value="a100", stuck_in_releasing_s=30)
    settings = ShardSettings(params=params, core=core_config(spec))
    back = saved(tmp_path, settings).settings
    assert back.core == settings.core
    assert (back.params.partition_value, back.params.stuck_in_releasing_s) == ("a100", 30)
    assert (back.core.max_consolidation_victims, back.core.staleness_grace_s) == (inf, 90)
    assert not back.params.keeps_room


def test_arguments_of_every_plugin_survive(tmp_path: Path) -> None:
    plugins = {plugin.name: Override(enabled=True) for plugin in PLUGINS}
    plugins["backfill"] = Override(enabled=True, arguments={"horizon": "720h"})
    core = core_config(ShardSpec(plugins=plugins))
    assert saved(tmp_path, ShardSettings(core=core)).settings.core == core


def test_a_saved_cycle_that_keeps_room_reads_run_times_again(tmp_path: Path) -> None:
    spec = ShardSpec(plugins={"backfill": Override(enabled=True)})
    settings = settings_of("default", SchedulingShard(spec=spec), None)
    assert settings.params.keeps_room
    assert saved(tmp_path, settings).settings.params.keeps_room


def test_file_as_kai_writes_it(tmp_path: Path) -> None:
    body = {
        "config": {
            "actions": "allocate, reclaim",
            "tiers": [
                {"plugins": [{"name": "predicates"}, {"name": "proportion"}]},
                {
                    "plugins": [
                        {"name": "nodeplacement", "arguments": {"cpu": "spread", "gpu": "binpack"}}
                    ]
                },
            ],
            "queueDepthPerAction": {"allocate": 3},
        },
        "schedulerParams": {
            "schedulerName": "kai-scheduler",
            "partitionParams": {"NodePoolLabelKey": "pool", "NodePoolLabelValue": "v"},
            "maxNumberConsolidationPreemptees": 7,
            "globalDefaultStalenessGracePeriod": 60_000_000_000,
            "stuckInReleasingThreshold": 120_000_000_000,
        },
        "rawObjects": {"pods": [], "nodes": None},
    }
    path = tmp_path / "snapshot.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("snapshot.json", json.dumps(body))
    settings = read_archive(path).settings
    assert settings.core.actions == (ActionName.ALLOCATE, ActionName.RECLAIM)
    assert settings.core.plugins == (
        PluginConfig("predicates"),
        PluginConfig("proportion"),
        PluginConfig("nodeplacement", NodePlacementArguments(cpu="spread")),
    )
    assert settings.core.queue_depth == {ActionName.ALLOCATE: 3}
    assert settings.core.max_consolidation_victims == 7
    assert (settings.params.node_pool_label_key, settings.params.partition_value) == ("pool", "v")


@pytest.mark.parametrize("member", ["other.json", "snapshot.json"])
def test_what_is_no_snapshot_is_refused(tmp_path: Path, member: str) -> None:
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(member, "{}")
    with pytest.raises(ArchiveError, match=r"x\.zip: expected"):
        read_archive(path)
    path.write_text("no zip")
    with pytest.raises(ArchiveError, match="expected a zip"):
        read_archive(path)
