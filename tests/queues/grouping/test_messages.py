"""Every error text of the grouping rules, word for word: it is what a user reads on the pod."""

from __future__ import annotations

from typing import Any

import pytest

from queues.grouping.errors import GroupingError
from queues.grouping.metadata import parse_kind_defaults
from tests.queues.grouping.owned_pods import error_of, owner, pod

KUBEFLOW = "kubeflow.org/v1"
LWS = "leaderworkerset.x-k8s.io/v1"


def lws(spec: dict[str, Any], **template: Any) -> dict[str, Any]:
    return owner(LWS, "LeaderWorkerSet", {"leaderWorkerTemplate": template, **spec})


@pytest.mark.parametrize(
    ("kind", "spec", "message"),
    [
        (
            "TFJob",
            {},
            "the type of the job own doesn't have a tfReplicaSpecs field. Please fix the replica field",
        ),
        (
            "XGBoostJob",
            {"xgbReplicaSpecs": {"Worker": {"replicas": 1}}},
            "the type of the job own doesn't have a Master replica spec which is required. Please fix the replica field",
        ),
        (
            "JAXJob",
            {"jaxReplicaSpecs": {}},
            "the type of the job own doesn't have a Worker replica spec which is required. Please fix the replica field",
        ),
        (
            "MPIJob",
            {"mpiReplicaSpecs": {"Launcher": {"replicas": 1}, "Worker": {"replicas": 0}}},
            "the type of the job own doesn't allow for 0 Worker pods. Please fix the replica field",
        ),
        (
            "PyTorchJob",
            {"elasticPolicy": {"minReplicas": 1}, "pytorchReplicaSpecs": {"Worker": {}}},
            "the type of the job own doesn't allow for 0 Worker pods. Please fix the replica field",
        ),
        (
            "TFJob",
            {"tfReplicaSpecs": {}},
            "failed calculate number of pods for a distributed job own. Must be greater than 0, but got 0",
        ),
    ],
)
def test_kubeflow_replica_errors(kind: str, spec: dict[str, Any], message: str) -> None:
    job = owner(KUBEFLOW, kind, spec)
    assert error_of(pod(job), job) == message
    job["spec"]["runPolicy"] = {"schedulingPolicy": {"minAvailable": 2}}
    if kind != "MPIJob":
        # A stated minimum needs no replica map.
        with pytest.raises(AssertionError, match="the pod was grouped"):
            error_of(pod(job), job)


def pytorch(**worker: Any) -> dict[str, Any]:
    return owner(
        KUBEFLOW, "PyTorchJob", {"pytorchReplicaSpecs": {"Worker": {"replicas": 4, **worker}}}
    )


def test_segment_errors() -> None:
    job = pytorch()
    annotated = pod(job, annotations={"kai.scheduler/segment-size": "two"})
    assert error_of(annotated, job).startswith("invalid segment size two on pod lab/p, err: ")
    job = pytorch(template={"metadata": {"annotations": {"kai.scheduler/segment-size": "0"}}})
    assert error_of(pod(job), job) == (
        "segment size 0 on worker podTemplate needs to be a positive integer"
    )
    job = pytorch(template={"metadata": {"annotations": {"kai.scheduler/segment-size": "2"}}})
    worker = pod(job, labels={"training.kubeflow.org/replica-type": "worker"})
    assert error_of(worker, job) == "replica index label not found on pod lab/p"
    job = pytorch(
        replicas=10_001, template={"metadata": {"annotations": {"kai.scheduler/segment-size": "1"}}}
    )
    assert error_of(pod(job), job) == (
        "number of subgroups created for the segmentation 10001 is greater than max allowed "
        "segmentation 10000"
    )


def test_ray_errors() -> None:
    spec = {"workerGroupSpecs": [{"groupName": "w", "replicas": 1, "minReplicas": 3}]}
    cluster = owner("ray.io/v1", "RayCluster", spec)
    assert error_of(pod(cluster), cluster) == (
        "ray-cluster replicas for a workerGroupsSpec can't be less than minReplicas. Given 1 replicas "
        "and 3 minReplicas. Please fix the replicas field for group number 0"
    )
    template = {"metadata": {"annotations": {"kai.scheduler/topology-required-placement": "rack"}}}
    cluster = owner("ray.io/v1", "RayCluster", {"headGroupSpec": {"template": template}})
    assert error_of(pod(cluster), cluster) == (
        "topology annotation (kai.scheduler/topology) is required for headgroup when topology "
        "placement annotations are set"
    )


def test_job_set_errors() -> None:
    bad = owner(
        "jobset.x-k8s.io/v1alpha2",
        "JobSet",
        {"replicatedJobs": [{"name": "a"}]},
        annotations={"kai.scheduler/batch-min-member": "0"},
    )
    assert error_of(pod(bad), bad) == (
        "invalid kai.scheduler/batch-min-member annotation on JobSet: value 0 must be >= 1"
    )
    template = {"metadata": {"annotations": {"kai.scheduler/batch-min-member": "0"}}}
    inner = owner(
        "jobset.x-k8s.io/v1alpha2",
        "JobSet",
        {"replicatedJobs": [{"name": "a", "template": template}]},
    )
    assert error_of(pod(inner), inner) == (
        "invalid kai.scheduler/batch-min-member annotation on replicatedJob template: value 0 must be >= 1"
    )
    good = owner("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": [{"name": "a"}]})
    assert error_of(pod(good), good) == (
        'pod lab/p missing required label "jobset.sigs.k8s.io/replicatedjob-name"'
    )
    labels = {"jobset.sigs.k8s.io/replicatedjob-name": "a"}
    assert error_of(pod(good, labels=labels), good) == (
        'pod lab/p missing required label "jobset.sigs.k8s.io/job-index"'
    )
    labels = {**labels, "jobset.sigs.k8s.io/job-index": "7"}
    assert error_of(pod(good, labels=labels), good) == (
        'leaf subgroup "a-replica-7" not found for pod lab/p'
    )


def test_leader_worker_set_errors() -> None:
    cases = [
        (lws({"startupPolicy": "Sometimes"}, size=2), {}, "unknown startupPolicy: Sometimes"),
        (
            lws({}, size=4, subGroupPolicy={"subGroupSize": 1}),
            {},
            "segmentSize 1 is not valid. It must be greater than 1",
        ),
        (
            lws({}, size=4, subGroupPolicy={"subGroupSize": 5}),
            {},
            "segmentSize 5 is greater than replicasSize 4",
        ),
        (
            lws(
                {},
                size=4,
                subGroupPolicy={"subGroupSize": 2, "subGroupPolicyType": "LeaderExcluded"},
            ),
            {},
            "replicasSize 4 is not divisible by segmentSize 2. LeaderExcluded policy is only supported "
            "when replicasSize is divisible by segmentSize.",
        ),
        (
            lws({}, size=4),
            {"leaderworkerset.sigs.k8s.io/worker-index": "-1"},
            "workerIndex -1 is not valid. It must be bigger than 0",
        ),
        (
            lws({}, size=0),
            {},
            "LeaderWorkerSet own: spec.leaderWorkerTemplate.size must be greater than 0, got 0",
        ),
    ]
    for the_set, labels, message in cases:
        assert error_of(pod(the_set, labels=labels), the_set) == message


def test_leader_ready_with_segments_is_refused_for_the_waiting_leader() -> None:
    the_set = lws({"startupPolicy": "LeaderReady"}, size=5, subGroupPolicy={"subGroupSize": 2})
    leader = pod(the_set, labels={"leaderworkerset.sigs.k8s.io/worker-index": "0"})
    assert error_of(leader, the_set) == "segmentSize 2 is greater than replicasSize 1"


def test_grove_errors() -> None:
    clique_set = owner("grove.io/v1alpha1", "PodCliqueSet")
    gang = {
        "apiVersion": "scheduler.grove.io/v1alpha1",
        "kind": "PodGang",
        "metadata": {"name": "g", "namespace": "lab", "uid": "u-g"},
        "spec": {"topologyConstraint": {"packConstraint": {"required": "rack"}}},
    }
    member = pod(clique_set, labels={"grove.io/podgang": "g"})
    assert error_of(member, clique_set, gang) == (
        "topology name cannot be empty when topology constraints are defined"
    )
    gang["spec"] = {
        "podgroups": [
            {"name": "a", "minReplicas": 1, "podReferences": [{"namespace": "x", "name": "p"}]}
        ]
    }
    assert error_of(member, clique_set, gang) == (
        "PodGang lab/g refers to pod x/p outside its namespace"
    )
    assert (
        error_of(pod(clique_set), clique_set)
        == 'pod lab/p missing required label "grove.io/podgang"'
    )
    gang["spec"] = {}
    gang["metadata"]["labels"] = {"kai.scheduler/preemptibility": "often"}
    assert error_of(member, clique_set, gang) == (
        "invalid preemptibility 'often' on PodGang g: must be one of non-preemptible, preemptible, semi-preemptible"
    )


def test_cron_job_pods_need_a_job() -> None:
    cron = owner("batch/v1", "CronJob")
    assert error_of(pod(cron), cron) == "no owner reference of type 'Job'"


def test_aml_node_count_must_be_a_number() -> None:
    job = owner(
        "amlarc.azureml.com/v1alpha1",
        "AmlJob",
        {"job": {"options": {"envs": {"AZUREML_NODE_COUNT": "x"}}}},
    )
    assert error_of(pod(job), job) == (
        "AmlJob own: spec.job.options.envs.AZUREML_NODE_COUNT must be a whole number, got 'x'"
    )


def test_owner_walk_errors() -> None:
    job = owner("batch/v1", "Job")
    assert error_of(pod(job)) == (
        "failed to find Job: <lab/own>, uid: <u-own>: it is not among the given objects"
    )
    reborn = owner("batch/v1", "Job", uid="u-new")
    assert error_of(pod(job), reborn) == (
        "failed to find Job: <lab/own>, uid: <u-own>: Owner resource with uid u-own not found"
    )
    shared = owner(
        "batch/v1", "Job", ownerReferences=[{"kind": "A", "name": "a"}, {"kind": "B", "name": "b"}]
    )
    assert error_of(pod(shared), shared) == (
        "found Job <own in namespace lab> with multiple owners: [A/a, B/b]"
    )
    own_owner = owner("batch/v1", "Job")
    own_owner["metadata"]["ownerReferences"] = pod(own_owner)["metadata"]["ownerReferences"]
    assert (
        error_of(pod(own_owner), own_owner)
        == "owner references of pod lab/p form a loop at Job own"
    )


@pytest.mark.parametrize(
    ("config_map", "message"),
    [
        ({}, "default priorities configmap is empty, cannot parse default priorities"),
        ({"data": {"x": ""}}, "default priorities configmap Data does not contain <types> key"),
    ],
)
def test_defaults_config_map_errors(config_map: dict[str, Any], message: str) -> None:
    with pytest.raises(GroupingError) as caught:
        parse_kind_defaults(config_map)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("api_version", "kind", "spec", "message"),
    [
        (KUBEFLOW, "TFJob", {"tfReplicaSpecs": {"PS": {"replicas": "two"}}},
         "spec.tfReplicaSpecs.PS.replicas must be a whole number, got 'two'"),
        (KUBEFLOW, "TFJob", {"runPolicy": {"schedulingPolicy": {"minAvailable": -1}}},
         "spec.runPolicy.schedulingPolicy.minAvailable must be between 0 and 2147483647, got -1"),
        ("ray.io/v1", "RayCluster", {"workerGroupSpecs": [{}, {"replicas": 1.5}]},
         "spec.workerGroupSpecs[1].replicas must be a whole number, got 1.5"),
        ("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": [{"name": "a", "template": {"spec": {"parallelism": True}}}]},
         "spec.replicatedJobs[name=a].template.spec.parallelism must be a whole number, got True"),
        (LWS, "LeaderWorkerSet", {"leaderWorkerTemplate": {"size": "4"}},
         "spec.leaderWorkerTemplate.size must be a whole number, got '4'"),
        ("batch.volcano.sh/v1alpha1", "Job", {"tasks": [{"name": "ps", "replicas": 2**40}]},
         "spec.tasks[name=ps].replicas must be between 0 and 2147483647, got 1099511627776"),
    ],
)  # fmt: skip
def test_a_field_that_is_no_count_is_named_with_its_object(
    api_version: str, kind: str, spec: dict[str, Any], message: str
) -> None:
    the_owner = owner(api_version, kind, spec)
    assert error_of(pod(the_owner), the_owner) == f"{kind} lab/own: {message}"
