"""The scheduler configuration a scenario asks for, with what is fixed for all scenarios."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any

from scheduler.core.config import PluginConfig, SchedulerConfig
from scheduler.core.decisions import ActionName
from scheduler.core.options import SearchBudgets
from scheduler.core.plugins.min_runtime import MinRuntimeArguments
from scheduler.core.plugins.placement_strategy import NodePlacementArguments
from scheduler.core.plugins.proportion import ProportionArguments

#: What a scenario means by "default", in this order.
DEFAULT_PLUGINS = (
    "predicates",
    "proportion",
    "priority",
    "userfairness",
    "elastic",
    "kubeflow",
    "ray",
    "nodeavailability",
    "gpusharingorder",
    "gpupack",
    "resourcetype",
    "subgrouporder",
    "taskorder",
    "nominatednode",
    "dynamicresources",
    "gpumodels",
    "nodeplacement",
    "minruntime",
    "topology",
    "snapshot",
    "sg-nodelocalgreedy",
    "sg-multinodegang",
)
ACTION_NAMES = {
    "allocate": ActionName.ALLOCATE,
    "consolidation": ActionName.CONSOLIDATION,
    "reclaim": ActionName.RECLAIM,
    "preempt": ActionName.PREEMPT,
    "stale_gang_eviction": ActionName.STALE_GANG_EVICTION,
    "stalegangeviction": ActionName.STALE_GANG_EVICTION,
}


def read_config(document: Mapping[str, Any]) -> SchedulerConfig:
    """Build the configuration of a scenario.

    Notes
    -----
    Fixed for all scenarios: any number of pods may be moved, victims of reclaim may be placed
    again, no cap on pod groups per queue, no short-cut by signatures, no time-based term, and
    searches that are never cut short by time.
    """
    config = document.get("config") or {}
    actions = config.get("actions") or ["allocate"]
    return SchedulerConfig(
        actions=tuple(ACTION_NAMES[name] for name in actions),
        plugins=_plugins(document),
        budgets=SearchBudgets(
            default_action_s=inf, max_pod_group_s=inf, generator_s={}, default_generator_s=inf
        ),
        max_consolidation_victims=inf,
        use_scheduling_signatures=False,
        staleness_grace_s=float(config.get("default_staleness_grace_seconds", 0)),
        broken_gangs_first=bool(config.get("broken_gangs_first", False)),
        reclaim_in_quota_by_priority=bool(config.get("reclaim_in_quota_by_priority", False)),
    )


def _plugins(document: Mapping[str, Any]) -> tuple[PluginConfig, ...]:
    listed: Any = (document.get("config") or {}).get("plugins") or "default"
    if listed == "default":
        plugins = [_with_fixed_arguments(name, {}) for name in DEFAULT_PLUGINS]
    else:
        plugins = [
            _with_fixed_arguments(entry["name"], entry.get("arguments") or {}) for entry in listed
        ]
    nodes = document["cluster"].get("nodes") or ()
    if any(node.get("numa") for node in nodes) and all(p.name != "numa" for p in plugins):
        plugins.append(PluginConfig("numa"))
    return tuple(plugins)


def _with_fixed_arguments(name: str, arguments: Mapping[str, Any]) -> PluginConfig:
    if name == "proportion":
        return PluginConfig(name, ProportionArguments(k_value=float(arguments.get("kValue", 0))))
    if name == "nodeplacement":
        return PluginConfig(
            name,
            NodePlacementArguments(
                cpu=arguments.get("cpu", "binpack"), gpu=arguments.get("gpu", "binpack")
            ),
        )
    if name == "minruntime":
        return PluginConfig(
            name,
            MinRuntimeArguments(
                reclaim_resolve_method=arguments.get("reclaimResolveMethod", "lca")
            ),
        )
    return PluginConfig(name)
