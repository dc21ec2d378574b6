"""Settings of a shard outside the core: which objects are its own, and how cluster writes look.

The core has its own configuration; these are the settings that only mean something where Kubernetes
objects are read or written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kube.keys import NODE_POOL, QUEUE, RESERVATION, SCHEDULER_NAME
from queues.workloads.conditions import DEFAULT_POOL


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardParams:
    """One shard as seen from outside of the core; defaults are KAI's."""

    name: str = "default"
    scheduler_name: str = SCHEDULER_NAME
    node_pool_label_key: str = NODE_POOL
    partition_value: str = ""
    queue_label_key: str = QUEUE
    restrict_node_scheduling: bool = False
    cpu_worker_label_key: str = "node-role.kubernetes.io/cpu-worker"
    gpu_worker_label_key: str = "node-role.kubernetes.io/gpu-worker"
    mig_label_key: str = "node-role.kubernetes.io/mig-enabled"
    reservation_app_label: str = RESERVATION
    stuck_in_releasing_s: float = 120.0
    schedule_csi_storage: bool = False
    detailed_fit_errors: bool = False
    update_pod_eviction_condition: bool = False
    #: False evicts as KAI does: pods are deleted, disruption budgets are not read.
    use_eviction_api: bool = True
    #: How many pods of one controller, in several pod groups, may be on their way out; 0 for no bound.
    max_evictions_per_owner: int = 0
    schedule_period_s: float = 1.0
    #: Whether the core keeps room by declared run times (plugin `backfill`), which are then read.
    keeps_room: bool = False
    #: Of how many pods a cycle records why they were placed where they are; 0 for none.
    recorded_placements: int = 50
    #: Reason of the pod condition when only the queue holds a pod: `Unschedulable` or `QueueLimited`.
    queue_limited_condition: str = "Unschedulable"

    @property
    def pool_name(self) -> str:
        """Return the node pool's name in messages."""
        return self.partition_value or DEFAULT_POOL

    def owns(self, labels: Mapping[str, str]) -> bool:
        """Return whether an object with these labels belongs to this shard."""
        if not self.node_pool_label_key:
            return True
        if not self.partition_value:
            return self.node_pool_label_key not in labels
        return labels.get(self.node_pool_label_key) == self.partition_value

    def pool_labels(self) -> dict[str, str]:
        """Return the label that marks objects as this shard's; empty for the default pool."""
        if self.node_pool_label_key and self.partition_value:
            return {self.node_pool_label_key: self.partition_value}
        return {}
