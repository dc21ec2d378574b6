"""Read the settings of a shard's scheduler from its SchedulingShard object and the Config.

The core's part (actions, plugins, budgets) and the adapters' part (`ShardParams`) come from the same
object. One bad value makes the whole object unusable: the shard keeps its old settings and shows the error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf

from kube.keys import QUEUE
from kube.objects.config import Config, Override, PlacementStrategy, SchedulingShard, ShardSpec
from scheduler.core.config import PluginConfig, SchedulerConfig
from scheduler.core.decisions import ActionName
from scheduler.core.errors import ConfigError
from scheduler.core.options import SearchBudgets
from scheduler.core.plugins.min_runtime import MinRuntimeArguments
from scheduler.core.plugins.placement_strategy import (
    BINPACK,
    FRAGMENTATION,
    SPREAD,
    STRATEGIES,
    NodePlacementArguments,
)
from scheduler.core.plugins.proportion import ProportionArguments
from scheduler.core.plugins.table import PLUGINS, spec_of
from scheduler.settings.flags import Flags, Option, duration_s
from scheduler.settings.params import ShardParams
from scheduler.settings.usage import UsageConfigError, read_usage_config, with_connection

ACTION_PRIORITIES = {
    ActionName.ALLOCATE: 500,
    ActionName.CONSOLIDATION: 400,
    ActionName.RECLAIM: 300,
    ActionName.PREEMPT: 200,
    ActionName.STALE_GANG_EVICTION: 100,
}
#: The plugins that order the devices of a node, for strategies other than binpack.
_DEVICE_PLUGINS = {SPREAD: {"gpuspread"}, FRAGMENTATION: {"gpupack"}}
#: The only Config that is read, and the only shard that always exists.
CONFIG_NAME, DEFAULT_SHARD = "kai-config", "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardSettings:
    """All settings of one shard's scheduler."""

    params: ShardParams = field(default_factory=ShardParams)
    core: SchedulerConfig = field(default_factory=lambda: core_config(ShardSpec()))


def settings_of(name: str, shard: SchedulingShard | None, config: Config | None) -> ShardSettings:
    """Return the settings of a shard; without an object the shard runs on defaults.

    Raises
    ------
    ConfigError : an unknown name or a value out of range; the message names the field
    """
    spec = shard.spec if shard is not None else ShardSpec()
    return ShardSettings(params=shard_params(name, spec, config), core=core_config(spec))


def problem_of(
    name: str, shard: SchedulingShard, config: Config | None, environment: Mapping[str, str]
) -> str:
    """Return why a scheduler would refuse this object, naming the field; "" if it would not."""
    try:
        settings_of(name, shard, config)
        usage = with_connection(shard.spec.usage_db_config, config)
        if usage:
            read_usage_config(usage, environment)
    except (ConfigError, UsageConfigError) as error:
        return str(error)
    return ""


def options_of(name: str, spec: ShardSpec, config: Config | None) -> tuple[Option, ...]:
    """Return every option that `args` of a shard may state, by name, with its value.

    Raises
    ------
    ConfigError : a value of the wrong form
    """
    args = Flags(spec.args)
    shard_params(name, spec, config, args)
    core_config(spec, args)
    return tuple(args.options[flag] for flag in sorted(args.options))


def shard_params(
    name: str, spec: ShardSpec, config: Config | None, args: Flags | None = None
) -> ShardParams:
    """Return the adapters' part of a shard's settings; unknown flags are ignored, as in KAI.

    Parameters
    ----------
    args : reads the flags; by default those of the spec
    """
    installation = (config or Config()).spec
    shared, reservation = installation.global_, installation.binder.resource_reservation
    args = Flags(spec.args) if args is None else args
    return ShardParams(
        name=name,
        scheduler_name=args.text("scheduler-name", shared.scheduler_name),
        node_pool_label_key=args.text("nodepool-label-key", shared.node_pool_label_key),
        partition_value=spec.partition_label_value,
        queue_label_key=args.text("queue-label-key", shared.queue_label_key),
        restrict_node_scheduling=args.flag("restrict-node-scheduling", default=False),
        cpu_worker_label_key=args.text(
            "cpu-worker-node-label-key", ShardParams().cpu_worker_label_key
        ),
        gpu_worker_label_key=args.text(
            "gpu-worker-node-label-key", ShardParams().gpu_worker_label_key
        ),
        mig_label_key=args.text("mig-worker-node-label-key", ShardParams().mig_label_key),
        reservation_app_label=args.text(
            "resource-reservation-app-label",
            reservation.app_label or ShardParams().reservation_app_label,
        ),
        stuck_in_releasing_s=args.seconds("stuck-in-releasing-threshold", 120.0),
        schedule_csi_storage=args.flag("schedule-csi-storage", default=False),
        detailed_fit_errors=args.flag("detailed-fit-errors", default=False),
        update_pod_eviction_condition=args.flag("update-pod-eviction-condition", default=False),
        use_eviction_api=args.flag("use-eviction-api", default=True),
        max_evictions_per_owner=int(args.number("max-evictions-per-owner", 0)),
        schedule_period_s=args.seconds("schedule-period", 1.0),
        keeps_room="backfill" in spec.plugins and spec.plugins["backfill"].enabled is not False,
        recorded_placements=int(
            args.number("recorded-placements", ShardParams().recorded_placements)
        ),
        queue_limited_condition=args.choice(
            "queue-limited-condition", ("Unschedulable", "QueueLimited")
        ),
    )


def core_config(spec: ShardSpec, args: Flags | None = None) -> SchedulerConfig:
    """Return the core's part of a shard's settings; `args` reads the flags, by default those of the spec."""
    args = Flags(spec.args) if args is None else args
    placement = spec.placement_strategy or PlacementStrategy()
    for kind, value in (("gpu", placement.gpu), ("cpu", placement.cpu)):
        if value not in ("", *STRATEGIES):
            raise ConfigError(
                f"placementStrategy.{kind}: expected one of {', '.join(STRATEGIES)}, got {value!r}"
            )
    max_victims = args.number("max-consolidation-preemptees", 16)
    actions = _actions(spec, placement)
    return SchedulerConfig(
        actions=actions,
        plugins=_plugins(spec, placement),
        queue_depth=_depths(spec.queue_depth_per_action, actions),
        budgets=_budgets(spec.scenario_search_budgets or {}),
        max_consolidation_victims=inf if max_victims < 0 else max_victims,
        restrict_node_scheduling=args.flag("restrict-node-scheduling", default=False),
        schedule_csi_storage=args.flag("schedule-csi-storage", default=False),
        use_scheduling_signatures=args.flag("use-scheduling-signatures", default=True),
        full_hierarchy_fairness=args.flag("full-hierarchy-fairness", default=True),
        allow_consolidating_reclaim=args.flag("allow-consolidating-reclaim", default=True),
        staleness_grace_s=args.seconds("default-staleness-grace-period", 60.0),
        queue_label_key=args.text("queue-label-key", QUEUE),
        broken_gangs_first=args.flag("broken-gangs-first", default=False),
        reclaim_in_quota_by_priority=args.flag("reclaim-in-quota-by-priority", default=False),
    )


def _actions(spec: ShardSpec, placement: PlacementStrategy) -> tuple[ActionName, ...]:
    spreads = SPREAD in (placement.gpu, placement.cpu)
    entries: list[tuple[int, str, ActionName]] = []
    for text in spec.actions:
        if text not in set(ActionName):
            raise ConfigError(f"actions: unknown action {text!r}")
    for name, default in ACTION_PRIORITIES.items():
        override = spec.actions.get(name.value, Override())
        is_on_by_default = not (spreads and name is ActionName.CONSOLIDATION)
        if override.enabled if override.enabled is not None else is_on_by_default:
            priority = default if override.priority is None else override.priority
            entries.append((-priority, name.value, name))
    return tuple(name for _, _, name in sorted(entries))


def _plugins(spec: ShardSpec, placement: PlacementStrategy) -> tuple[PluginConfig, ...]:
    default_plugins = _default_plugins(spec, placement.gpu)
    defaults = _default_arguments(spec, placement)
    entries: list[tuple[int, str, PluginConfig]] = []
    for name in sorted({*default_plugins, *spec.plugins}):
        override = spec.plugins.get(name, Override())
        if not (name in default_plugins if override.enabled is None else override.enabled):
            continue
        priority = spec_of(name).priority if override.priority is None else override.priority
        plugin = (
            PluginConfig(name, defaults.get(name))
            if override.arguments is None
            else plugin_config(name, override.arguments)
        )
        entries.append((-priority, name, plugin))
    return tuple(plugin for _, _, plugin in sorted(entries, key=lambda entry: entry[:2]))


def _default_plugins(spec: ShardSpec, gpu_strategy: str) -> set[str]:
    """Return the plugins that run unless the shard disables them: defaults, listed ones, those of its placement."""
    by_default = {plugin.name for plugin in PLUGINS if plugin.on_by_default}
    device_plugins = {"gpupack", "gpusharingorder", "gpuspread"}
    gpu_plugins = _DEVICE_PLUGINS.get(gpu_strategy, {"gpupack", "gpusharingorder"})
    return ({*by_default, *spec.plugins} - device_plugins) | gpu_plugins


def _default_arguments(spec: ShardSpec, placement: PlacementStrategy) -> dict[str, object]:
    runtime = spec.min_runtime
    return {
        "proportion": ProportionArguments(k_value=1.0 if spec.k_value is None else spec.k_value),
        "nodeplacement": NodePlacementArguments(
            cpu=placement.cpu or BINPACK, gpu=placement.gpu or BINPACK
        ),
        "minruntime": MinRuntimeArguments(
            default_preempt_s=duration_s(runtime.preempt_min_runtime if runtime else None),
            default_reclaim_s=duration_s(runtime.reclaim_min_runtime if runtime else None),
        ),
    }


def plugin_config(name: str, arguments: Mapping[str, object]) -> PluginConfig:
    """Return a plugin with the arguments parsed that a configuration file states."""
    flags = Flags({key: str(value) for key, value in arguments.items()})
    return PluginConfig(name, spec_of(name).parse(flags))


def _depths(depth_of: Mapping[str, int], actions: tuple[ActionName, ...]) -> dict[ActionName, int]:
    depths = {}
    for key, depth in depth_of.items():
        if key not in {action.value for action in actions}:
            listed = ", ".join(action.value for action in actions)
            raise ConfigError(
                f"the scheduler's actions are {listed}. {key} isn't one of them, making the "
                "queueDepthPerAction invalid"
            )
        depths[ActionName(key)] = depth
    return depths


def _budgets(raw_budgets: Mapping[str, object]) -> SearchBudgets:
    actions = _durations_s(raw_budgets, "maxActionSearchDuration")
    generators = _durations_s(raw_budgets, "maxGeneratorSearchDuration")
    valid = ("default", "reclaim", "preempt", "consolidation")
    for key in actions:
        if key not in valid:
            raise ConfigError(
                f'maxActionSearchDuration contains invalid action key "{key}"; '
                f"valid action keys: {', '.join(valid)}"
            )
    default_generator = generators.pop("default", 120.0)
    return SearchBudgets(
        action_s={ActionName(key): value for key, value in actions.items() if key != "default"},
        default_action_s=actions.get("default", 300.0),
        max_pod_group_s=_budget_s(raw_budgets, "maxJobSearchDuration", 240.0),
        min_pod_group_s=_budget_s(raw_budgets, "minJobSearchDuration", 0.0, zero=0.0),
        generator_s={"NodeLocalGreedy": 30.0, "MultiNodeGang": 120.0, **generators},
        default_generator_s=default_generator,
    )


def _budget_s(
    raw_budgets: Mapping[str, object], name: str, default: float, *, zero: float = inf
) -> float:
    """Return a budget in seconds; a stated zero means `zero`, without limit by default."""
    value = raw_budgets.get(name)
    if value is None:
        return default
    seconds = duration_s(str(value))
    if seconds < 0:
        raise ConfigError(f"{name} must be non-negative")
    return seconds or zero


def _durations_s(raw_budgets: Mapping[str, object], name: str) -> dict[str, float]:
    """Return a map of budgets in seconds; zero means without limit."""
    values = raw_budgets.get(name) or {}
    if not isinstance(values, Mapping):
        raise ConfigError(f"{name}: expected a map, got {values!r}")
    durations = {}
    for key, value in values.items():
        seconds = duration_s(str(value))
        if seconds < 0:
            raise ConfigError(f'{name}["{key}"] must be non-negative')
        durations[str(key)] = seconds or inf
    return durations
