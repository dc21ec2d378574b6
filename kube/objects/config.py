# ruff: noqa: RUF012 - msgspec gives every struct its own copy of an empty default
"""SchedulingShard and Config: how the schedulers are set up.

Only what a running scheduler reads is typed; plugin and action overrides stay maps because their
arguments are checked where the configuration is built (a bad value refuses the whole shard).
"""

from __future__ import annotations

from typing import Any

from msgspec import field

from kube.objects.meta import Condition, KubeObject, KubeStruct


class PlacementStrategy(KubeStruct, frozen=True, kw_only=True):
    gpu: str = ""
    cpu: str = ""


class MinRuntime(KubeStruct, frozen=True, kw_only=True):
    preempt_min_runtime: str | None = None
    reclaim_min_runtime: str | None = None


class Override(KubeStruct, frozen=True, kw_only=True):
    """A plugin's or an action's override; an absent field keeps the default."""

    enabled: bool | None = None
    priority: int | None = None
    arguments: dict[str, Any] | None = None


class ShardSpec(KubeStruct, frozen=True, kw_only=True):
    args: dict[str, str] = {}
    placement_strategy: PlacementStrategy | None = None
    partition_label_value: str = ""
    queue_depth_per_action: dict[str, int] = {}
    min_runtime: MinRuntime | None = None
    k_value: float | None = None
    usage_db_config: dict[str, Any] | None = field(name="usageDBConfig", default=None)
    scenario_search_budgets: dict[str, Any] | None = None
    plugins: dict[str, Override] = {}
    actions: dict[str, Override] = {}


class ConditionedStatus(KubeStruct, frozen=True, kw_only=True):
    conditions: tuple[Condition, ...] = ()


class SchedulingShard(KubeObject, frozen=True, kw_only=True):
    spec: ShardSpec = ShardSpec()
    status: ConditionedStatus = ConditionedStatus()


class GlobalConfig(KubeStruct, frozen=True, kw_only=True):
    queue_label_key: str = "kai.scheduler/queue"
    scheduler_name: str = "kai-scheduler"
    node_pool_label_key: str = "kai.scheduler/node-pool"


class ConfigSpec(KubeStruct, frozen=True, kw_only=True):
    namespace: str = "kai-scheduler"
    global_: GlobalConfig = field(name="global", default=GlobalConfig())


class Config(KubeObject, frozen=True, kw_only=True):
    """The singleton `kai-config`."""

    spec: ConfigSpec = ConfigSpec()
    status: ConditionedStatus = ConditionedStatus()
