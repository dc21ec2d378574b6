"""Minimum runtime: whose value counts, who is kept back, and which gangs must stay whole."""

from __future__ import annotations

import pytest

from scheduler.core.config import DEFAULT_PLUGINS, PluginConfig, SchedulerConfig
from scheduler.core.decisions import ActionName, Evict
from scheduler.core.plugins.min_runtime import (
    MinRuntimeArguments,
    preempt_min_runtime,
    reclaim_min_runtime,
)
from tests.builders import ClusterBuilder, cluster

A, B, C, D, LEAF1, LEAF2, LEAF3, OTHER = range(8)
PATHS = [
    (A,),
    (B, A),
    (C, B, A),
    (D, B, A),
    (LEAF1, C, B, A),
    (LEAF2, C, B, A),
    (LEAF3, D, B, A),
    (OTHER,),
]
VALUES = [None, 600.0, None, 60.0, 0.0, 180.0, None, 7.0]


@pytest.mark.parametrize(
    ("reclaimer", "victim", "seconds"),
    [
        (LEAF1, LEAF3, 60.0),
        (LEAF1, LEAF2, 180.0),
        (LEAF3, LEAF1, 600.0),
        (OTHER, LEAF1, 5.0),
        (LEAF1, OTHER, 7.0),
    ],
)
def test_reclaim_looks_where_the_paths_meet(reclaimer, victim, seconds) -> None:
    assert reclaim_min_runtime(PATHS, VALUES, reclaimer, victim, 5.0) == seconds


def test_preempt_takes_the_nearest_value_upward() -> None:
    assert preempt_min_runtime(PATHS, VALUES, LEAF3, 5.0) == 60.0
    assert preempt_min_runtime(PATHS, VALUES, C, 5.0) == 600.0
    assert preempt_min_runtime(PATHS, VALUES, A, 5.0) == 5.0


def with_arguments(**arguments) -> SchedulerConfig:
    plugins = tuple(p for p in DEFAULT_PLUGINS if p.name != "minruntime")
    return SchedulerConfig(
        plugins=(*plugins, PluginConfig("minruntime", MinRuntimeArguments(**arguments)))
    )


def reclaiming(**running) -> ClusterBuilder:
    built = cluster().node("n0", 2).queue("a", 0).queue("b", 2)
    built.running("r", ["n0", "n0"], queue="a", last_start=-100.0, **running)
    return built.pending("want", queue="b")


def evicted(result) -> list[str]:
    return [decision.task.name for decision in result.decisions if isinstance(decision, Evict)]


@pytest.mark.parametrize(("seconds", "names"), [(101.0, []), (100.0, ["r-0", "r-1"])])
@pytest.mark.parametrize("method", ["lca", "queue"])
def test_a_young_gang_is_kept_back_from_reclaim(method, seconds, names) -> None:
    config = with_arguments(default_reclaim_s=seconds, reclaim_resolve_method=method)
    assert evicted(reclaiming().cycle(ActionName.RECLAIM, config=config)) == names


def test_a_young_elastic_pod_group_may_shrink_to_its_minimum() -> None:
    config = with_arguments(default_reclaim_s=999.0)
    assert evicted(reclaiming(minimum=1).cycle(ActionName.RECLAIM, config=config)) == ["r-1"]
    built = reclaiming(minimum=1).pending("more", queue="b")
    assert evicted(built.cycle(ActionName.RECLAIM, config=config)) == ["r-1"]


def test_what_never_started_is_not_protected() -> None:
    built = cluster().node("n0", 1).queue("a", 0).queue("b", 1).running("r", ["n0"], queue="a")
    config = with_arguments(default_reclaim_s=999.0)
    assert evicted(built.pending("want", queue="b").cycle(ActionName.RECLAIM, config=config)) == [
        "r-0"
    ]


@pytest.mark.parametrize(("seconds", "names"), [(101.0, []), (100.0, ["r-0"])])
def test_a_young_pod_group_is_kept_back_from_preempt(seconds, names) -> None:
    built = cluster().node("n0", 1).queue("a", 1).running("r", ["n0"], last_start=-100.0)
    built.pending("high", priority=100)
    config = with_arguments(default_preempt_s=seconds)
    assert evicted(built.cycle(ActionName.PREEMPT, config=config)) == names


def test_preempt_shrinks_a_young_elastic_pod_group_to_its_minimum() -> None:
    built = (
        cluster().node("n0", 2).queue("a", 2).running("r", ["n0", "n0"], last_start=-1.0, minimum=1)
    )
    built.pending("high", 2, priority=100)
    config = with_arguments(default_preempt_s=50.0)
    assert evicted(built.cycle(ActionName.PREEMPT, config=config)) == []
    built = (
        cluster().node("n0", 2).queue("a", 2).running("r", ["n0", "n0"], last_start=-1.0, minimum=1)
    )
    assert evicted(
        built.pending("high", priority=100).cycle(ActionName.PREEMPT, config=config)
    ) == ["r-1"]
