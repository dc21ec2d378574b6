"""A configuration that makes no sense is refused as a whole, with the name of what is wrong."""

from __future__ import annotations

import pytest

from scheduler.core.config import PluginConfig, SchedulerConfig
from scheduler.core.decisions import ActionName
from scheduler.core.errors import ConfigError
from scheduler.core.options import SearchBudgets
from scheduler.core.plugins.min_runtime import MinRuntimeArguments
from scheduler.core.plugins.numa.plugin import NumaArguments
from scheduler.core.plugins.placement_strategy import NodePlacementArguments
from scheduler.core.plugins.proportion import ProportionArguments
from scheduler.core.plugins.spec import NoArguments
from scheduler.core.plugins.table import PLUGINS


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PluginConfig("magic"), "unknown plugin 'magic'"),
        (lambda: PluginConfig("elastic", NumaArguments()), "plugin elastic: expected NoArguments"),
        (
            lambda: PluginConfig("proportion", NoArguments()),
            "plugin proportion: expected ProportionArguments, got NoArguments",
        ),
        (
            lambda: NodePlacementArguments(gpu="pile"),
            "nodeplacement.gpu: expected one of binpack, spread, fragmentation",
        ),
        (
            lambda: MinRuntimeArguments(default_reclaim_s=-1),
            "default_reclaim_s: expected 0 or more",
        ),
        (lambda: MinRuntimeArguments(reclaim_resolve_method="x"), "expected lca or queue"),
        (
            lambda: SearchBudgets(min_pod_group_s=300),
            "expected less than the maximum 240s, got 300s",
        ),
        (lambda: SearchBudgets(generator_s={"Best": 1}), "unknown generator 'Best'"),
        (
            lambda: SchedulerConfig(plugins=(PluginConfig("ray"), PluginConfig("ray"))),
            "plugin ray is listed more than once",
        ),
        (
            lambda: SchedulerConfig(actions=(), queue_depth={ActionName.RECLAIM: 3}),
            "action reclaim is not enabled",
        ),
        (
            lambda: SchedulerConfig(queue_depth={ActionName.RECLAIM: 0}),
            "expected 1 or more, or -1 for all, got 0",
        ),
    ],
)
def test_invalid_arguments_are_refused(make, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ConfigError, match=message):
        make()


def test_values_below_the_least_are_raised_to_it() -> None:
    assert ProportionArguments(k_value=-1, saturation_multiplier=0.5) == ProportionArguments(
        k_value=0.0, saturation_multiplier=1.0
    )


def test_a_plugin_without_arguments_gets_its_defaults() -> None:
    assert PluginConfig("minruntime").arguments == MinRuntimeArguments()


def test_budgets_and_depths_fall_back_to_their_defaults() -> None:
    budgets = SearchBudgets(action_s={ActionName.RECLAIM: 7.0})
    assert (budgets.of_action(ActionName.RECLAIM), budgets.of_action(ActionName.PREEMPT)) == (
        7,
        300,
    )
    assert (budgets.of_generator("NodeLocalGreedy"), budgets.of_generator("Other")) == (30, 120)
    config = SchedulerConfig(queue_depth={ActionName.RECLAIM: 3})
    assert config.depth_of(ActionName.RECLAIM) == 3
    assert config.depth_of(ActionName.ALLOCATE) == float("inf")
    everything = SchedulerConfig(queue_depth={ActionName.RECLAIM: -1})
    assert everything.depth_of(ActionName.RECLAIM) == float("inf")
    assert config.has_plugin("proportion")
    assert not config.has_plugin("numa")


def test_plugins_are_listed_by_priority_then_name_and_each_once() -> None:
    order = [(-spec.priority, spec.name) for spec in PLUGINS]
    assert order == sorted(set(order))
