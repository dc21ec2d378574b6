"""What a session and its actions are told: actions, limits of the search, switches.

Values are checked when an object is made: a wrong name or number refuses the whole configuration.
`scheduler/core/config.py` adds the plugins; `scheduler/settings/shard.py` reads the written forms.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf

from scheduler.core.decisions import ActionName
from scheduler.core.errors import ConfigError

#: A depth of queues without a bound, as KAI writes it.
ALL = -1

DEFAULT_ACTIONS = (
    ActionName.ALLOCATE,
    ActionName.CONSOLIDATION,
    ActionName.RECLAIM,
    ActionName.PREEMPT,
    ActionName.STALE_GANG_EVICTION,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchBudgets:
    """How long the search for victims may take; seconds, infinity for no limit."""

    action_s: Mapping[ActionName, float] = field(default_factory=dict)
    default_action_s: float = 300.0
    max_pod_group_s: float = 240.0
    min_pod_group_s: float = 0.0
    generator_s: Mapping[str, float] = field(
        default_factory=lambda: {"NodeLocalGreedy": 30.0, "MultiNodeGang": 120.0}
    )
    default_generator_s: float = 120.0

    def __post_init__(self) -> None:
        """Refuse negative times and a minimum that the maximum does not allow."""
        if self.min_pod_group_s < 0 or (
            self.min_pod_group_s and self.min_pod_group_s >= self.max_pod_group_s
        ):
            raise ConfigError(
                f"scenarioSearchBudgets.minJobSearchDuration: expected less than the maximum "
                f"{self.max_pod_group_s:g}s, got {self.min_pod_group_s:g}s"
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
class CycleOptions:
    """Everything a cycle is told, except its plugins.

    Attributes
    ----------
    max_consolidation_victims : 0 switches consolidation off, infinity for no bound
    queue_depth : how many pod groups of one leaf queue an action looks at; absent or -1: all
    staleness_grace_s : negative means a stale gang is never evicted
    broken_gangs_first : among equal priority, a gang that lost pods is served before one that has not started
    reclaim_in_quota_by_priority : a queue within its quota may take from siblings of lower priority within theirs
    """

    actions: tuple[ActionName, ...] = DEFAULT_ACTIONS
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
    broken_gangs_first: bool = False
    reclaim_in_quota_by_priority: bool = False

    def __post_init__(self) -> None:
        """Refuse depths of actions that do not run, and depths below one other than -1 (all)."""
        for action, depth in self.queue_depth.items():
            if action not in self.actions:
                raise ConfigError(f"queueDepthPerAction: action {action} is not enabled")
            if depth < 1 and depth != ALL:
                raise ConfigError(
                    f"queueDepthPerAction.{action}: expected 1 or more, or -1 for all, got {depth}"
                )

    def depth_of(self, action: ActionName) -> float:
        """Return how many pod groups per leaf queue the action looks at."""
        depth = self.queue_depth.get(action, ALL)
        return inf if depth == ALL else depth
