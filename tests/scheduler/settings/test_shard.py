"""A SchedulingShard becomes settings, or is refused with the field that is wrong."""

from __future__ import annotations

from math import inf

import pytest

from kube.objects.config import Config, SchedulingShard, ShardSpec
from kube.objects.meta import convert
from scheduler.core.decisions import ActionName
from scheduler.core.errors import ConfigError
from scheduler.core.plugins.backfill import BackfillArguments
from scheduler.core.plugins.min_runtime import MinRuntimeArguments
from scheduler.core.plugins.placement_strategy import NodePlacementArguments
from scheduler.core.plugins.proportion import ProportionArguments
from scheduler.settings.shard import core_config, settings_of, shard_params


def spec(**fields: object) -> ShardSpec:
    return convert({"spec": fields}, SchedulingShard).spec


def names(of: ShardSpec) -> list[str]:
    return [plugin.name for plugin in core_config(of).plugins]


def arguments(of: ShardSpec, name: str) -> object:
    return next(plugin.arguments for plugin in core_config(of).plugins if plugin.name == name)


def test_defaults_are_the_operator_s() -> None:
    settings = settings_of("default", None, None)
    assert settings.core.actions == (
        ActionName.ALLOCATE,
        ActionName.CONSOLIDATION,
        ActionName.RECLAIM,
        ActionName.PREEMPT,
        ActionName.STALE_GANG_EVICTION,
    )
    own = {"userfairness", "gpumodels"}  # They add nothing unless a queue asks for it.
    assert [plugin.name for plugin in settings.core.plugins if plugin.name not in own] == [
        "predicates", "proportion", "priority", "nodeavailability", "resourcetype", "podaffinity",
        "elastic", "kubeflow", "ray", "subgrouporder", "taskorder", "nominatednode",
        "dynamicresources", "minruntime", "topology", "snapshot", "sg-nodelocalgreedy",
        "sg-multinodegang", "gpupack", "nodeplacement", "gpusharingorder",
    ]  # fmt: skip
    assert own < {plugin.name for plugin in settings.core.plugins}
    assert settings.params.pool_name == "default"


def test_fragmentation_packs_devices_and_leaves_the_order_by_sharing_out() -> None:
    fragmenting = spec(placementStrategy={"gpu": "fragmentation"})
    assert "gpupack" in names(fragmenting)
    assert not {"gpuspread", "gpusharingorder"} & set(names(fragmenting))
    assert ActionName.CONSOLIDATION in core_config(fragmenting).actions
    assert arguments(fragmenting, "nodeplacement") == NodePlacementArguments(gpu="fragmentation")


def test_spread_changes_plugins_and_drops_consolidation() -> None:
    spreading = spec(placementStrategy={"gpu": "spread"})
    assert "gpuspread" in names(spreading)
    assert not {"gpupack", "gpusharingorder"} & set(names(spreading))
    assert ActionName.CONSOLIDATION not in core_config(spreading).actions
    assert arguments(spreading, "nodeplacement") == NodePlacementArguments(gpu="spread")
    by_cpu = spec(placementStrategy={"cpu": "spread"})
    assert "gpupack" in names(by_cpu)
    assert ActionName.CONSOLIDATION not in core_config(by_cpu).actions


def test_overrides_merge_one_by_one_but_arguments_as_a_whole() -> None:
    of = spec(
        kValue=0.5,
        minRuntime={"preemptMinRuntime": "1m"},
        plugins={
            "elastic": {"enabled": False},
            "ray": {"priority": 5000},
            "reflectjoborder": {},
            "minruntime": {"arguments": {"defaultReclaimMinRuntime": "2m"}},
        },
        actions={"reclaim": {"enabled": False}, "preempt": {"priority": 900}},
    )
    assert "elastic" not in names(of)
    assert names(of)[0] == "ray"
    assert names(of)[-1] == "reflectjoborder"
    assert arguments(of, "proportion") == ProportionArguments(k_value=0.5)
    assert arguments(of, "minruntime") == MinRuntimeArguments(default_reclaim_s=120)
    assert core_config(of).actions[:2] == (ActionName.PREEMPT, ActionName.ALLOCATE)


def test_flags_and_budgets() -> None:
    of = spec(
        args={
            "max-consolidation-preemptees": "-1",
            "no-such-flag": "x",
            "stuck-in-releasing-threshold": "30s",
            "detailed-fit-errors": "true",
        },
        scenarioSearchBudgets={
            "maxActionSearchDuration": {"reclaim": "10s", "default": "0s"},
            "maxJobSearchDuration": "1m",
        },
        queueDepthPerAction={"allocate": 10},
    )
    core = core_config(of)
    assert core.max_consolidation_victims == inf
    assert core.budgets.of_action(ActionName.RECLAIM) == 10
    assert core.budgets.of_action(ActionName.PREEMPT) == inf
    assert core.budgets.max_pod_group_s == 60
    assert core.depth_of(ActionName.ALLOCATE) == 10
    shard = SchedulingShard(spec=of)
    params = settings_of("x", shard, Config()).params
    assert (params.stuck_in_releasing_s, params.detailed_fit_errors) == (30, True)


def test_a_queue_depth_of_minus_one_is_all() -> None:
    core = core_config(spec(queueDepthPerAction={"allocate": -1, "reclaim": 5}))
    assert (core.depth_of(ActionName.ALLOCATE), core.depth_of(ActionName.RECLAIM)) == (inf, 5)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *((text, True) for text in ("1", "t", "T", "TRUE", "true", "True")),
        *((text, False) for text in ("0", "f", "F", "FALSE", "false", "False")),
    ],
)
def test_flags_take_the_spellings_of_go(text, value) -> None:
    of = spec(args={"full-hierarchy-fairness": text, "detailed-fit-errors": text})
    assert core_config(of).full_hierarchy_fairness is value
    params = settings_of("x", SchedulingShard(spec=of), Config()).params
    assert params.detailed_fit_errors is value


def test_shared_names_come_from_the_config_object() -> None:
    config = convert(
        {"spec": {"global": {"schedulerName": "ours", "nodePoolLabelKey": "pool"}}}, Config
    )
    params = settings_of("x", SchedulingShard(spec=spec(partitionLabelValue="v")), config).params
    assert (params.scheduler_name, params.pool_labels()) == ("ours", {"pool": "v"})


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"queueDepthPerAction": {"sleep": 1}}, "sleep isn't one of them"),
        ({"placementStrategy": {"cpu": "pile"}}, "placementStrategy.cpu: expected"),
        ({"plugins": {"nothing": {}}}, "unknown plugin 'nothing'"),
        ({"actions": {"sleep": {}}}, "unknown action 'sleep'"),
        ({"args": {"detailed-fit-errors": "maybe"}}, None),
        ({"args": {"full-hierarchy-fairness": "maybe"}}, "expected true or false"),
        ({"minRuntime": {"preemptMinRuntime": "soon"}}, "'soon' is not a duration"),
        (
            {"scenarioSearchBudgets": {"maxActionSearchDuration": {"x": "1s"}}},
            'contains invalid action key "x"',
        ),
        (
            {"scenarioSearchBudgets": {"maxJobSearchDuration": "-1s"}},
            "maxJobSearchDuration must be non-negative",
        ),
    ],
)
def test_wrong_values_refuse_the_whole_shard(
    fields: dict[str, object], problem: str | None
) -> None:
    if problem is None:
        core_config(spec(**fields))  # not the core's flag
        with pytest.raises(ConfigError):
            settings_of("x", SchedulingShard(spec=spec(**fields)), None)
        return
    with pytest.raises(ConfigError, match=problem):
        core_config(spec(**fields))


def test_reservations_are_known_by_the_label_that_the_binder_gives_them() -> None:
    config_body = {"spec": {"binder": {"resourceReservation": {"appLabel": "holders"}}}}
    config = convert(config_body, Config)
    shard = convert({"spec": {}}, SchedulingShard)
    assert settings_of("x", shard, config).params.reservation_app_label == "holders"
    own = convert({"spec": {"args": {"resource-reservation-app-label": "mine"}}}, SchedulingShard)
    assert settings_of("x", own, config).params.reservation_app_label == "mine"


@pytest.mark.parametrize(
    ("plugins", "keeps"),
    [({}, False), ({"backfill": {}}, True), ({"backfill": {"enabled": False}}, False)],
)
def test_a_shard_with_backfill_reads_run_times(plugins, keeps) -> None:
    fields = spec(plugins=plugins)
    assert shard_params("default", fields, None).keeps_room is keeps
    assert ("backfill" in names(fields)) is keeps


def test_arguments_of_backfill() -> None:
    plugins = {"backfill": {"enabled": True, "arguments": {"reservations": "2", "horizon": "90m"}}}
    expected = BackfillArguments(reservations=2, horizon_s=5400.0)
    assert arguments(spec(plugins=plugins), "backfill") == expected
