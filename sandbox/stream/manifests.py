"""The objects of the demo: its queues, its namespaces, and the workload of an arrival.

All names begin with `demo`, so that queues and namespaces of other users are not touched.
"""

from __future__ import annotations

from typing import Any

from kube import keys
from sandbox.nodes import podhints
from sandbox.nodes.profiles import KEPT_FREE_LABEL, RACK_LABEL, ZONE_LABEL
from sandbox.nodes.simpod import GPU
from sandbox.stream.day import DEPARTMENTS, TEAMS, Arrival, Cluster, Team, Work

Json = dict[str, Any]

PREFIX = "demo"
TOPOLOGY = "demo-map"
KEEP_FINISHED_S = 60
CPUS_PER_GPU, MEMORY_GIB_PER_GPU = 6, 24
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
NOT_KEPT_FREE = {"matchExpressions": [{"key": KEPT_FREE_LABEL, "operator": "DoesNotExist"}]}
UNLIMITED = {"quota": -1, "limit": -1, "overQuotaWeight": 1}


def queues(cluster: Cluster) -> list[Json]:
    """Return the queues of the departments, then of the teams; quotas are shares of the cluster."""
    teams = [_queue(_team_queue(team), team.title, _quota(team, cluster), team.weight,
                    parent=f"{PREFIX}-{team.department}") for team in TEAMS]  # fmt: skip
    parents = [
        _queue(
            f"{PREFIX}-{name}",
            title,
            sum(_quota(team, cluster) for team in TEAMS if team.department == name),
            1,
        )
        for name, title in DEPARTMENTS.items()
    ]
    return [*parents, *teams]


def namespaces() -> list[Json]:
    """Return the namespace of each team."""
    return [
        {"metadata": {"name": namespace_of(team), "labels": {"sandbox.kaiweb/demo": "true"}}}
        for team in TEAMS
    ]


def namespace_of(team: Team) -> str:
    """Return the name of a team's namespace."""
    return f"{PREFIX}-{team.name}"


def topology() -> Json:
    """Return the Topology of zones, racks and nodes."""
    levels = [
        {"nodeLabel": ZONE_LABEL, "alias": "zone"},
        {"nodeLabel": RACK_LABEL, "alias": "rack"},
        {"nodeLabel": "kubernetes.io/hostname"},
    ]
    return {
        "apiVersion": "kai.scheduler/v1alpha1",
        "kind": "Topology",
        "metadata": {"name": TOPOLOGY},
        "spec": {"levels": levels},
    }


def service(team: Team, name: str, replicas: int) -> Json:
    """Return the Deployment of an inference service, with one GPU per replica."""
    labels = {"app": name}
    template = _template(team, team.users[0], 1.0, labels=labels)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": name,
            "labels": {keys.QUEUE: _team_queue(team), "user": team.users[0]},
        },
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }


def workload(arrival: Arrival, name: str, speed: float) -> Json:
    """Return the Job or pod of an arrival; one real second is `speed` simulated seconds."""
    seconds = arrival.duration_s / speed
    annotations = {podhints.DURATION: podhints.format_duration(seconds)}
    if arrival.is_failing:
        annotations[podhints.EXIT_CODE] = "1"
    if 0 < arrival.gpus < 1:
        annotations[keys.GPU_FRACTION] = str(arrival.gpus)
    template = _template(arrival.team, arrival.user, arrival.gpus, annotations=annotations)
    template["spec"]["restartPolicy"] = "Never"
    if arrival.work is Work.NOTEBOOK:
        return _notebook(arrival, name, template)
    return _job(arrival, name, template)


def _notebook(arrival: Arrival, name: str, template: Json) -> Json:
    metadata = {**template["metadata"], "name": name}
    metadata["labels"] = {**metadata["labels"], keys.QUEUE: _team_queue(arrival.team)}
    # Interactive work has a priority above training, but may be preempted.
    spec = {**template["spec"], "priorityClassName": "build-preemptible"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _job(arrival: Arrival, name: str, template: Json) -> Json:
    annotations: dict[str, str] = {}
    if arrival.work is Work.TRAIN and arrival.pods > 1:
        annotations[keys.BATCH_MIN_MEMBER] = str(arrival.pods)
        annotations[keys.TOPOLOGY] = TOPOLOGY
        annotations[keys.TOPOLOGY_PREFERRED] = RACK_LABEL
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "labels": {keys.QUEUE: _team_queue(arrival.team), "user": arrival.user},
            "annotations": annotations,
        },
        "spec": {
            "parallelism": arrival.pods,
            "completions": arrival.pods,
            "backoffLimit": 0,
            "ttlSecondsAfterFinished": KEEP_FINISHED_S,
            "template": template,
        },
    }


def _template(
    team: Team,
    user: str,
    gpus: float,
    *,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
) -> Json:
    # A pod with a fraction of a GPU, or none, gets the CPUs and memory of one GPU.
    size = max(1.0, gpus)
    resources: Json = {
        "requests": {
            "cpu": str(round(CPUS_PER_GPU * size)),
            "memory": f"{round(MEMORY_GIB_PER_GPU * size)}Gi",
        }
    }
    if gpus >= 1:
        resources["limits"] = {GPU: str(round(gpus))}
    container = {
        "name": "main",
        "image": f"sandbox.example/{team.name}:latest",
        "resources": resources,
    }
    return {
        "metadata": {"labels": {"user": user, **(labels or {})}, "annotations": annotations or {}},
        "spec": {
            "schedulerName": keys.SCHEDULER_NAME,
            "affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [NOT_KEPT_FREE]}}},
            "containers": [container],
        },
    }


def _queue(name: str, title: str, quota: int, weight: float, parent: str = "") -> Json:
    spec: Json = {
        "displayName": title,
        "resources": {
            "gpu": {"quota": quota, "limit": -1, "overQuotaWeight": weight},
            "cpu": UNLIMITED,
            "memory": UNLIMITED,
        },
    }
    if parent:
        spec["parentQueue"] = parent
    return {
        "apiVersion": "scheduling.run.ai/v2",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": spec,
    }


def _quota(team: Team, cluster: Cluster) -> int:
    return max(1, round(team.quota * cluster.gpus))


def _team_queue(team: Team) -> str:
    return f"{PREFIX}-{team.name}"
