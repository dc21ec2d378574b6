# ruff: noqa: RUF012 - msgspec gives every struct its own copy of an empty default
"""The workload kinds with the fields that their controllers read; templates and status are plain JSON."""

from __future__ import annotations

from typing import Any

from kube.objects.meta import Condition, KubeObject, KubeStruct
from kube.objects.meta import ObjectMeta as Meta

Json = dict[str, Any]


class WorkPodStatus(KubeStruct, frozen=True, kw_only=True):
    phase: str = ""
    conditions: tuple[Condition, ...] = ()


class WorkPodSpec(KubeStruct, frozen=True, kw_only=True):
    node_name: str = ""


class WorkPod(KubeObject, frozen=True, kw_only=True):
    """The fields of a pod that a workload controller reads."""

    spec: WorkPodSpec = WorkPodSpec()
    status: WorkPodStatus = WorkPodStatus()

    @property
    def is_finished(self) -> bool:
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def is_terminating(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def is_active(self) -> bool:
        return not self.is_finished and not self.is_terminating

    @property
    def is_ready(self) -> bool:
        return any(
            condition.type == "Ready" and condition.status == "True"
            for condition in self.status.conditions
        )


class JobSpec(KubeStruct, frozen=True, kw_only=True):
    parallelism: int = 1
    completions: int | None = None
    backoff_limit: int = 6
    completion_mode: str = "NonIndexed"
    suspend: bool = False
    active_deadline_seconds: int | None = None
    ttl_seconds_after_finished: int | None = None
    template: Json = {}


class Job(KubeObject, frozen=True, kw_only=True):
    spec: JobSpec = JobSpec()
    status: Json = {}

    def condition(self, kind: str) -> Json | None:
        """Return the condition of that type if it is True."""
        conditions: list[Json] = self.status.get("conditions") or []
        for condition in conditions:
            if condition["type"] == kind and condition["status"] == "True":
                return condition
        return None

    @property
    def is_finished(self) -> bool:
        return self.condition("Complete") is not None or self.condition("Failed") is not None


class CronJobSpec(KubeStruct, frozen=True, kw_only=True):
    schedule: str = ""
    time_zone: str = ""
    suspend: bool = False
    concurrency_policy: str = "Allow"
    starting_deadline_seconds: int | None = None
    successful_jobs_history_limit: int = 3
    failed_jobs_history_limit: int = 1
    job_template: Json = {}


class CronJob(KubeObject, frozen=True, kw_only=True):
    spec: CronJobSpec = CronJobSpec()
    status: Json = {}


class ReplicaSetSpec(KubeStruct, frozen=True, kw_only=True):
    replicas: int = 1
    template: Json = {}


class ReplicaSet(KubeObject, frozen=True, kw_only=True):
    spec: ReplicaSetSpec = ReplicaSetSpec()
    status: Json = {}

    @property
    def available(self) -> int:
        return int(self.status.get("availableReplicas", 0))

    @property
    def pods(self) -> int:
        return int(self.status.get("replicas", 0))


class DeploymentSpec(KubeStruct, frozen=True, kw_only=True):
    replicas: int = 1
    selector: Json = {}
    template: Json = {}
    strategy: Json = {}
    paused: bool = False
    revision_history_limit: int = 10


class Deployment(KubeObject, frozen=True, kw_only=True):
    spec: DeploymentSpec = DeploymentSpec()
    status: Json = {}


class StatefulSetSpec(KubeStruct, frozen=True, kw_only=True):
    replicas: int = 1
    service_name: str = ""
    template: Json = {}
    pod_management_policy: str = "OrderedReady"
    update_strategy: Json = {}
    volume_claim_templates: tuple[Json, ...] = ()
    ordinals: Json = {}


class StatefulSet(KubeObject, frozen=True, kw_only=True):
    spec: StatefulSetSpec = StatefulSetSpec()
    status: Json = {}


def controller_of(metadata: Meta) -> tuple[str, str, str]:
    """Return (kind, name, uid) of the controlling owner, or empty strings."""
    for owner in metadata.owner_references:
        if owner.controller:
            return owner.kind, owner.name, owner.uid
    return "", "", ""
