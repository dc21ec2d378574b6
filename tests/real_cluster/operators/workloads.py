"""One workload for each operator, of three or more pods with a GPU each, and how it shows that it is done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sandbox.nodes.podhints import DURATION, EXIT_CODE
from tests.real_cluster.operators.programs import (
    JOBSET,
    LEADER_WORKER_SET,
    MPI,
    TRAINING,
    Operator,
)

Manifest = dict[str, Any]
QUEUE = {"kai.scheduler/queue": "default-queue"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What is submitted and what must come of it.

    Attributes
    ----------
    gangs : the minimum of each pod group that must come into being, sorted
    conditions : types of conditions that the operator must have set to True or, if it was passed, to False
    """

    operator: Operator
    manifest: Manifest
    resource: str
    pods: int
    gangs: tuple[int, ...]
    conditions: tuple[str, ...]

    @property
    def name(self) -> str:
        return str(self.manifest["metadata"]["name"])


def workloads() -> Mapping[str, Workload]:
    """Return the workloads by the names of their operators."""
    return {item.operator.name: item for item in (_jobset(), _lws(), _pytorch(), _mpi())}


def _template(*, runs: str, restart: str | None = "OnFailure", container: str = "main") -> Manifest:
    """Return a pod template.

    Parameters
    ----------
    runs : how long; "" until the pod is deleted
    """
    limits = {"nvidia.com/gpu": "1"}
    spec: Manifest = {
        "schedulerName": "kai-scheduler",
        "containers": [
            {"name": container, "image": "example.test/x:1", "resources": {"limits": limits}}
        ],
    }
    if restart is not None:
        spec["restartPolicy"] = restart
    annotations = {DURATION: runs} if runs else {}
    return {"metadata": {"labels": QUEUE, "annotations": annotations}, "spec": spec}


def _workload(api_version: str, kind: str, spec: Manifest) -> Manifest:
    metadata = {"name": kind.lower(), "labels": QUEUE}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


def _jobset() -> Workload:
    def replicated(name: str, pods: int) -> Manifest:
        job = {"parallelism": pods, "completions": pods, "template": _template(runs="2s")}
        return {"name": name, "replicas": 1, "template": {"spec": job}}

    spec = {"replicatedJobs": [replicated("driver", 1), replicated("workers", 3)]}
    return Workload(
        operator=JOBSET,
        manifest=_workload("jobset.x-k8s.io/v1alpha2", "JobSet", spec),
        resource="jobsets.jobset.x-k8s.io",
        pods=4,
        gangs=(4,),
        conditions=("Completed",),
    )


def failing_jobset() -> Workload:
    """Return a JobSet whose pods fail, and that may start again once."""
    template = _template(runs="1s", restart="Never")
    template["metadata"]["annotations"][EXIT_CODE] = "1"
    job = {"parallelism": 2, "completions": 2, "backoffLimit": 0, "template": template}
    spec = {
        "failurePolicy": {"maxRestarts": 1},
        "replicatedJobs": [{"name": "workers", "replicas": 1, "template": {"spec": job}}],
    }
    manifest = _workload("jobset.x-k8s.io/v1alpha2", "JobSet", spec)
    manifest["metadata"]["name"] = "failing"
    return Workload(
        operator=JOBSET,
        manifest=manifest,
        resource="jobsets.jobset.x-k8s.io",
        pods=2,
        gangs=(2,),
        conditions=("Failed",),
    )


def _lws() -> Workload:
    # Its pods belong to StatefulSets, which restart what ends: done is when all of it is available.
    template = {"size": 3, "workerTemplate": _template(runs="", restart=None)}
    return Workload(
        operator=LEADER_WORKER_SET,
        manifest=_workload(
            "leaderworkerset.x-k8s.io/v1",
            "LeaderWorkerSet",
            {"replicas": 2, "leaderWorkerTemplate": template},
        ),
        resource="leaderworkersets.leaderworkerset.x-k8s.io",
        pods=6,
        gangs=(3, 3),
        conditions=("Available",),
    )


def _pytorch() -> Workload:
    def replicas(count: int) -> Manifest:
        template = _template(runs="2s", restart=None, container="pytorch")
        return {"replicas": count, "restartPolicy": "OnFailure", "template": template}

    return Workload(
        operator=TRAINING,
        manifest=_workload(
            "kubeflow.org/v1",
            "PyTorchJob",
            {"pytorchReplicaSpecs": {"Master": replicas(1), "Worker": replicas(2)}},
        ),
        resource="pytorchjobs.kubeflow.org",
        pods=3,
        gangs=(3,),
        conditions=("Running", "Succeeded"),
    )


def _mpi() -> Workload:
    specs = {
        "Launcher": {"replicas": 1, "template": _template(runs="4s")},
        "Worker": {"replicas": 2, "template": _template(runs="", restart=None)},
    }
    return Workload(
        operator=MPI,
        manifest=_workload(
            "kubeflow.org/v2beta1",
            "MPIJob",
            {
                "slotsPerWorker": 1,
                "runPolicy": {"cleanPodPolicy": "None"},
                "mpiReplicaSpecs": specs,
            },
        ),
        resource="mpijobs.kubeflow.org",
        pods=3,
        gangs=(3,),
        conditions=("Running", "Succeeded"),
    )
