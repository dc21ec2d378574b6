"""Kubeflow training jobs: the gang is every replica of every role, unless the job states a minimum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from queues.grouping import keys
from queues.grouping.base import (
    Context,
    Metadata,
    count_at,
    dig,
    dig_text,
    labels_of,
    name_of,
    namespace_of,
)
from queues.grouping.metadata import base_metadata
from queues.grouping.replicas import MASTER, WORKER, elastic_gang_size, gang_size

LAUNCHER = "Launcher"


def tf_job_grouper(ctx: Context) -> Metadata:
    return _whole_gang(ctx, "tfReplicaSpecs", ())


def xgboost_job_grouper(ctx: Context) -> Metadata:
    return _whole_gang(ctx, "xgbReplicaSpecs", (MASTER, WORKER))


def jax_job_grouper(ctx: Context) -> Metadata:
    return _whole_gang(ctx, "jaxReplicaSpecs", (WORKER,))


def paddle_job_grouper(ctx: Context) -> Metadata:
    """Group a PaddleJob like the other Kubeflow jobs; KAI has no rule for it and would start its pods one by one."""
    return replace(base_metadata(ctx), min_member=elastic_gang_size(ctx.top, "paddleReplicaSpecs"))


def mpi_job_grouper(ctx: Context) -> Metadata:
    """Group an MPIJob; a launcher that is created only after its workers run does not count."""
    metadata = _whole_gang(ctx, "mpiReplicaSpecs", (LAUNCHER, WORKER))
    policy = dig_text(ctx.top, "spec", "launcherCreationPolicy")
    if policy != "WaitForWorkersReady" or _launcher_exists(ctx):
        return metadata
    launchers = count_at(ctx.top, "spec", "mpiReplicaSpecs", LAUNCHER, "replicas", default=0) or 0
    return replace(metadata, min_member=max(0, metadata.min_member - launchers))


def _whole_gang(ctx: Context, replica_map: str, required_roles: Sequence[str]) -> Metadata:
    return replace(base_metadata(ctx), min_member=gang_size(ctx.top, replica_map, required_roles))


def _launcher_exists(ctx: Context) -> bool:
    launcher_labels = {
        keys.KUBEFLOW_JOB_NAME: name_of(ctx.top),
        keys.KUBEFLOW_JOB_ROLE: LAUNCHER.lower(),
    }
    pod_labels = labels_of(ctx.pod)
    if all(pod_labels.get(key) == value for key, value in launcher_labels.items()):
        return not dig(ctx.pod, "metadata", "deletionTimestamp")
    pods = ctx.lookups.pods(namespace_of(ctx.pod), launcher_labels)
    return any(not dig(pod, "metadata", "deletionTimestamp") for pod in pods)
