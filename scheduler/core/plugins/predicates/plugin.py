"""The predicates plugin: registers the parts in the order in which a node is asked."""

from __future__ import annotations

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
    gpu_memory_verdict,
    resource_type_verdict,
    taint_verdict,
    wants_node_by_label,
    worker_verdict,
)
from scheduler.core.plugins.predicates.storage import StorageRoom
from scheduler.core.plugins.predicates.volumes import VolumeCheck, VolumeClaims, VolumeFilter
from scheduler.core.session.hooks import NODE_AFFINITY
from scheduler.core.session.neighbours import neighbours_of
from scheduler.core.session.session import Session


class PredicatesPlugin:
    """Node filters and checks that Kubernetes' own scheduler has too, and those about GPU kinds."""

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
        has_books = session.config.schedule_csi_storage
        hooks.filters.append(VolumeFilter(state, volume_claims, asks_room=not has_books))
        if has_books:
            storage = StorageRoom(state, volume_claims)
            hooks.filters.append(storage)
            hooks.waits.append(storage)
            hooks.listeners.append(storage)
        neighbours = neighbours_of(session)
        if neighbours.has_terms:
            near = PodNeighbours(state, neighbours)
            hooks.filters.append(near)
            hooks.waits.append(near)
        if session.config.restrict_node_scheduling:
            hooks.filters.append(StaticFilter("WorkerNode", nodes, worker_verdict))
