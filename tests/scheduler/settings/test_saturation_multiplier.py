"""The saturation multiplier: both of its names are read, and it holds reclaim back."""

from __future__ import annotations

import pytest

from scheduler.core.config import DEFAULT_PLUGINS, SchedulerConfig
from scheduler.core.decisions import ActionName, Evict
from scheduler.settings.shard import plugin_config
from tests.builders import cluster


@pytest.mark.parametrize(
    "name", ["reclaimerUtilizationMultiplier", "relcaimerSaturationMultiplier"]
)
@pytest.mark.parametrize(("value", "read"), [("2", 2.0), ("0.5", 1.0)])
def test_both_names_are_read_and_less_than_one_is_one(name, value, read) -> None:
    assert plugin_config("proportion", {name: value}).arguments.saturation_multiplier == read


def test_the_documented_name_wins() -> None:
    both = {"reclaimerUtilizationMultiplier": "3", "relcaimerSaturationMultiplier": "2"}
    assert plugin_config("proportion", both).arguments.saturation_multiplier == 3.0


@pytest.mark.parametrize(("multiplier", "victims"), [("1", ["v1-2-0"]), ("2", [])])
def test_the_other_side_must_stay_so_much_fuller(multiplier, victims) -> None:
    """The department of the reclaimer would be at 5/4; the other one falls from 7/3 to 6/3."""
    built = cluster().node("n0", 11)
    built.queue("d1", 4, weight=0).queue("d2", 3, weight=0)
    built.queue("d1-held", 1, parent="d1", weight=0).queue("d1-asks", 3, parent="d1", weight=0)
    built.queue("d2-team", 3, parent="d2", weight=0)
    for number in range(4):
        built.running(f"own-{number}", ["n0"], queue="d1-held", priority=100)
    for number in range(7):
        built.running(f"v{number // 4}-{number % 4}", ["n0"], queue="d2-team")
    built.pending("asks", queue="d1-asks")
    plugins = tuple(
        plugin_config("proportion", {"reclaimerUtilizationMultiplier": multiplier, "kValue": "1"})
        if plugin.name == "proportion"
        else plugin
        for plugin in DEFAULT_PLUGINS
    )
    result = built.cycle(ActionName.RECLAIM, config=SchedulerConfig(plugins=plugins))
    evicted = [decision.task.name for decision in result.decisions if isinstance(decision, Evict)]
    assert evicted == victims
