"""All plugins by the name the configuration uses. The order of a session is that of its config."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scheduler.core.config import PluginConfig
from scheduler.core.plugins.device_claims.plugin import DeviceClaimsPlugin
from scheduler.core.plugins.generators import GeneratorPlugin
from scheduler.core.plugins.min_runtime import MinRuntimePlugin
from scheduler.core.plugins.numa.plugin import NumaPlugin
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
    NodePlacementPlugin,
)
from scheduler.core.plugins.pod_affinity import PodAffinityPlugin
from scheduler.core.plugins.predicates.plugin import PredicatesPlugin
from scheduler.core.plugins.proportion import ProportionPlugin
from scheduler.core.plugins.scores import (
    GpuSharingOrderPlugin,
    NodeAvailabilityPlugin,
    NominatedNodePlugin,
    ResourceTypePlugin,
)
from scheduler.core.plugins.topology.plugin import TopologyPlugin
from scheduler.core.session.plugin import Plugin

#: name -> how to make the plugin from its checked arguments
PLUGINS: dict[str, Callable[[Any], Plugin]] = {
    "predicates": lambda _: PredicatesPlugin(),
    "proportion": ProportionPlugin,
    "priority": lambda _: PriorityPlugin(),
    "elastic": lambda _: ElasticPlugin(),
    "kubeflow": lambda _: KubeflowPlugin(),
    "ray": lambda _: RayPlugin(),
    "nodeavailability": lambda _: NodeAvailabilityPlugin(),
    "gpusharingorder": lambda _: GpuSharingOrderPlugin(),
    "gpupack": lambda _: GpuPackPlugin(),
    "gpuspread": lambda _: GpuSpreadPlugin(),
    "resourcetype": lambda _: ResourceTypePlugin(),
    "subgrouporder": lambda _: SubgroupOrderPlugin(),
    "taskorder": lambda _: TaskOrderPlugin(),
    "nominatednode": lambda _: NominatedNodePlugin(),
    "nodeplacement": NodePlacementPlugin,
    "minruntime": MinRuntimePlugin,
    "sg-nodelocalgreedy": lambda _: GeneratorPlugin("sg-nodelocalgreedy"),
    "sg-multinodegang": lambda _: GeneratorPlugin("sg-multinodegang"),
    "dynamicresources": lambda _: DeviceClaimsPlugin(),
    "numa": NumaPlugin,
    "podaffinity": lambda _: PodAffinityPlugin(),
    "topology": lambda _: TopologyPlugin(),
}


def make_plugin(config: PluginConfig) -> Plugin | None:
    """Make one plugin; None for those that add nothing to a session of the core."""
    factory = PLUGINS.get(config.name)
    return None if factory is None else factory(config.arguments)
