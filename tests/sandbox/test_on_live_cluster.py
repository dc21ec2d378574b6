"""The simulators at work on a live API server, embedded or real: what users would see."""

from __future__ import annotations

from typing import Any

import pytest

from kube.errors import DisruptionBudgetError, NotFoundError
from kube.resources import (
    CRONJOBS,
    DEPLOYMENTS,
    JOBS,
    NODES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    REPLICASETS,
    STATEFULSETS,
)
from tests.sandbox.conftest import LiveCluster


def template(duration: str = "", gpus: int = 0, restart: str = "", **annotations: str) -> Any:
    container: dict[str, Any] = {"name": "main", "image": "example.test/image:1"}
    if gpus:
        container["resources"] = {"limits": {"nvidia.com/gpu": str(gpus)}}
    spec: dict[str, Any] = {"schedulerName": "test", "containers": [container]}
    if restart:
        spec["restartPolicy"] = restart
    if duration:
        annotations["sandbox.kaiweb/duration"] = duration
    return {"metadata": {"labels": {"app": "it"}, "annotations": annotations}, "spec": spec}


def failing(**extra: str) -> Any:
    return template("100ms", restart="Never", **{"sandbox.kaiweb/exit-code": "3", **extra})


def condition(status: dict[str, Any], kind: str) -> dict[str, Any]:
    return next((item for item in status.get("conditions") or () if item["type"] == kind), {})


def job_ended(cluster: LiveCluster, name: str, kind: str) -> dict[str, Any]:
    def ended() -> dict[str, Any]:
        status = cluster.status(JOBS, name)
        return status if condition(status, kind).get("status") == "True" else {}

    current: dict[str, Any] = cluster.wait(ended, f"job {name} {kind}")
    return current


def test_nodes_are_ready_and_carry_gpu_labels(cluster: LiveCluster) -> None:
    def ready() -> dict[str, Any]:
        current = cluster.gateway.get(NODES, "node-0003", as_type=dict)
        is_ready = condition(current["status"], "Ready").get("status") == "True"
        return current if is_ready and not current["spec"].get("taints") else {}

    node = cluster.wait(ready, "a ready node without taints")
    assert condition(node["status"], "Ready")["status"] == "True"
    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "8"
    assert node["metadata"]["labels"]["nvidia.com/gpu.product"] == "NVIDIA-A100-SXM4-80GB"


def test_bound_pod_runs_then_succeeds(cluster: LiveCluster) -> None:
    template_body = template("3s", restart="Never")
    cluster.create(
        PODS, "a", template_body["spec"], annotations=template_body["metadata"]["annotations"]
    )
    running = cluster.wait(
        lambda: (pod := cluster.get(PODS, "a"))["status"]["phase"] == "Running" and pod, "Running"
    )
    assert running["status"]["podIP"].startswith("10.")
    assert running["status"]["containerStatuses"][0]["ready"] is True
    assert condition(running["status"], "PodScheduled")["status"] == "True"
    cluster.wait(lambda: cluster.status(PODS, "a")["phase"] == "Succeeded", "Succeeded")
    state = cluster.status(PODS, "a")["containerStatuses"][0]["state"]
    assert state["terminated"]["exitCode"] == 0
    assert state.get("running") is None


def test_deleted_pod_goes_after_its_shutdown(cluster: LiveCluster) -> None:
    cluster.create(PODS, "a", template()["spec"])
    cluster.wait(lambda: cluster.status(PODS, "a")["phase"] == "Running", "Running")
    cluster.gateway.delete(PODS, "a", namespace=cluster.namespace)
    assert cluster.get(PODS, "a")["metadata"]["deletionGracePeriodSeconds"] == 30

    def is_gone() -> bool:
        try:
            cluster.get(PODS, "a")
        except NotFoundError:
            return True
        return False

    cluster.wait(is_gone, "the end of the pod")


def test_job_runs_to_completion(cluster: LiveCluster) -> None:
    spec = {"parallelism": 2, "completions": 5, "template": template("100ms", restart="Never")}
    cluster.create(JOBS, "five", spec)
    status = job_ended(cluster, "five", "Complete")
    assert status["succeeded"] == 5
    assert not status.get("active")
    pods = cluster.pods()
    assert len(pods) == 5
    owner = pods[0]["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("Job", "five", True)
    assert pods[0]["metadata"]["labels"]["batch.kubernetes.io/job-name"] == "five"


def test_indexed_job_numbers_its_pods(cluster: LiveCluster) -> None:
    spec = {
        "parallelism": 3,
        "completions": 3,
        "completionMode": "Indexed",
        "template": template("100ms", restart="Never"),
    }
    cluster.create(JOBS, "ranks", spec)
    assert job_ended(cluster, "ranks", "Complete")["completedIndexes"] == "0-2"
    key = "batch.kubernetes.io/job-completion-index"
    assert sorted(pod["metadata"]["annotations"][key] for pod in cluster.pods()) == ["0", "1", "2"]


def test_failing_job_stops_at_its_limit(cluster: LiveCluster) -> None:
    cluster.create(JOBS, "bad", {"backoffLimit": 0, "template": failing()})
    status = job_ended(cluster, "bad", "Failed")
    assert condition(status, "Failed")["reason"] == "BackoffLimitExceeded"
    assert (status["failed"], status.get("succeeded", 0)) == (1, 0)


def test_suspended_job_has_no_pods_until_resumed(cluster: LiveCluster) -> None:
    spec = {"suspend": True, "template": template("100ms", restart="Never")}
    cluster.create(JOBS, "later", spec)
    cluster.wait(
        lambda: condition(cluster.status(JOBS, "later"), "Suspended").get("status") == "True",
        "the condition Suspended",
    )
    assert cluster.pods() == []
    cluster.patch(JOBS, "later", {"spec": {"suspend": False}})
    job_ended(cluster, "later", "Complete")


def test_finished_job_is_removed_after_its_time_to_live(cluster: LiveCluster) -> None:
    spec = {"ttlSecondsAfterFinished": 1, "template": template("100ms", restart="Never")}
    cluster.create(JOBS, "brief", spec)
    cluster.wait(lambda: not _exists(cluster, "brief"), "the end of the job")


def _exists(cluster: LiveCluster, name: str) -> bool:
    try:
        cluster.get(JOBS, name)
    except NotFoundError:
        return False
    return True


def test_deployment_rolls_over_and_scales(cluster: LiveCluster) -> None:
    spec = {"replicas": 4, "selector": {"matchLabels": {"app": "it"}}, "template": template()}
    cluster.create(DEPLOYMENTS, "web", spec)

    def settled(replicas: int) -> bool:
        current = cluster.get(DEPLOYMENTS, "web")
        status = current.get("status", {})
        return (
            status.get("observedGeneration") == current["metadata"]["generation"]
            and status.get("updatedReplicas") == status.get("replicas") == replicas
            and status.get("availableReplicas") == replicas
        )

    cluster.wait(lambda: settled(4), "four replicas")
    old_pods = {pod["metadata"]["name"] for pod in cluster.pods()}
    owner = cluster.pods()[0]["metadata"]["ownerReferences"][0]
    assert owner["kind"] == "ReplicaSet"
    cluster.patch(DEPLOYMENTS, "web", {"spec": {"template": {"metadata": {"labels": {"v": "2"}}}}})
    cluster.wait(lambda: settled(4) and len(cluster.pods("v=2")) == 4, "the new template")
    cluster.wait(
        lambda: not old_pods & {pod["metadata"]["name"] for pod in cluster.pods()}, "no old"
    )
    cluster.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 1}})
    cluster.wait(lambda: settled(1) and len(cluster.pods()) == 1, "one replica")
    sets = cluster.gateway.list(REPLICASETS, as_type=dict, namespace=cluster.namespace).items
    assert sorted(item["spec"]["replicas"] for item in sets) == [0, 1]


def test_replicaset_replaces_a_lost_pod(cluster: LiveCluster) -> None:
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "it"}}, "template": template()}
    cluster.create(REPLICASETS, "copies", spec)
    cluster.wait(lambda: cluster.status(REPLICASETS, "copies").get("readyReplicas") == 2, "two")
    deleted_pod = cluster.pods()[0]["metadata"]["name"]
    cluster.gateway.delete(PODS, deleted_pod, namespace=cluster.namespace, grace_period_s=0)
    names = lambda: {pod["metadata"]["name"] for pod in cluster.pods()}  # noqa: E731
    cluster.wait(lambda: len(names()) == 2 and deleted_pod not in names(), "the replacement")


def test_statefulset_starts_in_order_and_keeps_names(cluster: LiveCluster) -> None:
    spec = {
        "replicas": 3,
        "serviceName": "shards",
        "selector": {"matchLabels": {"app": "it"}},
        "template": template(),
    }
    cluster.create(STATEFULSETS, "shards", spec)
    cluster.wait(lambda: cluster.status(STATEFULSETS, "shards").get("readyReplicas") == 3, "three")
    pods = {pod["metadata"]["name"]: pod for pod in cluster.pods()}
    assert sorted(pods) == ["shards-0", "shards-1", "shards-2"]
    versions = [int(pods[name]["metadata"]["creationTimestamp"][-3:-1]) for name in sorted(pods)]
    assert len(versions) == 3
    uid = pods["shards-1"]["metadata"]["uid"]
    cluster.gateway.delete(PODS, "shards-1", namespace=cluster.namespace)
    cluster.wait(
        lambda: any(
            pod["metadata"]["name"] == "shards-1" and pod["metadata"]["uid"] != uid
            for pod in cluster.pods()
        ),
        "the new shards-1",
    )
    cluster.patch(STATEFULSETS, "shards", {"spec": {"replicas": 1}})
    cluster.wait(lambda: len(cluster.pods()) == 1, "one pod")
    assert cluster.pods()[0]["metadata"]["name"] == "shards-0"


def test_statefulset_counts_from_its_first_ordinal(cluster: LiveCluster) -> None:
    spec = {
        "replicas": 2,
        "serviceName": "workers",
        "ordinals": {"start": 1},
        "selector": {"matchLabels": {"app": "it"}},
        "template": template(),
    }
    cluster.create(STATEFULSETS, "workers", spec)
    cluster.wait(lambda: cluster.status(STATEFULSETS, "workers").get("readyReplicas") == 2, "two")
    names = sorted(pod["metadata"]["name"] for pod in cluster.pods())
    assert names == ["workers-1", "workers-2"]


def test_cronjob_makes_up_for_the_missed_run(cluster: LiveCluster) -> None:
    job = {"metadata": {"labels": {"from": "cron"}}, "spec": {"template": failing()}}
    cluster.create(CRONJOBS, "tick", {"schedule": "* * * * *", "jobTemplate": job})
    past = {"status": {"lastScheduleTime": "2026-01-01T00:00:00Z"}}
    cluster.gateway.patch(CRONJOBS, "tick", past, namespace=cluster.namespace, sub="status")

    def jobs() -> list[Any]:
        listing = cluster.gateway.list(JOBS, as_type=dict, namespace=cluster.namespace)
        return list(listing.items)

    (created,) = cluster.wait(jobs, "the job of the cron job")
    assert created["metadata"]["name"].startswith("tick-")
    assert created["metadata"]["labels"] == {"from": "cron"}
    assert created["metadata"]["ownerReferences"][0]["kind"] == "CronJob"


def test_reservation_pod_learns_a_device_nobody_else_has(cluster: LiveCluster) -> None:
    node = "node-0005"
    spec = {**template(gpus=1)["spec"], "nodeName": node}
    for number in range(2):
        labels = {"app": "kai-resource-reservation"}
        cluster.create(PODS, f"reservation-{number}", spec, labels=labels)

    def devices() -> set[str]:
        key = "run.ai/reserve_for_gpu_index"
        current = [pod["metadata"].get("annotations", {}).get(key) for pod in cluster.pods()]
        return set(filter(None, current))

    cluster.wait(lambda: len(devices()) == 2, "two devices")
    cluster.create(PODS, "greedy", {**template(gpus=7)["spec"], "nodeName": node})
    cluster.wait(lambda: cluster.status(PODS, "greedy")["phase"] == "Failed", "the refusal")
    assert cluster.status(PODS, "greedy")["reason"] == "UnexpectedAdmissionError"
    cluster.gateway.delete(PODS, "reservation-0", namespace=cluster.namespace)
    cluster.wait(lambda: len(devices()) == 1, "the free device")
    cluster.create(PODS, "fits", {**template(gpus=7)["spec"], "nodeName": node})
    cluster.wait(lambda: cluster.status(PODS, "fits")["phase"] == "Running", "the fitting pod")


def test_pods_go_with_their_deployment(cluster: LiveCluster) -> None:
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "it"}}, "template": template()}
    cluster.create(DEPLOYMENTS, "web", spec)
    cluster.wait(
        lambda: cluster.status(DEPLOYMENTS, "web").get("availableReplicas") == 2, "two replicas"
    )
    cluster.gateway.delete(DEPLOYMENTS, "web", namespace=cluster.namespace)
    cluster.wait(lambda: cluster.pods() == [], "the end of the pods")
    sets = cluster.gateway.list(REPLICASETS, as_type=dict, namespace=cluster.namespace)
    assert sets.items == () or list(sets.items) == []


def test_a_budget_lets_one_pod_go_and_protects_the_other(cluster: LiveCluster) -> None:
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "it"}}}
    cluster.create(POD_DISRUPTION_BUDGETS, "one", spec)
    for name in ("first", "second"):
        body = {**template(), "kind": "Pod", "apiVersion": "v1"}
        body["metadata"]["name"] = name
        cluster.gateway.create(PODS, body, namespace=cluster.namespace)

    def allows(count: int) -> bool:
        status = cluster.status(POD_DISRUPTION_BUDGETS, "one")
        return status.get("expectedPods") == 2 and status.get("disruptionsAllowed") == count

    cluster.wait(lambda: allows(1), "a budget that lets one pod go")
    uid = {name: cluster.get(PODS, name)["metadata"]["uid"] for name in ("first", "second")}
    cluster.gateway.evict(cluster.namespace, "first", pod_uid=uid["first"])
    with pytest.raises(DisruptionBudgetError, match="would violate the pod's disruption budget"):
        cluster.gateway.evict(cluster.namespace, "second", pod_uid=uid["second"])
    status = cluster.status(POD_DISRUPTION_BUDGETS, "one")
    assert status["disruptionsAllowed"] == 0
