"""Pods of the workloads that Kubernetes itself ships."""

from __future__ import annotations

from queues.grouping.base import Json, annotations_of, count_at, dig_map, dig_text, name_of, uid_of
from queues.grouping.offline.synthesis.pods import (
    capped,
    numbered_pods,
    object_of,
    pod_of,
    replicas_of,
    stable_suffix,
    template_of,
)
from queues.grouping.offline.synthesis.suspended import suspension_of


def job_pods(job: Json) -> list[Json]:
    parallelism = replicas_of(job, "spec", "parallelism")
    completions = count_at(job, "spec", "completions")
    count = parallelism if completions is None else min(parallelism, completions)
    name, labels = name_of(job), {"batch.kubernetes.io/job-name": name_of(job)}
    pods = []
    for index in range(capped(count)):
        suffix = stable_suffix(5, uid_of(job), str(index))
        if dig_text(job, "spec", "completionMode") == "Indexed":
            labels_of_pod = {**labels, "batch.kubernetes.io/job-completion-index": str(index)}
            pods.append(
                pod_of(f"{name}-{index}-{suffix}", job, template_of(job), labels=labels_of_pod)
            )
        else:
            pods.append(pod_of(f"{name}-{suffix}", job, template_of(job), labels=labels))
    return pods


def cron_job_objects(cron_job: Json) -> list[Json]:
    """Return the first run: a Job and its pods."""
    template = dig_map(cron_job, "spec", "jobTemplate")
    job = object_of(
        "batch/v1",
        "Job",
        f"{name_of(cron_job)}-1",
        cron_job,
        labels=dig_map(template, "metadata", "labels"),
        annotations=dig_map(template, "metadata", "annotations"),
        spec=dig_map(template, "spec"),
    )
    return [job] if suspension_of(job) else [job, *job_pods(job)]


def replica_set_pods(replica_set: Json) -> list[Json]:
    return numbered_pods(
        replica_set, template_of(replica_set), replicas_of(replica_set, "spec", "replicas")
    )


def deployment_objects(deployment: Json) -> list[Json]:
    template = template_of(deployment)
    suffix = stable_suffix(10, uid_of(deployment))
    labels = {**dig_map(template, "metadata", "labels"), "pod-template-hash": suffix}
    replica_set = object_of(
        "apps/v1",
        "ReplicaSet",
        f"{name_of(deployment)}-{suffix}",
        deployment,
        labels=labels,
        annotations=annotations_of(deployment),
        spec={
            "replicas": replicas_of(deployment, "spec", "replicas"),
            "template": {
                "metadata": {**dig_map(template, "metadata"), "labels": labels},
                "spec": dig_map(template, "spec"),
            },
        },
    )
    return [replica_set, *replica_set_pods(replica_set)]


def deployment_of(name: str, owner: Json, template: Json, replicas: int) -> list[Json]:
    """Return a Deployment created by another controller, with its ReplicaSet and pods."""
    deployment = object_of(
        "apps/v1", "Deployment", name, owner, spec={"replicas": replicas, "template": template}
    )
    return [deployment, *deployment_objects(deployment)]


def stateful_set_pods(stateful_set: Json) -> list[Json]:
    name = name_of(stateful_set)
    return [
        pod_of(
            f"{name}-{index}",
            stateful_set,
            template_of(stateful_set),
            labels={
                "statefulset.kubernetes.io/pod-name": f"{name}-{index}",
                "apps.kubernetes.io/pod-index": str(index),
            },
        )
        for index in range(capped(replicas_of(stateful_set, "spec", "replicas")))
    ]
