"""The predicates plugin: registers its parts in the order in which a node is checked."""

from __future__ import annotations

from scheduler.core.cluster.device_backed import device_backed
from scheduler.core.cluster.inputs import GPU
from scheduler.core.cluster.state import ClusterState
from scheduler.core.plugins.predicates.checks import (
    ConfigMapCheck,
    LargestNodeCheck,
    NodeNameCheck,
)
from scheduler.core.plugins.predicates.node_filters import HostPorts, LegacyMigNeighbours
from scheduler.core.plugins.predicates.pod_neighbours import PodNeighbours
from scheduler.core.plugins.predicates.static_filters import (
    StaticFilter,
    affinity_verdict,
    condition_verdict,
    device_plugin_verdict,
    gpu_memory_verdict,
    resource_type_verdict,
    taint_verdict,
    wants_node_by_label,
    worker_verdict,
)
from scheduler.core.plugins.predicates.static_volumes import StaticVolumes
from scheduler.core.plugins.predicates.storage import StorageRoom
from scheduler.core.plugins.predicates.volumes import VolumeCheck, VolumeClaims, VolumeFilter
from scheduler.core.session.hooks import NODE_AFFINITY
from scheduler.core.session.neighbours import neighbours_of
from scheduler.core.session.session import Session


class PredicatesPlugin:
    """The node filters and checks of Kubernetes' own scheduler, and those about kinds of GPU."""

    def open(self, session: Session) -> None:
        """Register filters and checks."""
        state, hooks = session.state, session.hooks
        nodes = state.nodes
        volume_claims = VolumeClaims(state)
        hooks.checks += [
            NodeNameCheck(),
            VolumeCheck(volume_claims),
            LargestNodeCheck(state),
            ConfigMapCheck(state),
        ]
        hooks.filters += [
            StaticFilter("ResourceType", nodes, resource_type_verdict),
            *self._device_plugin_filters(state),
            LegacyMigNeighbours(state),
            StaticFilter(
                "GpuMemory",
                nodes,
                gpu_memory_verdict,
                lambda task_class: task_class.share_memory_mib > 0,
            ),
            StaticFilter("NodeCondition", nodes, condition_verdict),
            HostPorts(state),
            StaticFilter("TaintToleration", nodes, taint_verdict),
            StaticFilter(NODE_AFFINITY, nodes, affinity_verdict, wants_node_by_label),
        ]
        tracks_storage = session.config.schedule_csi_storage
        hooks.filters.append(
            VolumeFilter(state, volume_claims, checks_storage_room=not tracks_storage)
        )
        if tracks_storage:
            storage = StorageRoom(state, volume_claims)
            hooks.filters.append(storage)
            hooks.waits.append(storage)
            hooks.listeners.append(storage)
        if state.cluster_input.volumes.static_volumes:
            volumes = StaticVolumes(state, volume_claims)
            hooks.filters.append(volumes)
            hooks.listeners.append(volumes)
        neighbours = neighbours_of(session)
        if neighbours.has_terms:
            near = PodNeighbours(state, neighbours)
            hooks.filters.append(near)
            hooks.waits.append(near)
        if session.config.restrict_node_scheduling:
            hooks.filters.append(StaticFilter("WorkerNode", nodes, worker_verdict))

    def _device_plugin_filters(self, state: ClusterState) -> list[StaticFilter]:
        """Return the filter for whole GPUs, unless a device class serves such requests by a claim."""
        if GPU in device_backed(state.cluster_input.devices):
            return []
        return [
            StaticFilter(
                "DevicePlugin",
                state.nodes,
                device_plugin_verdict,
                lambda task_class: task_class.request.gpus > 0,
            )
        ]
