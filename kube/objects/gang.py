"""The gangs of Kubernetes itself: Workload (1.35) and the PodGroup that takes its place from 1.36 on.

Both are kinds of the group `scheduling.k8s.io`. A pod names a Workload and one of its pod groups in
`spec.workloadRef`, or a PodGroup in `spec.schedulingGroup`.
"""

from __future__ import annotations

from typing import Any

from kube.objects.meta import KubeObject, KubeStruct


class GangSize(KubeStruct, frozen=True, kw_only=True):
    min_count: int = 0


class GangPolicy(KubeStruct, frozen=True, kw_only=True):
    """How the pods start: `gang` together, `basic` one by one."""

    basic: dict[str, Any] | None = None
    gang: GangSize | None = None


class WorkloadPodGroup(KubeStruct, frozen=True, kw_only=True):
    name: str = ""
    policy: GangPolicy = GangPolicy()


class WorkloadSpec(KubeStruct, frozen=True, kw_only=True):
    pod_groups: tuple[WorkloadPodGroup, ...] = ()


class Workload(KubeObject, frozen=True, kw_only=True):
    spec: WorkloadSpec = WorkloadSpec()


class UpstreamPodGroupSpec(KubeStruct, frozen=True, kw_only=True):
    scheduling_policy: GangPolicy = GangPolicy()
    priority_class_name: str = ""


class UpstreamPodGroup(KubeObject, frozen=True, kw_only=True):
    spec: UpstreamPodGroupSpec = UpstreamPodGroupSpec()
