"""What a shard's scheduler is told to do: actions, plugins with their arguments, limits of its search.

Values are checked when they are made: a wrong name or number refuses the whole configuration instead
of being guessed at. `scheduler/shards.py` reads the written forms.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any

from scheduler.core.decisions import ActionName
from scheduler.core.errors import ConfigError

DEFAULT_ACTIONS = (
    ActionName.ALLOCATE,
    ActionName.CONSOLIDATION,
    ActionName.RECLAIM,
    ActionName.PREEMPT,
    ActionName.STALE_GANG_EVICTION,
)


# ------------------------------------------------------------------------------- plugin arguments


@dataclass(frozen=True, slots=True, kw_only=True)
class NoArguments:
    """For plugins that take none; what is given is refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProportionArguments:
    """k_value: strength of past usage (not below 0); saturation_multiplier: not below 1."""

    k_value: float = 1.0
    saturation_multiplier: float = 1.0

    def __post_init__(self) -> None:
        """Raise to the smallest value that makes sense, as KAI does."""
        object.__setattr__(self, "k_value", max(0.0, self.k_value))
        object.__setattr__(self, "saturation_multiplier", max(1.0, self.saturation_multiplier))


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePlacementArguments:
    """binpack or spread, for tasks with and without GPU."""

    cpu: str = "binpack"
    gpu: str = "binpack"

    def __post_init__(self) -> None:
        """Refuse other strategies."""
        for name, value in (("cpu", self.cpu), ("gpu", self.gpu)):
            if value not in ("binpack", "spread"):
                raise ConfigError(
                    f"nodeplacement.{name}: expected binpack or spread, got {value!r}"
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class MinRuntimeArguments:
    """How long a started pod group is safe from preempt and reclaim, where no queue says."""

    default_preempt_s: float = 0.0
    default_reclaim_s: float = 0.0
    reclaim_resolve_method: str = "lca"

    def __post_init__(self) -> None:
        """Refuse negative times and unknown methods."""
        for name in ("default_preempt_s", "default_reclaim_s"):
            if getattr(self, name) < 0:
                raise ConfigError(
                    f"minruntime.{name}: expected 0 or more, got {getattr(self, name)}"
                )
        if self.reclaim_resolve_method not in ("lca", "queue"):
            raise ConfigError(
                f"minruntime.reclaimResolveMethod: expected lca or queue, "
                f"got {self.reclaim_resolve_method!r}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class NumaArguments:
    """Resources left out of alignment; whether availability is rebuilt from placements."""

    ignore: tuple[str, ...] = ()
    reconstruct_available: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceArguments:
    """Kept for compatibility; our selectors are compiled once per session anyway."""

    max_cel_cache_entries: int = 10


Arguments = (
    NoArguments
    | ProportionArguments
    | NodePlacementArguments
    | MinRuntimeArguments
    | NumaArguments
    | DeviceArguments
)

#: Every plugin there is, with the kind of arguments it takes.
ARGUMENTS_OF: dict[str, type[Any]] = {
    "predicates": NoArguments,
    "proportion": ProportionArguments,
    "priority": NoArguments,
    "elastic": NoArguments,
    "kubeflow": NoArguments,
    "ray": NoArguments,
    "nodeavailability": NoArguments,
    "gpusharingorder": NoArguments,
    "gpupack": NoArguments,
    "gpuspread": NoArguments,
    "resourcetype": NoArguments,
    "subgrouporder": NoArguments,
    "taskorder": NoArguments,
    "nominatednode": NoArguments,
    "dynamicresources": DeviceArguments,
    "nodeplacement": NodePlacementArguments,
    "minruntime": MinRuntimeArguments,
    "topology": NoArguments,
    "podaffinity": NoArguments,
    "numa": NumaArguments,
    "snapshot": NoArguments,
    "reflectjoborder": NoArguments,
    "sg-nodelocalgreedy": NoArguments,
    "sg-multinodegang": NoArguments,
}


@dataclass(frozen=True, slots=True)
class PluginConfig:
    """One plugin, in its place in the order."""

    name: str
    arguments: Arguments = field(default_factory=NoArguments)

    def __post_init__(self) -> None:
        """Refuse unknown plugins and arguments of another plugin; give defaults where none came."""
        kind = ARGUMENTS_OF.get(self.name)
        if kind is None:
            known = ", ".join(sorted(ARGUMENTS_OF))
            raise ConfigError(f"unknown plugin {self.name!r}; known are {known}")
        if type(self.arguments) is NoArguments and kind is not NoArguments:
            object.__setattr__(self, "arguments", kind())
        if type(self.arguments) is not kind:
            raise ConfigError(
                f"plugin {self.name}: expected {kind.__name__}, got {type(self.arguments).__name__}"
            )


DEFAULT_PLUGINS = tuple(
    PluginConfig(name)
    for name in (
        "predicates",
        "proportion",
        "priority",
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
        "nodeplacement",
        "minruntime",
        "topology",
        "snapshot",
        "sg-nodelocalgreedy",
        "sg-multinodegang",
    )
)


# ------------------------------------------------------------------------------------ the whole


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchBudgets:
    """How long the search for victims may take; seconds, infinity for no limit."""

    action_s: Mapping[ActionName, float] = field(default_factory=dict)
    default_action_s: float = 300.0
    max_job_s: float = 240.0
    min_job_s: float = 0.0
    generator_s: Mapping[str, float] = field(
        default_factory=lambda: {"NodeLocalGreedy": 30.0, "MultiNodeGang": 120.0}
    )
    default_generator_s: float = 120.0

    def __post_init__(self) -> None:
        """Refuse negative times and a minimum that the maximum does not allow."""
        if self.min_job_s < 0 or (self.min_job_s and self.min_job_s >= self.max_job_s):
            raise ConfigError(
                f"scenarioSearchBudgets.minJobSearchDuration: expected less than the maximum "
                f"{self.max_job_s:g}s, got {self.min_job_s:g}s"
            )
        for generator in self.generator_s:
            if generator not in ("NodeLocalGreedy", "MultiNodeGang"):
                raise ConfigError(f"scenarioSearchBudgets: unknown generator {generator!r}")

    def of_action(self, action: ActionName) -> float:
        """Return the budget of one action."""
        return self.action_s.get(action, self.default_action_s)

    def of_generator(self, generator: str) -> float:
        """Return the budget of one scenario generator."""
        return self.generator_s.get(generator, self.default_generator_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerConfig:
    """Everything a cycle is told.

    Attributes
    ----------
    max_consolidation_victims : 0 switches consolidation off, infinity for no bound
    queue_depth : how many pod groups of one leaf queue an action looks at; absent: all
    staleness_grace_s : negative means a stale gang is never evicted
    """

    actions: tuple[ActionName, ...] = DEFAULT_ACTIONS
    plugins: tuple[PluginConfig, ...] = DEFAULT_PLUGINS
    queue_depth: Mapping[ActionName, int] = field(default_factory=dict)
    budgets: SearchBudgets = field(default_factory=SearchBudgets)
    max_consolidation_victims: float = 16
    restrict_node_scheduling: bool = False
    schedule_csi_storage: bool = False
    use_scheduling_signatures: bool = True
    full_hierarchy_fairness: bool = True
    allow_consolidating_reclaim: bool = True
    staleness_grace_s: float = 60.0
    queue_label_key: str = "kai.scheduler/queue"

    def __post_init__(self) -> None:
        """Refuse duplicate plugins, depths of actions that do not run, and depths below one."""
        names = [plugin.name for plugin in self.plugins]
        for name in names:
            if names.count(name) > 1:
                raise ConfigError(f"plugin {name} is listed more than once")
        for action, depth in self.queue_depth.items():
            if action not in self.actions:
                raise ConfigError(f"queueDepthPerAction: action {action} is not enabled")
            if depth < 1:
                raise ConfigError(f"queueDepthPerAction.{action}: expected 1 or more, got {depth}")

    def depth_of(self, action: ActionName) -> float:
        """Return how many pod groups per leaf queue the action looks at."""
        return self.queue_depth.get(action, inf)

    def has_plugin(self, name: str) -> bool:
        """Tell whether the plugin is on."""
        return any(plugin.name == name for plugin in self.plugins)
