"""Pods of training workloads: Kubeflow, Ray, JobSet, LeaderWorkerSet, Spark, Volcano and relatives."""

from __future__ import annotations

import copy

from queues.grouping.base import (
    Json,
    dig,
    dig_list,
    dig_map,
    dig_text,
    kind_of,
    name_of,
    uid_of,
    whole_number,
)
from queues.grouping.offline.synthesis.builtin import job_pods, stateful_set_pods
from queues.grouping.offline.synthesis.pods import (
    capped,
    numbered_pods,
    object_of,
    pod_of,
    replicas_of,
    scheduler_template,
    stable_suffix,
    template_of,
)

TRAINING = "training.kubeflow.org/"
JOB_SET = "jobset.sigs.k8s.io/"
LWS = "leaderworkerset.sigs.k8s.io/"
_REPLICA_MAPS = (
    "tfReplicaSpecs",
    "pytorchReplicaSpecs",
    "xgbReplicaSpecs",
    "jaxReplicaSpecs",
    "paddleReplicaSpecs",
)


def kubeflow_pods(job: Json) -> list[Json]:
    roles = next(
        (dig_map(job, "spec", name) for name in _REPLICA_MAPS if dig(job, "spec", name)), {}
    )
    return [pod for role in roles for pod in _role_pods(job, role, roles[role])]


def mpi_objects(job: Json) -> list[Json]:
    """Return workers and launcher; a launcher that waits for its workers does not exist yet."""
    roles = dig_map(job, "spec", "mpiReplicaSpecs")
    workers = _role_pods(job, "Worker", roles.get("Worker"))
    if dig_text(job, "spec", "launcherCreationPolicy") == "WaitForWorkersReady":
        return workers
    launcher = roles.get("Launcher")
    if kind_of(job).version == "v1":
        return [*workers, *_role_pods(job, "Launcher", launcher)]
    batch_job = object_of(
        "batch/v1",
        "Job",
        f"{name_of(job)}-launcher",
        job,
        spec={"template": template_of(launcher or {}, "template")},
    )
    labels = {f"{TRAINING}job-name": name_of(job), f"{TRAINING}job-role": "launcher"}
    pods = job_pods(batch_job)
    for pod in pods:
        pod["metadata"]["labels"].update(labels)
    return [*workers, batch_job, *pods]


def _role_pods(job: Json, role: str, spec: object) -> list[Json]:
    name = role.lower()
    return [
        pod_of(
            f"{name_of(job)}-{name}-{index}",
            job,
            dig_map(spec, "template"),
            labels={
                f"{TRAINING}job-name": name_of(job),
                f"{TRAINING}replica-type": name,
                f"{TRAINING}replica-index": str(index),
                f"{TRAINING}job-role": name,
            },
        )
        for index in range(capped(replicas_of(spec, "replicas", below=role)))
    ]


def notebook_objects(notebook: Json) -> list[Json]:
    stateful_set = object_of(
        "apps/v1",
        "StatefulSet",
        name_of(notebook),
        notebook,
        spec={"replicas": 1, "template": template_of(notebook)},
    )
    return [stateful_set, *stateful_set_pods(stateful_set)]


def train_job_objects(train_job: Json) -> list[Json]:
    """Return the JobSet of a TrainJob; its pod template lies in a runtime that the files need not hold."""
    nodes = replicas_of(train_job, "spec", "trainer", "numNodes")
    job_set = object_of(
        "jobset.x-k8s.io/v1alpha2",
        "JobSet",
        name_of(train_job),
        train_job,
        spec={
            "replicatedJobs": [
                {"name": "node", "replicas": 1, "template": {"spec": {"parallelism": nodes}}}
            ]
        },
    )
    return [job_set, *job_set_objects(job_set)]


def ray_cluster_pods(cluster: Json) -> list[Json]:
    labels = {"ray.io/cluster": name_of(cluster), "ray.io/is-ray-node": "yes"}
    name = name_of(cluster)
    pods = [
        pod_of(
            f"{name}-head-{stable_suffix(5, uid_of(cluster))}",
            cluster,
            dig_map(cluster, "spec", "headGroupSpec", "template"),
            labels={**labels, "ray.io/group": "headgroup", "ray.io/node-type": "head"},
        )
    ]
    for spec in dig_list(cluster, "spec", "workerGroupSpecs"):
        if dig(spec, "suspend") is True or dig(spec, "suspended") is True:
            continue
        group = dig_text(spec, "groupName")
        min_replicas = replicas_of(spec, "minReplicas", default=0)
        count = replicas_of(spec, "replicas", default=min_replicas) * replicas_of(
            spec, "numOfHosts"
        )
        pods += [
            pod_of(
                f"{name}-{group}-worker-{stable_suffix(5, uid_of(cluster), group, str(index))}",
                cluster,
                dig_map(spec, "template"),
                labels={**labels, "ray.io/group": group, "ray.io/node-type": "worker"},
            )
            for index in range(capped(count))
        ]
    return pods


def ray_job_objects(ray_job: Json) -> list[Json]:
    """Return the RayCluster of a RayJob, which the operator also names in the RayJob's status."""
    cluster = _ray_cluster(ray_job, dig_text(ray_job, "status", "rayClusterName"), "rayClusterSpec")
    ray_job["status"] = {**dig_map(ray_job, "status"), "rayClusterName": name_of(cluster)}
    return [cluster, *ray_cluster_pods(cluster)]


def ray_service_objects(service: Json) -> list[Json]:
    active = dig_text(service, "status", "activeServiceStatus", "rayClusterName")
    cluster = _ray_cluster(service, active, "rayClusterConfig")
    cluster_status = {"rayClusterName": name_of(cluster)}
    service["status"] = {**dig_map(service, "status"), "activeServiceStatus": cluster_status}
    return [cluster, *ray_cluster_pods(cluster)]


def _ray_cluster(owner: Json, name: str, field: str) -> Json:
    return object_of(
        dig_text(owner, "apiVersion"),
        "RayCluster",
        name or f"{name_of(owner)}-{stable_suffix(5, uid_of(owner))}",
        owner,
        spec=copy.deepcopy(dig_map(owner, "spec", field)),
    )


def job_set_objects(job_set: Json) -> list[Json]:
    objects: list[Json] = []
    for spec in dig_list(job_set, "spec", "replicatedJobs"):
        replicated = dig_text(spec, "name")
        for index in range(capped(replicas_of(spec, "replicas"))):
            objects += _job_of_set(job_set, replicated, index, dig_map(spec, "template"))
    return objects


def _job_of_set(job_set: Json, replicated: str, index: int, template: Json) -> list[Json]:
    labels = {
        f"{JOB_SET}jobset-name": name_of(job_set),
        f"{JOB_SET}replicatedjob-name": replicated,
        f"{JOB_SET}job-index": str(index),
    }
    job = object_of(
        "batch/v1",
        "Job",
        f"{name_of(job_set)}-{replicated}-{index}",
        job_set,
        labels={**dig_map(template, "metadata", "labels"), **labels},
        annotations=dig_map(template, "metadata", "annotations"),
        spec=dig_map(template, "spec"),
    )
    pods = job_pods(job)
    for pod in pods:
        pod["metadata"]["labels"].update(labels)
    return [job, *pods]


def leader_worker_set_objects(lws: Json) -> list[Json]:
    """Return per replica a leader and its workers; the workers' StatefulSet is owned by the leader pod."""
    spec = dig_map(lws, "spec", "leaderWorkerTemplate")
    size = replicas_of(spec, "size")
    worker = dig_map(spec, "workerTemplate")
    leader = dig_map(spec, "leaderTemplate") or worker
    leaders = object_of("apps/v1", "StatefulSet", name_of(lws), lws)
    objects = [leaders]
    for group in range(replicas_of(lws, "spec", "replicas")):
        name = f"{name_of(lws)}-{group}"
        head = _lws_pod(lws, name, leaders, leader, (group, 0, size))
        workers = object_of("apps/v1", "StatefulSet", name, head)
        objects += [head, workers]
        objects += [
            _lws_pod(lws, f"{name}-{index}", workers, worker, (group, index, size))
            for index in range(1, capped(size))
        ]
    return objects


def _lws_pod(
    lws: Json, name: str, owner: Json, template: Json, place: tuple[int, int, int]
) -> Json:
    group, index, size = place
    return pod_of(
        name,
        owner,
        template,
        labels={
            f"{LWS}name": name_of(lws),
            f"{LWS}group-index": str(group),
            f"{LWS}worker-index": str(index),
        },
        annotations={f"{LWS}size": str(size)},
    )


def spark_application_pods(app: Json) -> list[Json]:
    """Return a driver and the executors it owns."""
    name = name_of(app)
    labels = {
        "spark-app-name": name,
        "spark-app-selector": f"spark-{uid_of(app).replace('-', '')}",
    }
    driver = pod_of(
        f"{name}-driver",
        app,
        {"metadata": {"labels": dig_map(app, "spec", "driver", "labels")}},
        labels={**labels, "spark-role": "driver"},
    )
    template = {"metadata": {"labels": dig_map(app, "spec", "executor", "labels")}}
    return [
        driver,
        *(
            pod_of(
                f"{name}-exec-{index + 1}",
                driver,
                template,
                labels={**labels, "spark-role": "executor"},
            )
            for index in range(capped(replicas_of(app, "spec", "executor", "instances")))
        ),
    ]


def volcano_job_pods(job: Json) -> list[Json]:
    return [
        pod_of(
            f"{name_of(job)}-{dig_text(task, 'name')}-{index}",
            job,
            _with_scheduler(dig_map(task, "template"), dig_text(job, "spec", "schedulerName")),
            labels={
                "volcano.sh/job-name": name_of(job),
                "volcano.sh/task-spec": dig_text(task, "name"),
            },
        )
        for task in dig_list(job, "spec", "tasks")
        for index in range(capped(replicas_of(task, "replicas")))
    ]


def _with_scheduler(template: Json, name: str) -> Json:
    spec = dig_map(template, "spec")
    if not name or spec.get("schedulerName"):
        return template
    return {**template, "spec": {**spec, "schedulerName": name}}


def aml_job_pods(job: Json) -> list[Json]:
    text = dig(job, "spec", "job", "options", "envs", "AZUREML_NODE_COUNT")
    return numbered_pods(job, scheduler_template(""), max(0, whole_number(str(text)) or 1))


def runai_job_pods(job: Json) -> list[Json]:
    """Name pods `<job>-<index>-<attempt>`, the form whose last part does not count."""
    return [
        pod_of(f"{name_of(job)}-{index}-0", job, template_of(job))
        for index in range(capped(replicas_of(job, "spec", "parallelism")))
    ]
