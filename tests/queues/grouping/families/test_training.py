"""Rules of the training families that no manifest shows: Kubeflow, Ray, JobSet, LeaderWorkerSet, Volcano, Spark."""

from __future__ import annotations

from typing import Any

import pytest

from queues.grouping.base import Settings
from tests.queues.grouping.owned_pods import (
    chain,
    decision_of,
    error_of,
    minimums,
    owner,
    pod,
    spec_of,
    stored_group,
)

Json = dict[str, Any]
GROUP = "ray.io/group"
LWS = "leaderworkerset.sigs.k8s.io/"
SEGMENT = "kai.scheduler/segment-"


@pytest.mark.parametrize(
    ("kind", "replica_map"),
    [
        ("TFJob", "tfReplicaSpecs"),
        ("PyTorchJob", "pytorchReplicaSpecs"),
        ("XGBoostJob", "xgbReplicaSpecs"),
        ("JAXJob", "jaxReplicaSpecs"),
        ("MPIJob", "mpiReplicaSpecs"),
        ("PaddleJob", "paddleReplicaSpecs"),
    ],
)
def test_a_stated_minimum_is_the_gang_of_every_kubeflow_kind(kind: str, replica_map: str) -> None:
    spec: Json = {"runPolicy": {"schedulingPolicy": {"minAvailable": 2}}}
    job = owner("kubeflow.org/v1", kind, spec)
    assert spec_of(pod(job), job)["minMember"] == 2
    roles = ("Master", "Worker", "Launcher")
    job["spec"] = {replica_map: {role: {"replicas": 2} for role in roles}}
    assert spec_of(pod(job), job)["minMember"] == 6


def test_pytorch_takes_the_stated_minimum_then_the_elastic_one_then_all() -> None:
    roles = {"Master": {"replicas": 2}, "Worker": {"replicas": 6}}
    job = owner("kubeflow.org/v1", "PyTorchJob", {"pytorchReplicaSpecs": roles})
    assert minimums(spec_of(pod(job), job)) == {"master": 2, "worker": 6}
    job["spec"]["elasticPolicy"] = {"minReplicas": 3}
    assert minimums(spec_of(pod(job), job)) == {"master": 2, "worker": 1}
    job["spec"]["runPolicy"] = {"schedulingPolicy": {"minAvailable": 1}}
    assert minimums(spec_of(pod(job), job)) == {"master": 2, "worker": 0}
    job["spec"]["pytorchReplicaSpecs"] = {"Master": {"replicas": 0}, "Worker": {"replicas": 6}}
    assert minimums(spec_of(pod(job), job)) == {"worker": 1}


def test_an_elastic_paddle_job_needs_its_elastic_minimum() -> None:
    roles = {"Worker": {"replicas": 4}}
    elastic = {"paddleReplicaSpecs": roles, "elasticPolicy": {"minReplicas": 2}}
    job = owner("kubeflow.org/v1", "PaddleJob", elastic)
    assert spec_of(pod(job), job)["minMember"] == 2
    job["spec"]["runPolicy"] = {"schedulingPolicy": {"minAvailable": 3}}
    assert spec_of(pod(job), job)["minMember"] == 3


def test_pytorch_segments_listen_to_the_worker_pod_then_its_template_then_the_job() -> None:
    template = {SEGMENT + "size": "3", SEGMENT + "topology-required-placement": "rack"}
    worker = {"replicas": 4, "template": {"metadata": {"annotations": template}}}
    job = owner(
        "kubeflow.org/v1",
        "PyTorchJob",
        {"pytorchReplicaSpecs": {"Worker": worker}},
        annotations={"kai.scheduler/topology": "hall"},
    )
    role = {
        "training.kubeflow.org/replica-type": "worker",
        "training.kubeflow.org/replica-index": "3",
    }
    decision = decision_of(pod(job, labels=role), job)
    assert decision.body is not None
    assert minimums(decision.body["spec"]) == {"worker": -2, "worker-0": 3, "worker-1": 1}
    assert decision.sub_group == "worker-1"
    assert decision.body["spec"]["subGroups"][1]["topologyConstraint"] == {
        "topology": "hall",
        "requiredTopologyLevel": "rack",
    }
    own = {
        SEGMENT + "size": "2",
        "kai.scheduler/topology": "yard",
        SEGMENT + "topology-preferred-placement": "row",
    }
    decision = decision_of(pod(job, labels=role, annotations=own), job)
    assert decision.body is not None
    assert minimums(decision.body["spec"]) == {"worker": -2, "worker-0": 2, "worker-1": 2}
    assert decision.body["spec"]["subGroups"][1]["topologyConstraint"] == {
        "topology": "yard",
        "requiredTopologyLevel": "rack",
        "preferredTopologyLevel": "row",
    }


def test_pytorch_segments_need_a_name_and_a_level_and_no_worker_is_no_segment() -> None:
    template = {SEGMENT + "size": "2", SEGMENT + "topology-required-placement": "rack"}
    worker: Json = {"replicas": 2, "template": {"metadata": {"annotations": template}}}
    job = owner("kubeflow.org/v1", "PyTorchJob", {"pytorchReplicaSpecs": {"Worker": worker}})
    groups = spec_of(pod(job), job)["subGroups"]
    assert [group.get("topologyConstraint") for group in groups] == [None, None]
    worker["replicas"] = 0
    job["spec"]["runPolicy"] = {"schedulingPolicy": {"minAvailable": 1}}
    assert minimums(spec_of(pod(job), job)) == {"worker": 1}


def test_a_launcher_that_is_leaving_does_not_count() -> None:
    spec = {
        "launcherCreationPolicy": "WaitForWorkersReady",
        "mpiReplicaSpecs": {"Launcher": {"replicas": 1}, "Worker": {"replicas": 2}},
    }
    job = owner("kubeflow.org/v2beta1", "MPIJob", spec)
    name, role = "training.kubeflow.org/job-name", "training.kubeflow.org/job-role"
    launcher = {
        "apiVersion": "v1",
        "kind": "Pod",
        **pod(job, name="l", uid="u-l", labels={name: "own", role: "launcher"}),
    }
    worker = pod(job, labels={name: "own", role: "worker"})
    assert spec_of(worker, job)["minMember"] == 2
    assert spec_of(worker, job, launcher)["minMember"] == 3
    assert spec_of(launcher, job)["minMember"] == 3
    launcher["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert spec_of(worker, job, launcher)["minMember"] == 2
    launcher["metadata"].pop("deletionTimestamp")
    launcher["metadata"]["labels"][name] = "another"
    assert spec_of(worker, job, launcher)["minMember"] == 2
    job["spec"].pop("launcherCreationPolicy")
    assert spec_of(worker, job)["minMember"] == 3


def test_ray_counts_groups_that_ask_for_something_and_names_the_nameless() -> None:
    spec = {
        "workerGroupSpecs": [
            {"groupName": "a", "replicas": 3, "minReplicas": 2, "numOfHosts": 2},
            {"groupName": "off", "replicas": 3, "suspended": True},
            {"groupName": "paused", "replicas": 3, "suspend": True},
            {"groupName": "none", "replicas": 0, "minReplicas": 0},
            {"replicas": 1, "minReplicas": 0},
        ]
    }
    cluster = owner("ray.io/v1", "RayCluster", spec)
    metadata = spec_of(pod(cluster), cluster)
    assert minimums(metadata) == {"headgroup": 1, "a": 4, "worker-group-4": 1}
    assert metadata["minMember"] == 6
    assert decision_of(pod(cluster, labels={GROUP: "a"}), cluster).sub_group == "a"
    assert decision_of(pod(cluster, labels={GROUP: "off"}), cluster).sub_group == ""
    assert decision_of(pod(cluster), cluster).sub_group == ""


def test_rays_groups_may_each_ask_for_a_place() -> None:
    topology, required = "kai.scheduler/topology", "kai.scheduler/topology-required-placement"

    def template(**annotations: str) -> Json:
        return {"metadata": {"annotations": annotations}}

    spec = {
        "headGroupSpec": {"template": template(**{topology: "hall"})},
        "workerGroupSpecs": [
            {
                "groupName": "w",
                "replicas": 1,
                "template": template(**{topology: "hall", required: "rack"}),
            }
        ],
    }
    cluster = owner("ray.io/v1", "RayCluster", spec)
    head, worker = spec_of(pod(cluster), cluster)["subGroups"]
    assert "topologyConstraint" not in head
    assert worker["topologyConstraint"] == {"topology": "hall", "requiredTopologyLevel": "rack"}
    spec["workerGroupSpecs"][0]["template"] = template(**{required: "rack"})  # type: ignore[index]
    assert error_of(pod(cluster), cluster) == (
        "topology annotation (kai.scheduler/topology) is required for w when topology placement annotations are set"
    )


def test_a_ray_service_follows_its_active_cluster_and_before_that_its_pending_one() -> None:
    def cluster(name: str, workers: int) -> Json:
        spec = {"workerGroupSpecs": [{"groupName": "w", "replicas": workers}]}
        return owner("ray.io/v1", "RayCluster", spec, name=name, uid=f"u-{name}")

    old, new = cluster("old", 1), cluster("new", 4)
    service = owner("ray.io/v1", "RayService")
    the_pod = chain(old, service)
    assert error_of(the_pod, old, service).startswith(
        "failed to extract rayClusterName for lab/own of kind RayService. "
    )
    service["status"] = {"pendingServiceStatus": {"rayClusterName": "new"}}
    assert spec_of(the_pod, old, new, service)["minMember"] == 5
    service["status"]["activeServiceStatus"] = {"rayClusterName": ""}
    assert spec_of(the_pod, old, new, service)["minMember"] == 5
    service["status"]["activeServiceStatus"] = {"rayClusterName": "old"}
    decision = decision_of(the_pod, old, new, service)
    assert decision.pod_group == "pg-own-u-own"
    assert decision.body is not None
    assert decision.body["spec"]["minMember"] == 2
    service["status"] = {"activeServiceStatus": {"rayClusterName": "gone"}}
    assert error_of(the_pod, old, new, service) == (
        "failed to get RayCluster lab/gone: it is not among the given objects"
    )


JOB_LABELS = {"jobset.sigs.k8s.io/replicatedjob-name": "a", "jobset.sigs.k8s.io/job-index": "0"}


def job_set(annotations: dict[str, str] | None = None, **spec: Any) -> Json:
    jobs = [
        {"name": "a", "template": {"spec": {"parallelism": 2}}},
        {"name": "b", "replicas": 2, "template": {}},
    ]
    body = {"replicatedJobs": jobs, **spec}
    return owner("jobset.x-k8s.io/v1alpha2", "JobSet", body, annotations=annotations or {})


def test_a_job_set_starts_as_many_jobs_as_it_says_else_all_else_one_by_one() -> None:
    count = "kai.scheduler/batch-min-member"
    member = pod(job_set(), labels=JOB_LABELS)
    in_order = {"startupPolicy": {"startupPolicyOrder": "InOrder"}}
    for the_set, minimum in (
        (job_set(), 2),
        (job_set({count: "1"}), 1),
        (job_set({count: "9"}), 2),
        (job_set(**in_order), 1),
        (job_set({count: "2"}, **in_order), 2),
    ):
        spec = spec_of(member, the_set)
        assert spec["minSubGroup"] == minimum
        assert "minMember" not in spec
    assert minimums(spec_of(member, job_set())) == {
        "a": -1,
        "a-replica-0": 2,
        "b": -2,
        "b-replica-0": 1,
        "b-replica-1": 1,
    }


def test_a_replicated_job_may_ask_for_more_pods_than_run_side_by_side_and_for_a_place() -> None:
    annotations = {
        "kai.scheduler/batch-min-member": "5",
        "kai.scheduler/topology": "hall",
        "kai.scheduler/topology-required-placement": "rack",
    }
    the_set = job_set({"kai.scheduler/topology": "yard"})
    the_set["spec"]["replicatedJobs"][0]["template"]["metadata"] = {"annotations": annotations}
    spec = spec_of(pod(the_set, labels=JOB_LABELS), the_set)
    assert minimums(spec)["a-replica-0"] == 5
    places = [group.get("topologyConstraint") for group in spec["subGroups"][:3]]
    assert places == [None, {"topology": "hall", "requiredTopologyLevel": "rack"}, None]
    assert spec["topologyConstraint"] == {"topology": "yard"}
    annotations.pop("kai.scheduler/topology")
    spec = spec_of(pod(the_set, labels=JOB_LABELS), the_set)
    assert "topologyConstraint" not in spec["subGroups"][1]


def test_an_older_flat_job_set_stays_flat_while_the_flag_is_on() -> None:
    member = pod(job_set(), labels=JOB_LABELS)
    flat = stored_group("pg-own-u-own")
    decision = decision_of(member, job_set({"kai.scheduler/batch-min-member": "3"}), flat)
    assert (decision.pod_group, decision.sub_group) == ("pg-own-u-own", "")
    assert decision.body is not None
    assert decision.body["spec"] == {
        "queue": "default-queue",
        "priorityClassName": "train",
        "minMember": 3,
    }
    for other in (
        stored_group("pg-own-u-own2"),
        stored_group("pg-own-u-own", subGroups=[{"name": "a"}]),
    ):
        assert decision_of(member, job_set(), other).sub_group == "a-replica-0"
    never = Settings(search_legacy=False)
    assert decision_of(member, job_set(), flat, settings=never).sub_group == "a-replica-0"


def worker_set(**spec: Any) -> Json:
    return owner("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", spec)


def test_a_leader_worker_set_has_a_group_per_index_and_one_without_it() -> None:
    the_set = worker_set(leaderWorkerTemplate={"size": 3})
    for label, name in (
        ("7", "pg-own-u-own-group-7"),
        ("x", "pg-own-u-own"),
        (None, "pg-own-u-own"),
    ):
        labels = {} if label is None else {LWS + "group-index": label}
        assert decision_of(pod(the_set, labels=labels), the_set).pod_group == name
    alone = worker_set(leaderWorkerTemplate={"size": 1})
    assert minimums(spec_of(pod(alone), alone)) == {"leader": 1}


def test_a_ready_leaders_workers_count_what_the_pod_says() -> None:
    the_set = worker_set(startupPolicy="LeaderReady", leaderWorkerTemplate={"size": 4})
    worker = pod(the_set, labels={LWS + "worker-index": "1"}, annotations={LWS + "size": "3"})
    assert spec_of(worker, the_set)["minMember"] == 3
    worker["metadata"]["annotations"] = {LWS + "size": "many"}
    assert spec_of(worker, the_set)["minMember"] == 4
    leader = pod(the_set, labels={LWS + "worker-index": "0"}, annotations={LWS + "size": "3"})
    assert spec_of(leader, the_set)["minMember"] == 1


def test_segments_of_a_leader_worker_set_are_sized_by_policy_then_set_then_template() -> None:
    template: Json = {"metadata": {"annotations": {SEGMENT + "size": "4"}}}
    the_set = worker_set(leaderWorkerTemplate={"size": 8, "workerTemplate": template})
    assert list(minimums(spec_of(pod(the_set), the_set)).values()) == [-2, 1, 3, 4]
    the_set["metadata"]["annotations"] = {SEGMENT + "size": "2"}
    assert list(minimums(spec_of(pod(the_set), the_set)).values()) == [-2, 1, 1, 2, 2, 2]
    the_set["spec"]["leaderWorkerTemplate"]["subGroupPolicy"] = {"subGroupSize": 8}
    assert list(minimums(spec_of(pod(the_set), the_set)).values()) == [-2, 1, 7]
    the_set["spec"]["leaderWorkerTemplate"].pop("subGroupPolicy")
    the_set["metadata"]["annotations"] = {SEGMENT + "size": "two"}
    assert error_of(pod(the_set), the_set) == (
        "invalid kai.scheduler/segment-size annotation on LeaderWorkerSet own: 'two' is not a whole number"
    )
    huge = worker_set(leaderWorkerTemplate={"size": 20_002, "subGroupPolicy": {"subGroupSize": 2}})
    assert error_of(pod(huge), huge) == (
        "number of subgroups created for the segmentation 10001 is greater than max allowed segmentation 10000"
    )


def test_segments_of_a_leader_worker_set_take_their_place_from_pod_template_and_set() -> None:
    level, name = SEGMENT + "topology-required-placement", "kai.scheduler/topology"
    template: Json = {"metadata": {"annotations": {level: "rack"}}}
    policy = {"subGroupSize": 2, "subGroupPolicyType": "LeaderExcluded"}
    the_set = worker_set(
        leaderWorkerTemplate={"size": 5, "workerTemplate": template, "subGroupPolicy": policy}
    )

    def places(the_pod: Json) -> list[Any]:
        return [g.get("topologyConstraint") for g in spec_of(the_pod, the_set)["subGroups"]]

    assert places(pod(the_set)) == [None, None, None]
    the_set["metadata"]["annotations"] = {name: "hall"}
    rack = {"topology": "hall", "requiredTopologyLevel": "rack"}
    assert places(pod(the_set)) == [None, rack, rack]
    own = pod(the_set, annotations={name: "yard", level: "row"})
    row = {"topology": "yard", "requiredTopologyLevel": "row"}
    assert places(own) == [None, row, row]


def test_a_volcano_job_states_its_gang_itself() -> None:
    tasks = [{"replicas": 3, "minAvailable": 1}, {"replicas": 2}, {}]
    job = owner("batch.volcano.sh/v1alpha1", "Job", {"tasks": tasks})
    assert spec_of(pod(job), job)["minMember"] == 4
    job["spec"] |= {"minAvailable": 2, "priorityClassName": "build"}
    spec = spec_of(pod(job), job)
    assert (spec["minMember"], spec["priorityClassName"]) == (2, "build")
    job["metadata"]["labels"] = {"priorityClassName": "inference"}
    assert spec_of(pod(job), job)["priorityClassName"] == "inference"


def test_labels_win_over_what_a_spark_application_says() -> None:
    options = {"batchSchedulerOptions": {"queue": "b", "priorityClassName": "build"}}
    app = owner("sparkoperator.k8s.io/v1beta2", "SparkApplication", options)
    labels = {"spark-app-name": "a", "spark-app-selector": "spark-1"}
    assert spec_of(pod(app, labels=labels), app)["queue"] == "b"
    app["metadata"]["labels"] = {
        "kai.scheduler/queue": "default-queue",
        "priorityClassName": "inference",
    }
    spec = spec_of(pod(app, labels=labels), app)
    assert (spec["queue"], spec["priorityClassName"]) == ("default-queue", "inference")


def test_both_spark_labels_are_needed_to_share_a_group() -> None:
    assert decision_of(pod(labels={"spark-app-selector": "s"})).pod_group == "pg-p-u-p"
    assert decision_of(pod(labels={"spark-app-name": "n"})).pod_group == "pg-p-u-p"
    both = pod(labels={"spark-app-selector": "s", "spark-app-name": "n"})
    assert decision_of(both).pod_group == "s"


def test_an_inference_service_is_grouped_as_what_serves_it() -> None:
    service = owner(
        "serving.kserve.io/v1beta1", "InferenceService", labels={"kai.scheduler/queue": "web"}
    )
    the_set = owner(
        "leaderworkerset.x-k8s.io/v1",
        "LeaderWorkerSet",
        {"leaderWorkerTemplate": {"size": 2}},
        name="lws",
        uid="u-lws",
    )
    decision = decision_of(chain(the_set, service), the_set, service)
    assert decision.pod_group == "pg-lws-u-lws"
    assert decision.body is not None
    assert (decision.body["spec"]["minMember"], decision.body["spec"]["queue"]) == (2, "web")
