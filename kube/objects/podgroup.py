# ruff: noqa: RUF012 - msgspec gives every struct its own copy of an empty default
"""PodGroup v2alpha2: a gang, its subgroups and the status that the scheduler writes."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec import field

from kube.objects.meta import KubeObject, KubeStruct
from kube.objects.pod import Quantity

PREEMPTIBLE, NON_PREEMPTIBLE = "preemptible", "non-preemptible"
#: The pods that the gang needs are non-preemptible, those above are preemptible.
SEMI_PREEMPTIBLE = "semi-preemptible"
PREEMPTIBILITIES = frozenset({PREEMPTIBLE, NON_PREEMPTIBLE, SEMI_PREEMPTIBLE})


class TopologyConstraint(KubeStruct, frozen=True, kw_only=True):
    topology: str = ""
    required_topology_level: str = ""
    preferred_topology_level: str = ""


class SubGroup(KubeStruct, frozen=True, kw_only=True):
    name: str = ""
    min_member: int | None = None
    min_sub_group: int | None = None
    parent: str = ""
    topology_constraint: TopologyConstraint | None = None


class PodGroupSpec(KubeStruct, frozen=True, kw_only=True):
    min_member: int | None = None
    min_sub_group: int | None = None
    queue: str = ""
    priority_class_name: str = ""
    preemptibility: str = ""
    topology_constraint: TopologyConstraint | None = None
    sub_groups: tuple[SubGroup, ...] = ()
    mark_unschedulable: bool | None = None
    scheduling_backoff: int | None = None
    preemption_delay: str | None = None
    staleness_grace_period: str | None = None


class UnschedulableReason(KubeStruct, frozen=True, kw_only=True):
    reason: str = ""
    message: str = ""
    details: dict[str, Any] = {}


class SchedulingCondition(KubeStruct, frozen=True, kw_only=True):
    type: str = ""
    node_pool: str = ""
    reason: str = ""
    message: str = ""
    reasons: tuple[UnschedulableReason, ...] = ()
    last_transition_time: datetime | None = None
    status: str = ""
    transition_id: str = field(name="transitionID", default="")


class ResourcesStatus(KubeStruct, frozen=True, kw_only=True):
    requested: dict[str, Quantity] = {}
    allocated: dict[str, Quantity] = {}
    allocated_non_preemptible: dict[str, Quantity] = {}


class PodGroupStatus(KubeStruct, frozen=True, kw_only=True):
    resources_status: ResourcesStatus = ResourcesStatus()
    scheduling_conditions: tuple[SchedulingCondition, ...] = ()


class PodGroup(KubeObject, frozen=True, kw_only=True):
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()
