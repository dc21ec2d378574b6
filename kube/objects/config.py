# ruff: noqa: RUF012 - msgspec gives every struct its own copy of an empty default
"""SchedulingShard and Config: how the schedulers are set up.

Only what running components read is typed; plugin and action overrides stay maps because their
arguments are checked where the configuration is built (a bad value refuses the whole shard).
"""

from __future__ import annotations

from typing import Any

from msgspec import field

from kube.keys import NODE_POOL, QUEUE, SCHEDULER_NAME, SYSTEM_NAMESPACE
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
    queue_label_key: str = QUEUE
    scheduler_name: str = SCHEDULER_NAME
    node_pool_label_key: str = NODE_POOL
    namespace_label_selector: dict[str, str] = {}
    pod_label_selector: dict[str, str] = {}
    replica_count: int | None = None
    affinity: dict[str, Any] = {}
    node_selector: dict[str, str] = {}
    tolerations: tuple[dict[str, Any], ...] = ()
    priority_class_name: str = ""
    additional_image_pull_secrets: tuple[str, ...] = ()
    json_log: bool | None = None


class Budget(KubeStruct, frozen=True, kw_only=True):
    """Whether a component's pods have a disruption budget; None leaves it to the installation."""

    enabled: bool | None = None
    max_unavailable: int | None = None


class Service(KubeStruct, frozen=True, kw_only=True):
    """Whether a component runs, and how its pods look; None and {} are the component's own defaults."""

    enabled: bool | None = None
    resources: dict[str, Any] = {}
    affinity: dict[str, Any] = {}
    pod_disruption_budget: Budget = Budget()


class PodGrouperArgs(KubeStruct, frozen=True, kw_only=True):
    gang_schedule_knative: bool | None = None
    generic_karta_fallback: bool | None = None
    default_priorities_config_map_name: str = ""
    default_priorities_config_map_namespace: str = ""


class PodGrouperConfig(KubeStruct, frozen=True, kw_only=True):
    service: Service = Service()
    replicas: int | None = None
    args: PodGrouperArgs = PodGrouperArgs()
    max_concurrent_reconciles: int | None = None


class ResourceReservation(KubeStruct, frozen=True, kw_only=True):
    """How the pods look that hold GPUs for others to share; empty fields keep the defaults."""

    namespace: str = ""
    service_account_name: str = ""
    app_label: str = ""
    allocation_timeout: int | None = None
    runtime_class_name: str = ""
    pod_resources: dict[str, dict[str, Any]] = {}
    reservation_pod_security_context: dict[str, Any] = {}
    reservation_container_security_context: dict[str, Any] = {}


class BinderConfig(KubeStruct, frozen=True, kw_only=True):
    service: Service = Service()
    replicas: int | None = None
    plugins: dict[str, Override] = {}
    resource_reservation: ResourceReservation = ResourceReservation()
    max_concurrent_reconciles: int | None = None
    volume_binding_timeout_seconds: int | None = None
    cdi_enabled: bool | None = None


class ComponentConfig(KubeStruct, frozen=True, kw_only=True):
    """A component without settings of its own."""

    service: Service = Service()
    replicas: int | None = None


class AdmissionConfig(KubeStruct, frozen=True, kw_only=True):
    service: Service = Service()
    replicas: int | None = None
    gpu_sharing: bool | None = None
    block_nvidia_visible_devices: bool | None = None
    gpu_fraction_runtime_class_name: str | None = None


class QueueControllerConfig(KubeStruct, frozen=True, kw_only=True):
    service: Service = Service()
    replicas: int | None = None
    metrics_namespace: str = ""
    queue_label_to_metric_label: str = ""
    queue_label_to_default_metric_value: str = ""


class NodeScaleAdjusterArgs(KubeStruct, frozen=True, kw_only=True):
    node_scale_namespace: str = ""
    node_scale_service_account: str = ""
    gpu_memory_to_fraction_ratio: float | None = None


class NodeScaleAdjusterConfig(KubeStruct, frozen=True, kw_only=True):
    service: Service = Service()
    args: NodeScaleAdjusterArgs = NodeScaleAdjusterArgs()


class PrometheusConfig(KubeStruct, frozen=True, kw_only=True):
    enabled: bool = False
    external_prometheus_url: str = ""
    service_monitor: Service = Service()


class ConfigSpec(KubeStruct, frozen=True, kw_only=True):
    namespace: str = SYSTEM_NAMESPACE
    global_: GlobalConfig = field(name="global", default=GlobalConfig())
    pod_grouper: PodGrouperConfig = PodGrouperConfig()
    binder: BinderConfig = BinderConfig()
    admission: AdmissionConfig = AdmissionConfig()
    scheduler: ComponentConfig = ComponentConfig()
    queue_controller: QueueControllerConfig = QueueControllerConfig()
    pod_group_controller: ComponentConfig = ComponentConfig()
    node_scale_adjuster: NodeScaleAdjusterConfig = NodeScaleAdjusterConfig()
    prometheus: PrometheusConfig = PrometheusConfig()


class Config(KubeObject, frozen=True, kw_only=True):
    """The singleton `kai-config`."""

    spec: ConfigSpec = ConfigSpec()
    status: ConditionedStatus = ConditionedStatus()
