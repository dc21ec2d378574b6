"""Planning ReplicaSets, Deployments, StatefulSets and CronJobs."""

from __future__ import annotations

from typing import Any

from kube.objects.meta import convert
from kube.resources import PVCS
from sandbox.controllers.workloads import cronjob, deployment, replicaset, statefulset
from sandbox.controllers.workloads.objects import CronJob, Deployment, Job, ReplicaSet, StatefulSet
from sandbox.controllers.workloads.plan import Create, Delete, Patch, Plan, template_hash
from tests.sandbox.pods import NOW, NOW_TEXT, work_pod

TEMPLATE = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "main"}]}}


def body(name: str, spec: dict[str, Any], status: dict[str, Any], **metadata: Any) -> Any:
    meta = {"name": name, "namespace": "ns", "uid": f"uid-{name}", "generation": 1}
    meta["creationTimestamp"] = NOW_TEXT
    return {"metadata": {**meta, **metadata}, "spec": spec, "status": status}


def creates(result: Plan) -> list[Create]:
    return [write for write in result.writes if isinstance(write, Create)]


def deletes(result: Plan) -> list[str]:
    return [write.name for write in result.writes if isinstance(write, Delete)]


def scales(result: Plan) -> dict[str, int]:
    return {
        write.name: write.body["spec"]["replicas"]
        for write in result.writes
        if isinstance(write, Patch) and "spec" in write.body
    }


def status(result: Plan) -> dict[str, Any]:
    status_patches = [write for write in result.writes if isinstance(write, Patch) and write.sub]
    new_status: dict[str, Any] = status_patches[-1].body["status"] if status_patches else {}
    return new_status


def rs(name: str, replicas: int, available: int, revision: int = 1, **extra: Any) -> ReplicaSet:
    return convert(
        body(
            name,
            {"replicas": replicas, "template": TEMPLATE},
            {"replicas": max(replicas, available), "availableReplicas": available},
            annotations={deployment.REVISION: str(revision)},
            **extra,
        ),
        ReplicaSet,
    )


def test_replicaset_makes_what_is_missing_and_ignores_the_failed() -> None:
    replica_set = convert(body("r", {"replicas": 3, "template": TEMPLATE}, {}), ReplicaSet)
    result = replicaset.plan(replica_set, [work_pod("a"), work_pod("b", "Failed")])
    assert len(creates(result)) == 2
    assert (status(result)["replicas"], status(result)["readyReplicas"]) == (1, 1)


def test_replicaset_gives_up_pending_before_ready_pods() -> None:
    replica_set = convert(body("r", {"replicas": 1, "template": TEMPLATE}, {}), ReplicaSet)
    pods = [work_pod("a"), work_pod("b", "Pending"), work_pod("c", "Pending", node="")]
    assert deletes(replicaset.plan(replica_set, pods)) == ["c", "b"]


def web(replicas: int = 4, **spec: Any) -> Deployment:
    selector = {"matchLabels": {"app": "x"}}
    full = {"replicas": replicas, "selector": selector, "template": TEMPLATE, **spec}
    return convert(body("web", full, {}), Deployment)


NEW = f"web-{template_hash(TEMPLATE)}"


def test_deployment_makes_a_replicaset_for_its_template() -> None:
    (creation,) = creates(deployment.plan(web(), [], NOW))
    assert creation.body["metadata"]["name"] == NEW
    assert creation.body["spec"]["replicas"] == 4
    hash_label = {deployment.HASH: template_hash(TEMPLATE)}
    assert creation.body["spec"]["selector"]["matchLabels"] == {"app": "x", **hash_label}
    assert creation.body["spec"]["template"]["metadata"]["labels"] == {"app": "x", **hash_label}
    assert creation.body["metadata"]["annotations"] == {deployment.REVISION: "1"}


def test_rollout_starts_with_the_surge_and_the_next_revision() -> None:
    (creation,) = creates(deployment.plan(web(), [rs("web-old", 4, 4, revision=7)], NOW))
    assert creation.body["spec"]["replicas"] == 1
    assert creation.body["metadata"]["annotations"] == {deployment.REVISION: "8"}


def test_rollout_never_has_too_few_available_nor_too_many() -> None:
    new, old = 1, 4
    new_available, old_available = 0, 4
    for _ in range(30):
        sets = [rs(NEW, new, new_available, 2), rs("web-old", old, old_available)]
        replicas = scales(deployment.plan(web(), sets, NOW))
        new, old = replicas.get(NEW, new), replicas.get("web-old", old)
        # Old pods go at once; new ones become available a step later.
        old_available = min(old_available, old)
        assert new_available + old_available >= 3
        assert new + old <= 5
        new_available = new
    assert (new, old) == (4, 0)


def test_rollout_drops_unavailable_old_pods_first() -> None:
    sets = [rs(NEW, 1, 0, 2), rs("web-old", 4, 2)]
    assert scales(deployment.plan(web(), sets, NOW)) == {"web-old": 3}


def test_recreate_waits_until_the_old_pods_are_gone() -> None:
    recreated = web(strategy={"type": "Recreate"})
    result = deployment.plan(recreated, [rs("web-old", 4, 4)], NOW)
    assert (creates(result), scales(result)) == ([], {"web-old": 0})
    (creation,) = creates(deployment.plan(recreated, [rs("web-old", 0, 0)], NOW))
    assert creation.body["spec"]["replicas"] == 4


def test_paused_deployment_does_not_roll() -> None:
    assert creates(deployment.plan(web(paused=True), [rs("web-old", 4, 4)], NOW)) == []


def test_scaling_without_rollout_is_direct() -> None:
    assert scales(deployment.plan(web(replicas=9), [rs(NEW, 4, 4)], NOW)) == {NEW: 9}


def test_history_beyond_the_limit_is_deleted_oldest_first() -> None:
    old = [
        rs(f"web-{n}", 0, 0, n, creationTimestamp=f"2025-01-0{n}T00:00:00Z") for n in range(1, 4)
    ]
    sets = [*old, rs(NEW, 4, 4, 9)]
    assert deletes(deployment.plan(web(revisionHistoryLimit=1), sets, NOW)) == ["web-1", "web-2"]


def test_deployment_status_says_when_it_is_done() -> None:
    result = status(deployment.plan(web(), [rs(NEW, 4, 4)], NOW))
    assert (result["updatedReplicas"], result["availableReplicas"]) == (4, 4)
    reasons = {item["type"]: item["reason"] for item in result["conditions"]}
    assert reasons == {
        "Available": "MinimumReplicasAvailable",
        "Progressing": "NewReplicaSetAvailable",
    }


def shards(replicas: int = 3, **spec: Any) -> StatefulSet:
    full = {"replicas": replicas, "serviceName": "s", "template": TEMPLATE, **spec}
    return convert(body("s", full, {}), StatefulSet)


REVISION = {statefulset.HASH: f"s-{template_hash(TEMPLATE)}"}


def shard(number: int, phase: str = "Running", **extra: Any) -> Any:
    return work_pod(f"s-{number}", phase, labels=REVISION, **extra)


def test_ordered_statefulset_waits_for_each_pod() -> None:
    (first,) = creates(statefulset.plan(shards(), []))
    assert first.body["metadata"]["name"] == "s-0"
    assert (first.body["spec"]["hostname"], first.body["spec"]["subdomain"]) == ("s-0", "s")
    assert creates(statefulset.plan(shards(), [shard(0, "Pending")])) == []
    (second,) = creates(statefulset.plan(shards(), [shard(0)]))
    assert second.body["metadata"]["name"] == "s-1"


def test_parallel_statefulset_makes_all_at_once() -> None:
    creations = creates(statefulset.plan(shards(podManagementPolicy="Parallel"), []))
    assert [item.body["metadata"]["name"] for item in creations] == ["s-0", "s-1", "s-2"]


def test_statefulset_counts_from_its_first_ordinal() -> None:
    """LeaderWorkerSet counts workers from 1, because its leader is number 0."""
    workers = shards(2, podManagementPolicy="Parallel", ordinals={"start": 1})
    creations = creates(statefulset.plan(workers, []))
    assert [item.body["metadata"]["name"] for item in creations] == ["s-1", "s-2"]
    assert deletes(statefulset.plan(workers, [shard(number) for number in range(3)])) == ["s-0"]


def test_statefulset_shrinks_from_the_top() -> None:
    pods = [shard(number) for number in range(3)]
    assert deletes(statefulset.plan(shards(replicas=1), pods)) == ["s-2"]


def test_statefulset_replaces_old_templates_from_the_top_down_to_the_partition() -> None:
    old = [work_pod(f"s-{n}", labels={statefulset.HASH: "s-old"}) for n in range(3)]
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    assert deletes(statefulset.plan(shards(), old)) == ["s-2"]
    assert deletes(statefulset.plan(shards(), [*old[:2], shard(2, "Pending")])) == []
    stateful_set = shards(updateStrategy=strategy)
    assert deletes(statefulset.plan(stateful_set, [*old[:2], shard(2)])) == []


def test_failed_pod_of_a_statefulset_is_replaced() -> None:
    assert deletes(statefulset.plan(shards(), [shard(0, "Failed")])) == ["s-0"]


def test_claims_are_made_for_each_pod() -> None:
    claim = {"metadata": {"name": "data"}, "spec": {"storageClassName": "fast"}}
    pvc, pod = creates(statefulset.plan(shards(volumeClaimTemplates=[claim]), []))
    assert (pvc.resource, pvc.body["metadata"]["name"]) == (PVCS, "data-s-0")
    assert pod.body["spec"]["volumes"] == [
        {"name": "data", "persistentVolumeClaim": {"claimName": "data-s-0"}}
    ]


def tick(status: dict[str, Any] | None = None, **spec: Any) -> CronJob:
    template = {"metadata": {"labels": {"l": "1"}}, "spec": {"parallelism": 2}}
    full = {"schedule": "*/10 * * * *", "jobTemplate": template, **spec}
    return convert(body("tick", full, status or {}), CronJob)


def child(name: str, kind: str = "", created: str = NOW_TEXT) -> Job:
    conditions = [{"type": kind, "status": "True"}] if kind else []
    job_body = body(name, {}, {"conditions": conditions})
    job_body["metadata"]["creationTimestamp"] = created
    return convert(job_body, Job)


def test_cronjob_starts_a_job_at_its_time() -> None:
    assert creates(cronjob.plan(tick(), [], NOW + 599)) == []
    result = cronjob.plan(tick(), [], NOW + 601)
    (creation,) = creates(result)
    assert creation.body["metadata"]["name"] == f"tick-{int(NOW + 600) // 60}"
    assert creation.body["metadata"]["labels"] == {"l": "1"}
    assert creation.body["spec"] == {"parallelism": 2}
    assert status(result)["lastScheduleTime"] == "2026-01-01T00:10:00Z"


def test_cronjob_asks_to_be_looked_at_again_at_the_next_time() -> None:
    assert cronjob.plan(tick(), [], NOW + 30).again_after_s == 570.01


def test_run_already_started_is_not_started_again() -> None:
    cron_job = tick({"lastScheduleTime": "2026-01-01T00:10:00Z"})
    assert creates(cronjob.plan(cron_job, [], NOW + 700)) == []


def test_concurrency_policies() -> None:
    running = child("tick-1")
    assert creates(cronjob.plan(tick(concurrencyPolicy="Forbid"), [running], NOW + 601)) == []
    replaced = cronjob.plan(tick(concurrencyPolicy="Replace"), [running], NOW + 601)
    assert deletes(replaced) == ["tick-1"]
    assert len(creates(replaced)) == 1
    assert len(creates(cronjob.plan(tick(), [running], NOW + 601))) == 1


def test_suspended_and_late_cronjobs_do_not_start() -> None:
    assert creates(cronjob.plan(tick(suspend=True), [], NOW + 601)) == []
    assert creates(cronjob.plan(tick(startingDeadlineSeconds=30), [], NOW + 640)) == []


def test_bad_schedule_is_survived() -> None:
    assert creates(cronjob.plan(tick(schedule="whenever"), [], NOW + 601)) == []
    assert creates(cronjob.plan(tick(timeZone="Mars/Base"), [], NOW + 601)) == []


def test_history_of_finished_jobs_is_bounded() -> None:
    jobs = [child(f"tick-{n}", "Complete", f"2025-01-0{n}T00:00:00Z") for n in range(1, 6)]
    cron_job = tick({"lastScheduleTime": "2026-01-01T00:10:00Z"})
    assert deletes(cronjob.plan(cron_job, jobs, NOW + 700)) == ["tick-1", "tick-2"]
