"""Rules that no manifest file shows: legacy groups, segments of odd sizes, skipped owners, durations."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from kube.values.durations import format_duration, parse_duration
from queues.grouping.base import KindDefault, Settings
from queues.grouping.engine.reconcile import Skip, decide
from queues.grouping.errors import NotReadableError
from queues.grouping.offline.file_cluster import FileCluster
from tests.queues.grouping.owned_pods import (
    chain,
    decision_of,
    error_of,
    file_cluster,
    minimums,
    owner,
    pod,
    spec_of,
    stored_group,
)


def pytorch(workers: int, size: int, **spec: Any) -> dict[str, Any]:
    template = {"metadata": {"annotations": {"kai.scheduler/segment-size": str(size)}}}
    worker = {"replicas": workers, "template": template}
    return owner(
        "kubeflow.org/v1", "PyTorchJob", {"pytorchReplicaSpecs": {"Worker": worker}, **spec}
    )


def test_segments_beyond_the_minimum_ask_for_nothing() -> None:
    job = pytorch(20, 4, runPolicy={"schedulingPolicy": {"minAvailable": 12}})
    assert minimums(spec_of(pod(job), job)) == {
        "worker": -5, "worker-0": 4, "worker-1": 4, "worker-2": 4, "worker-3": 0, "worker-4": 0,
    }  # fmt: skip


def test_even_segments() -> None:
    job = pytorch(4, 2)
    assert minimums(spec_of(pod(job), job)) == {"worker": -2, "worker-0": 2, "worker-1": 2}


@pytest.mark.parametrize(
    ("size", "segment", "kind", "expected"),
    [
        (
            6,
            2,
            "LeaderWorker",
            {"segment-0": -2, "leader": 1, "workers": 1, "segment-1": 2, "segment-2": 2},
        ),
        (5, 2, "LeaderWorker", {"segment-0": -2, "leader": 1, "workers": 2, "segment-1": 2}),
        (7, 4, "LeaderWorker", {"segment-0": -2, "leader": 1, "workers": 3, "segment-1": 3}),
        (5, 2, "LeaderExcluded", {"leader": 1, "segment-0": 2, "segment-1": 2}),
        (3, 2, "LeaderExcluded", {"leader": 1, "segment-0": 2}),
        (4, 4, "LeaderWorker", {"segment-0": -2, "leader": 1, "workers": 3}),
    ],
)
def test_leader_worker_segments(
    size: int, segment: int, kind: str, expected: dict[str, int]
) -> None:
    policy = {"subGroupSize": segment, "subGroupPolicyType": kind}
    the_set = owner(
        "leaderworkerset.x-k8s.io/v1",
        "LeaderWorkerSet",
        {"leaderWorkerTemplate": {"size": size, "subGroupPolicy": policy}},
    )
    minimum_of = minimums(spec_of(pod(the_set), the_set))
    assert minimum_of == expected
    assert sum(count for count in minimum_of.values() if count > 0) == size
    placed = [
        decision_of(
            pod(the_set, labels={"leaderworkerset.sigs.k8s.io/worker-index": str(index)}), the_set
        ).sub_group
        for index in range(size)
    ]
    assert {name: placed.count(name) for name in placed} == {
        n: c for n, c in minimum_of.items() if c > 0
    }


def test_a_ready_leader_brings_its_workers() -> None:
    the_set = owner(
        "leaderworkerset.x-k8s.io/v1",
        "LeaderWorkerSet",
        {"startupPolicy": "LeaderReady", "leaderWorkerTemplate": {"size": 4}},
    )
    leader = pod(the_set, labels={"leaderworkerset.sigs.k8s.io/worker-index": "0"})
    assert spec_of(leader, the_set)["subGroups"] == [{"name": "leader", "minMember": 1}]
    leader["spec"]["nodeName"] = "n1"
    assert spec_of(leader, the_set)["minMember"] == 4


def test_older_groups_are_kept() -> None:
    job = owner("batch/v1", "Job", annotations={"kai.scheduler/batch-min-member": "3"})
    assert decision_of(pod(job), job, stored_group("pg-p-u-own")).pod_group == "pg-p-u-own"
    never = Settings(search_legacy=False)
    assert (
        decision_of(pod(job), job, stored_group("pg-p-u-own"), settings=never).pod_group
        == "pg-own-u-own"
    )
    labels = {"jobset.sigs.k8s.io/replicatedjob-name": "a", "jobset.sigs.k8s.io/job-index": "0"}
    spec: dict[str, Any] = {
        "replicatedJobs": [{"name": "a"}],
        "startupPolicy": {"startupPolicyOrder": "InOrder"},
    }
    job_set = owner("jobset.x-k8s.io/v1alpha2", "JobSet", spec)
    flat = decision_of(pod(job_set, labels=labels), job_set, stored_group("pg-own-u-own-b"))
    assert (flat.pod_group, flat.sub_group) == ("pg-own-u-own-a", "")
    cluster = owner("ray.io/v1", "RayCluster", {})
    ray = decision_of(
        pod(cluster, labels={"ray.io/group": "headgroup"}), cluster, stored_group("pg-own-u-own")
    )
    assert ray.body is not None
    assert "subGroups" not in ray.body["spec"]
    assert ray.sub_group == ""


def test_a_revision_that_runs_pod_by_pod_goes_on_so() -> None:
    service = owner("serving.knative.dev/v1", "Service")
    revision = owner(
        "serving.knative.dev/v1", "Revision", name="rev", uid="u-rev",
        annotations={"autoscaling.knative.dev/min-scale": "2"},
    )  # fmt: skip
    label = {"serving.knative.dev/revision": "rev"}
    mine = pod(service, labels=label)
    assert spec_of(mine, service, revision)["minMember"] == 2
    other = {
        "apiVersion": "v1",
        "kind": "Pod",
        **pod(service, name="q", labels=label, annotations={"pod-group-name": "pg-q"}),
    }
    stored = stored_group("pg-q")
    stored["metadata"]["ownerReferences"] = [{"kind": "Pod", "name": "q"}]
    by_pod = decision_of(mine, service, revision, other, stored)
    assert by_pod.pod_group == "pg-p-u-p"


def test_defaults_of_a_skipped_kind_fill_its_labels() -> None:
    flow = owner("argoproj.io/v1alpha1", "Workflow", annotations={"kai.scheduler/topology": "t"})
    cluster = file_cluster(flow)
    cluster.defaults = {
        "Workflow.argoproj.io": KindDefault(priority_class="build", preemptibility="preemptible")
    }
    body = decide(pod(flow), cluster, Settings()).body
    assert body is not None
    assert body["spec"] == {
        "queue": "default-queue",
        "priorityClassName": "build",
        "minMember": 1,
        "preemptibility": "preemptible",
        "topologyConstraint": {"topology": "t"},
    }


def test_a_skipped_kind_hands_down_no_class_that_does_not_exist_and_no_unknown_word() -> None:
    flow = owner("argoproj.io/v1alpha1", "Workflow")
    cliques = owner("grove.io/v1alpha1", "PodCliqueSet", name="set", uid="u-set")
    gang = {
        "apiVersion": "scheduler.grove.io/v1alpha1",
        "kind": "PodGang",
        "metadata": {"name": "g", "namespace": "lab", "uid": "u-g"},
        "spec": {"podgroups": [{"name": "a", "minReplicas": 1}]},
    }
    cluster = file_cluster(flow, cliques, gang)
    cluster.defaults = {
        "Workflow": KindDefault(priority_class="no-such", preemptibility="sometimes")
    }
    member = pod(flow, labels={"priorityClassName": "inference"})
    body = decide(member, cluster, Settings()).body
    assert body is not None
    assert body["spec"]["priorityClassName"] == "inference"
    assert "preemptibility" not in body["spec"]
    member = chain(cliques, flow)
    cluster.add(cliques)
    member["metadata"]["labels"] = {"grove.io/podgang": "g"}
    body = decide(member, cluster, Settings()).body
    assert body is not None
    assert body["spec"]["priorityClassName"] == "train"
    assert "preemptibility" not in body["spec"]


def test_a_skipped_owner_above_a_typed_workload_delegates() -> None:
    flow = owner("argoproj.io/v1alpha1", "Workflow", labels={"kai.scheduler/queue": "q"})
    job = owner(
        "kubeflow.org/v1",
        "TFJob",
        {"tfReplicaSpecs": {"Worker": {"replicas": 2}}},
        name="tf",
        uid="u-tf",
    )
    job["metadata"]["ownerReferences"] = pod(flow)["metadata"]["ownerReferences"]
    decision = decision_of(pod(job), job, flow)
    assert decision.pod_group == "pg-tf-u-tf"
    assert decision.body is not None
    assert (decision.body["spec"]["minMember"], decision.body["spec"]["queue"]) == (2, "q")


def test_a_replicated_job_scaled_to_zero_is_left_out() -> None:
    spec = {"replicatedJobs": [{"name": "a"}, {"name": "off", "replicas": 0}]}
    job_set = owner("jobset.x-k8s.io/v1alpha2", "JobSet", spec)
    labels = {"jobset.sigs.k8s.io/replicatedjob-name": "a", "jobset.sigs.k8s.io/job-index": "0"}
    group_spec = spec_of(pod(job_set, labels=labels), job_set)
    assert (group_spec["minSubGroup"], minimums(group_spec)) == (1, {"a": -1, "a-replica-0": 1})


def test_a_masters_annotations_do_not_move_the_workers() -> None:
    job = owner(
        "kubeflow.org/v1",
        "PyTorchJob",
        {"pytorchReplicaSpecs": {"Master": {"replicas": 1}, "Worker": {"replicas": 4}}},
    )
    annotations = {"kai.scheduler/segment-size": "2"}
    role = "training.kubeflow.org/replica-type"
    master = pod(job, labels={role: "master"}, annotations=annotations)
    assert minimums(spec_of(master, job)) == {"master": 1, "worker": 4}
    labels = {role: "worker", "training.kubeflow.org/replica-index": "3"}
    worker = decision_of(pod(job, labels=labels, annotations=annotations), job)
    assert worker.sub_group == "worker-1"


class Walled(FileCluster):
    """A cluster in which Solvers may not be read."""

    def get(
        self, api_version: str, kind: str, namespace: str, name: str, *, uid: str = ""
    ) -> dict[str, Any]:
        if kind == "Solver":
            raise NotReadableError("forbidden")
        return super().get(api_version, kind, namespace, name, uid=uid)


def test_the_walk_ends_below_an_owner_that_may_not_be_read() -> None:
    solver = owner("example.test/v1", "Solver")
    job = owner("batch/v1", "Job", name="j", uid="u-j")
    job["metadata"]["ownerReferences"] = pod(solver)["metadata"]["ownerReferences"]
    walled = Walled()
    walled.add(job)
    assert decide(pod(job), walled, Settings()).pod_group == "pg-j-u-j"
    assert decide(pod(solver), Walled(), Settings()).pod_group == "pg-p-u-p"


def test_an_owner_left_out_of_the_files_is_unreadable_unless_its_kind_is_known() -> None:
    labels = {"spark-app-name": "a", "spark-app-selector": "spark-1"}
    app = owner("sparkoperator.k8s.io/v1beta2", "SparkApplication")
    assert decision_of(pod(app, labels=labels)).pod_group == "spark-1"
    assert decision_of(pod(app, labels=labels), app).pod_group == "pg-own-u-own"
    assert decision_of(pod(owner("example.test/v1", "Gadget"))).pod_group == "pg-p-u-p"


def test_a_kind_that_the_role_covers_must_be_in_the_files_also_without_a_rule_of_its_own() -> None:
    revision = owner("serving.knative.dev/v1", "Revision", name="rev", uid="u-rev")
    configuration = owner("serving.knative.dev/v1", "Configuration", name="conf", uid="u-conf")
    member = chain(revision, configuration)
    assert error_of(member, revision) == (
        "failed to find Configuration: <lab/conf>, uid: <u-conf>: it is not among the given objects"
    )
    machine = owner("kubevirt.io/v1", "VirtualMachine")
    assert error_of(pod(machine)).startswith("failed to find VirtualMachine: ")


@pytest.mark.parametrize(
    ("below", "group"),
    [
        (owner("apps/v1", "Deployment", name="below", uid="u-below"), "pg-p-u-p"),
        (
            owner("ray.io/v1", "RayCluster", {}, name="below", uid="u-below"),
            "pg-below-u-below",
        ),
        (owner("batch/v1", "Job", name="below", uid="u-below"), "pg-below-u-below"),
    ],
)
def test_an_owner_of_a_kind_that_the_role_does_not_cover_ends_the_walk_as_in_a_cluster(
    below: dict[str, Any], group: str
) -> None:
    above = owner("example.test/v1", "Operator", labels={"kai.scheduler/queue": "unseen"})
    decision = decision_of(chain(below, above), below, above)
    assert decision.pod_group == group
    assert decision.body is not None
    assert decision.body["spec"]["queue"] == "default-queue"


def test_a_leaving_pod_whose_owner_is_gone_is_no_error() -> None:
    job = owner("batch/v1", "Job")
    leaving = pod(job, deletionTimestamp="2026-01-01T00:00:00Z")
    assert decision_of(leaving).skip is Skip.LEAVING


def test_an_owner_that_asks_to_be_skipped() -> None:
    job = owner("batch/v1", "Job", annotations={"kai.scheduler/skip-podgrouper": "true"})
    assert decision_of(pod(job), job).skip is Skip.OWNER_ASKED


@pytest.mark.parametrize(
    ("text", "canonical"),
    [("5m", "5m0s"), ("90s", "1m30s"), ("1h", "1h0m0s"), ("-1s", "-1s"), ("0", "0s"), ("1.5s", "1.5s"), ("250ms", "250ms"), ("2h45m30.5s", "2h45m30.5s"), ("10us", "10µs")],
)  # fmt: skip
def test_durations_are_written_as_go_writes_them(text: str, canonical: str) -> None:
    assert format_duration(parse_duration(text)) == canonical


@pytest.mark.parametrize(
    "text", ["", "300", "5 m", "m", "1d", "-", "٣s", "1e3s", "9999999999h", "."]
)
def test_texts_that_are_no_durations(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        parse_duration(text)


@pytest.mark.parametrize(
    "name", ["job", "true", "123", "1e3", "2001-12-14", "a:b", "null", "y", "", "a#b", "é"]
)
def test_the_top_owner_annotation_reads_back_as_text(name: str) -> None:
    body = decision_of(pod(name=name)).body
    assert body is not None
    stated = yaml.safe_load(body["metadata"]["annotations"]["kai.scheduler/top-owner-metadata"])
    assert stated == {"name": name, "uid": "u-p", "group": "", "version": "v1", "kind": "Pod"}
