"""Kubeflow training jobs: the gang is every replica of every role, unless the job asks for fewer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from queues.grouping.base import (
    Context,
    Json,
    Metadata,
    count_at,
    dig,
    dig_map,
    dig_text,
    labels_of,
    name_of,
    namespace_of,
)
from queues.grouping.errors import GroupingError
from queues.grouping.metadata import base_metadata

MASTER = "Master"
WORKER = "Worker"
LAUNCHER = "Launcher"
JOB_NAME_LABEL = "training.kubeflow.org/job-name"
JOB_ROLE_LABEL = "training.kubeflow.org/job-role"


def tf_job_grouper(ctx: Context) -> Metadata:
    return _whole_gang(ctx, "tfReplicaSpecs", ())


def xgboost_job_grouper(ctx: Context) -> Metadata:
    return _whole_gang(ctx, "xgbReplicaSpecs", (MASTER, WORKER))


def jax_job_grouper(ctx: Context) -> Metadata:
    return _whole_gang(ctx, "jaxReplicaSpecs", (WORKER,))


def paddle_job_grouper(ctx: Context) -> Metadata:
    """Group a PaddleJob like its sisters; KAI has no rule for it and would start its pods one by one."""
    return _whole_gang(ctx, "paddleReplicaSpecs", ())


def mpi_job_grouper(ctx: Context) -> Metadata:
    """Group an MPIJob; a launcher that is created only after the workers run is not waited for."""
    metadata = _whole_gang(ctx, "mpiReplicaSpecs", (LAUNCHER, WORKER))
    policy = dig_text(ctx.top, "spec", "launcherCreationPolicy")
    if policy != "WaitForWorkersReady" or _launcher_exists(ctx):
        return metadata
    launchers = count_at(ctx.top, "spec", "mpiReplicaSpecs", LAUNCHER, "replicas", default=0) or 0
    return replace(metadata, min_member=max(0, metadata.min_member - launchers))


def gang_size(job: Json, replica_map: str, required_roles: Sequence[str]) -> int:
    """Return `minAvailable` where set, else the sum of the replicas of all roles.

    Raises
    ------
    GroupingError : no replica map, a required role is missing, a role without replicas
    """
    available = count_at(job, "spec", "runPolicy", "schedulingPolicy", "minAvailable")
    return available if available is not None else _sum_of_roles(job, replica_map, required_roles)


def _whole_gang(ctx: Context, replica_map: str, required_roles: Sequence[str]) -> Metadata:
    return replace(base_metadata(ctx), min_member=gang_size(ctx.top, replica_map, required_roles))


def _sum_of_roles(job: Json, replica_map: str, required_roles: Sequence[str]) -> int:
    name = name_of(job)
    if not isinstance(dig(job, "spec", replica_map), dict):
        raise GroupingError(
            f"the type of the job {name} doesn't have a {replica_map} field. "
            "Please fix the replica field"
        )
    roles = dig_map(job, "spec", replica_map)
    for role in required_roles:
        if role not in roles:
            raise GroupingError(
                f"the type of the job {name} doesn't have a {role} replica spec which is required. "
                "Please fix the replica field"
            )
    total = 0
    for role in roles:
        replicas = count_at(job, "spec", replica_map, role, "replicas", default=0)
        if not replicas:
            raise GroupingError(
                f"the type of the job {name} doesn't allow for 0 {role} pods. "
                "Please fix the replica field"
            )
        total += replicas
    if total <= 0:
        raise GroupingError(
            f"failed calculate number of pods for a distributed job {name}. "
            f"Must be greater than 0, but got {total}"
        )
    return total


def _launcher_exists(ctx: Context) -> bool:
    wanted = {JOB_NAME_LABEL: name_of(ctx.top), JOB_ROLE_LABEL: LAUNCHER.lower()}
    own = labels_of(ctx.pod)
    if all(own.get(key) == value for key, value in wanted.items()):
        return not dig(ctx.pod, "metadata", "deletionTimestamp")
    pods = ctx.lookups.pods(namespace_of(ctx.pod), wanted)
    return any(not dig(pod, "metadata", "deletionTimestamp") for pod in pods)
