"""All plugins, in their default order."""

from __future__ import annotations

from typing import Any

from scheduler.core.errors import ConfigError
from scheduler.core.plugins.backfill import BackfillArguments, BackfillPlugin
from scheduler.core.plugins.device_claims.plugin import DeviceClaimsPlugin
from scheduler.core.plugins.generators import GeneratorPlugin
from scheduler.core.plugins.gpu_models import GpuModelsPlugin
from scheduler.core.plugins.min_runtime import MinRuntimeArguments, MinRuntimePlugin
from scheduler.core.plugins.numa.plugin import NumaArguments, NumaPlugin
from scheduler.core.plugins.orders import (
    ElasticPlugin,
    KubeflowPlugin,
    PriorityPlugin,
    RayPlugin,
    SubgroupOrderPlugin,
    TaskOrderPlugin,
)
from scheduler.core.plugins.placement_strategy import (
    GpuPackPlugin,
    GpuSpreadPlugin,
    NodePlacementArguments,
    NodePlacementPlugin,
)
from scheduler.core.plugins.pod_affinity import PodAffinityPlugin
from scheduler.core.plugins.predicates.plugin import PredicatesPlugin
from scheduler.core.plugins.proportion import ProportionArguments, ProportionPlugin
from scheduler.core.plugins.scores import (
    GpuSharingOrderPlugin,
    NodeAvailabilityPlugin,
    NominatedNodePlugin,
    ResourceTypePlugin,
)
from scheduler.core.plugins.spec import PluginSpec, without_arguments
from scheduler.core.plugins.topology.plugin import TopologyPlugin
from scheduler.core.plugins.user_fairness import UserFairnessPlugin

#: By priority, then by name.
PLUGINS: tuple[PluginSpec[Any], ...] = (
    without_arguments("predicates", 1900, PredicatesPlugin),
    PluginSpec(
        name="proportion",
        priority=1800,
        arguments=ProportionArguments,
        parse=ProportionArguments.parse,
        make=ProportionPlugin,
    ),
    without_arguments("priority", 1700, PriorityPlugin),
    # Between priority and the order of elastic pod groups; acts in queues that ask for it only.
    without_arguments("userfairness", 1650, UserFairnessPlugin),
    without_arguments("nodeavailability", 1600, NodeAvailabilityPlugin),
    without_arguments("resourcetype", 1500, ResourceTypePlugin),
    without_arguments("podaffinity", 1400, PodAffinityPlugin),
    without_arguments("elastic", 1300, ElasticPlugin),
    without_arguments("kubeflow", 1200, KubeflowPlugin),
    without_arguments("ray", 1100, RayPlugin),
    without_arguments("subgrouporder", 1000, SubgroupOrderPlugin),
    without_arguments("taskorder", 900, TaskOrderPlugin),
    without_arguments("nominatednode", 800, NominatedNodePlugin),
    without_arguments("dynamicresources", 700, DeviceClaimsPlugin),
    # Acts in queues that bound GPU models only.
    without_arguments("gpumodels", 650, GpuModelsPlugin),
    PluginSpec(
        name="minruntime",
        priority=600,
        arguments=MinRuntimeArguments,
        parse=MinRuntimeArguments.parse,
        make=MinRuntimePlugin,
    ),
    without_arguments("topology", 500, TopologyPlugin),
    without_arguments("snapshot", 400, None),
    without_arguments("sg-nodelocalgreedy", 360, lambda: GeneratorPlugin("sg-nodelocalgreedy")),
    without_arguments("sg-multinodegang", 350, lambda: GeneratorPlugin("sg-multinodegang")),
    without_arguments("gpupack", 300, GpuPackPlugin),
    # On instead of gpupack in a shard whose placement strategy spreads GPUs.
    without_arguments("gpuspread", 300, GpuSpreadPlugin, on_by_default=False),
    PluginSpec(
        name="nodeplacement",
        priority=200,
        arguments=NodePlacementArguments,
        parse=NodePlacementArguments.parse,
        make=NodePlacementPlugin,
    ),
    without_arguments("gpusharingorder", 100, GpuSharingOrderPlugin),
    PluginSpec(
        name="backfill",
        priority=0,
        arguments=BackfillArguments,
        parse=BackfillArguments.parse,
        make=BackfillPlugin,
        on_by_default=False,
    ),
    PluginSpec(
        name="numa",
        priority=0,
        arguments=NumaArguments,
        parse=NumaArguments.parse,
        make=NumaPlugin,
        on_by_default=False,
    ),
    without_arguments("reflectjoborder", 0, None, on_by_default=False),
)
_BY_NAME = {spec.name: spec for spec in PLUGINS}


def spec_of(name: str) -> PluginSpec[Any]:
    """Return the plugin of a name.

    Raises
    ------
    ConfigError : there is no such plugin
    """
    spec = _BY_NAME.get(name)
    if spec is None:
        raise ConfigError(f"unknown plugin {name!r}; known are {', '.join(sorted(_BY_NAME))}")
    return spec
