"""The rules under all rules: who is asked first about queue, priority, preemptibility, the two delays and topology."""

from __future__ import annotations

from typing import Any

import pytest

from queues.grouping.base import Kind, KindDefault, Settings
from queues.grouping.engine.reconcile import GroupingDecision, decide
from queues.grouping.engine.table import BEYOND_KAI, KAI, TABLE, select_grouper
from queues.grouping.metadata import parse_kind_defaults
from tests.queues.grouping.owned_pods import (
    chain,
    decision_of,
    error_of,
    file_cluster,
    owner,
    pod,
    spec_of,
    stored_group,
)

Json = dict[str, Any]
DELAY = "kai.scheduler/preemption-delay"
MAX_RUN_TIME, REQUEUE_DELAY = "kaiweb.dev/max-run-time", "kaiweb.dev/requeue-delay"
GRACE = "kai.scheduler/staleness-grace-period"
PREEMPTIBILITY = "kai.scheduler/preemptibility"


def body_of(decision: GroupingDecision) -> Json:
    assert decision.body is not None
    return decision.body


def with_defaults(the_pod: Json, defaults: dict[str, KindDefault], *objects: Json) -> Json:
    cluster = file_cluster(*objects)
    cluster.defaults = defaults
    return dict(body_of(decide(the_pod, cluster, Settings()))["spec"])


@pytest.mark.parametrize(
    ("owner_labels", "pod_labels", "queue"),
    [
        ({"kai.scheduler/queue": "o", "project": "x"}, {"kai.scheduler/queue": "p"}, "o"),
        ({"project": "x"}, {"kai.scheduler/queue": "p"}, "p"),
        ({"project": "x"}, {"project": "y"}, "x"),
        ({"project": "x"}, {"kai.scheduler/node-pool": "a100"}, "x-a100"),
        ({}, {"project": "y", "kai.scheduler/node-pool": "a100"}, "y-a100"),
        ({"kai.scheduler/node-pool": "a100"}, {"project": "y"}, "y"),
        ({}, {}, "default-queue"),
    ],
)
def test_the_queue_is_the_owners_then_the_pods_then_their_project(
    owner_labels: dict[str, str], pod_labels: dict[str, str], queue: str
) -> None:
    job = owner("batch/v1", "Job", labels=owner_labels)
    assert spec_of(pod(job, labels=pod_labels), job)["queue"] == queue


def test_only_the_default_rule_listens_to_the_whole_chain() -> None:
    words = {"priorityClassName": "build", PREEMPTIBILITY: "preemptible"}
    delays = {DELAY: "1m", GRACE: "2m"}
    middle = {"name": "mid", "uid": "u-mid", "labels": words, "annotations": delays}
    loud = {
        "priorityClassName": "build",
        "preemptibility": "preemptible",
        "preemptionDelay": "1m0s",
        "stalenessGracePeriod": "2m0s",
    }
    scheduled = owner("kubeflow.org/v1alpha1", "ScheduledWorkflow")
    flow = owner("argoproj.io/v1alpha1", "Workflow", **middle)
    spec = spec_of(chain(flow, scheduled), flow, scheduled)
    assert spec == {"queue": "default-queue", "minMember": 1, **loud}
    book = owner("kubeflow.org/v1beta1", "Notebook")
    the_set = owner("apps/v1", "StatefulSet", **middle)
    spec = spec_of(chain(the_set, book), the_set, book)
    assert spec == {"queue": "default-queue", "minMember": 1, "priorityClassName": "build"}


def test_labels_of_the_nearest_owner_win_and_the_pods_come_last() -> None:
    top = owner(
        "kubeflow.org/v1alpha1", "ScheduledWorkflow", labels={"priorityClassName": "inference"}
    )
    near = owner(
        "apps/v1", "StatefulSet", name="mid", uid="u-mid", labels={"priorityClassName": "build"}
    )
    the_pod = chain(near, top)
    assert spec_of(the_pod, near, top)["priorityClassName"] == "build"
    near["metadata"]["labels"] = {}
    assert spec_of(the_pod, near, top)["priorityClassName"] == "inference"
    # A pod's word counts for the first owner that is silent.
    the_pod["metadata"]["labels"] = {"priorityClassName": "build-preemptible"}
    assert spec_of(the_pod, near, top)["priorityClassName"] == "build-preemptible"
    the_pod["metadata"]["labels"] = {}
    the_pod["spec"]["priorityClassName"] = "build"
    assert spec_of(the_pod, near, top)["priorityClassName"] == "build"
    # One that does not exist is passed over.
    near["metadata"]["labels"] = {"priorityClassName": "no-such"}
    assert spec_of(the_pod, near, top)["priorityClassName"] == "inference"


def test_a_maximum_run_time_comes_from_the_top_owner_else_from_the_pod() -> None:
    job = owner("batch/v1", "Job", annotations={MAX_RUN_TIME: "2h"})
    the_pod = pod(job, annotations={MAX_RUN_TIME: "9h", REQUEUE_DELAY: "5m"})
    carried = body_of(decide(the_pod, file_cluster(job), Settings()))["metadata"]["annotations"]
    assert (carried[MAX_RUN_TIME], carried[REQUEUE_DELAY]) == ("2h", "5m")


def test_semi_preemptible_is_a_preemptibility() -> None:
    job = owner("batch/v1", "Job", labels={PREEMPTIBILITY: "semi-preemptible"})
    assert spec_of(pod(job), job)["preemptibility"] == "semi-preemptible"


def test_unknown_values_and_bad_delays_fall_through_to_the_next_source() -> None:
    job = owner(
        "batch/v1", "Job", labels={PREEMPTIBILITY: "often"}, annotations={DELAY: "300", GRACE: "x"}
    )
    the_pod = pod(
        job, labels={PREEMPTIBILITY: "Non-Preemptible"}, annotations={DELAY: "90s", GRACE: "-1s"}
    )
    spec = spec_of(the_pod, job)
    assert (spec["preemptibility"], spec["preemptionDelay"], spec["stalenessGracePeriod"]) == (
        "non-preemptible",
        "1m30s",
        "-1s",
    )
    the_pod["metadata"]["annotations"] = {DELAY: "-5m"}
    the_pod["metadata"]["labels"] = {}
    spec = spec_of(the_pod, job)
    assert not {"preemptibility", "preemptionDelay", "stalenessGracePeriod"} & set(spec)


def test_the_user_is_the_owners_else_the_pods() -> None:
    job = owner("batch/v1", "Job", labels={"user": "ada"}, annotations={"note": "1"})
    the_pod = pod(job, labels={"user": "bo", "own": "x"}, annotations={"user": "bo", "own": "x"})
    metadata = body_of(decision_of(the_pod, job))["metadata"]
    assert metadata["labels"] == {"user": "ada"}
    assert set(metadata["annotations"]) == {"user", "note", "kai.scheduler/top-owner-metadata"}
    assert metadata["annotations"]["user"] == "bo"
    job["metadata"]["labels"] = {}
    job["metadata"]["annotations"] = {"user": "cy"}
    metadata = body_of(decision_of(the_pod, job))["metadata"]
    assert (metadata["labels"], metadata["annotations"]["user"]) == ({"user": "bo"}, "cy")


def test_the_groups_owner_is_no_controller_and_the_pool_comes_from_the_pod() -> None:
    job = owner("batch/v1", "Job")
    pool = "kai.scheduler/node-pool"
    metadata = body_of(decision_of(pod(job, labels={pool: "a"}), job))["metadata"]
    assert metadata["ownerReferences"] == [
        {"apiVersion": "batch/v1", "kind": "Job", "name": "own", "uid": "u-own"}
    ]
    assert metadata["labels"] == {pool: "a"}
    job["metadata"]["labels"] = {pool: "b"}
    assert body_of(decision_of(pod(job, labels={pool: "a"}), job))["metadata"]["labels"] == {
        pool: "b"
    }
    no_pools = Settings(node_pool_label="")
    decision = decision_of(pod(job, labels={pool: "a"}), job, settings=no_pools)
    assert body_of(decision)["metadata"]["labels"] == {pool: "b"}


def test_defaults_per_kind_go_by_kind_and_group_then_kind_and_lose_to_labels() -> None:
    defaults = parse_kind_defaults(
        {
            "data": {
                "types": '[{"typeName": "Job", "priorityName": "build"},'
                '{"typeName": "Job", "group": "batch", "priorityName": "build-preemptible", "preemptibility": "PREEMPTIBLE"},'
                '{"typeName": "Pod", "priorityName": "inference", "preemptibility": "sometimes"}, 7, {}]'
            }
        }
    )
    job = owner("batch/v1", "Job")
    assert with_defaults(pod(job), defaults, job) == {
        "queue": "default-queue",
        "priorityClassName": "build-preemptible",
        "minMember": 1,
        "preemptibility": "preemptible",
    }
    labelled = pod(
        job, labels={"priorityClassName": "inference", PREEMPTIBILITY: "non-preemptible"}
    )
    spec = with_defaults(labelled, defaults, job)
    assert (spec["priorityClassName"], spec["preemptibility"]) == ("inference", "non-preemptible")
    spec = with_defaults(pod(), defaults)
    assert spec == {"queue": "default-queue", "priorityClassName": "inference", "minMember": 1}
    volcano = owner("batch.volcano.sh/v1alpha1", "Job")
    assert with_defaults(pod(volcano), defaults, volcano)["priorityClassName"] == "build"


def test_an_empty_or_unknown_default_of_one_kind_asks_the_next_kind() -> None:
    top = owner("kubeflow.org/v1alpha1", "ScheduledWorkflow")
    near = owner("apps/v1", "StatefulSet", name="mid", uid="u-mid")
    for word in ("", "sometimes"):
        defaults = {
            "StatefulSet": KindDefault(priority_class="no-such", preemptibility=word),
            "ScheduledWorkflow": KindDefault(
                priority_class="build", preemptibility="non-preemptible"
            ),
        }
        spec = with_defaults(chain(near, top), defaults, near, top)
        assert (spec["priorityClassName"], spec["preemptibility"]) == ("build", "non-preemptible")


def test_a_deployment_speaks_for_the_groups_of_its_pods() -> None:
    deployment = owner(
        "apps/v1",
        "Deployment",
        labels={"kai.scheduler/queue": "web", PREEMPTIBILITY: "preemptible"},
        annotations={
            "kai.scheduler/topology": "hall",
            "kai.scheduler/topology-required-placement": "rack",
        },
    )
    replicas = owner("apps/v1", "ReplicaSet", name="rs", uid="u-rs")
    body = body_of(decision_of(chain(replicas, deployment), replicas, deployment))
    assert body["metadata"]["name"] == "pg-p-u-p"
    assert body["metadata"]["ownerReferences"][0]["kind"] == "Pod"
    assert body["spec"] == {
        "queue": "web",
        "priorityClassName": "inference",
        "minMember": 1,
        "preemptibility": "preemptible",
        "topologyConstraint": {"topology": "hall", "requiredTopologyLevel": "rack"},
    }


def test_a_runs_gang_annotation_counts_for_a_job_alone_and_not_for_a_cron_jobs() -> None:
    gang = {"kai.scheduler/batch-min-member": "3"}
    job = owner("batch/v1", "Job", name="j", uid="u-j", annotations=gang)
    assert spec_of(pod(job), job)["minMember"] == 3
    cron = owner("batch/v1", "CronJob")
    decision = decision_of(chain(job, cron), job, cron)
    assert decision.pod_group == "pg-j-u-j"
    assert body_of(decision)["spec"]["minMember"] == 1
    between = owner("example.test/v1", "Between", name="b", uid="u-b")
    assert error_of(chain(between, job, cron), between, job, cron) == (
        "no owner reference of type 'Job'"
    )


@pytest.mark.parametrize("text", ["", " 3", "3.0", "-1", "2147483648", "0x3", "٣"])
def test_a_gang_annotation_that_is_no_whole_number_groups_no_pod(text: str) -> None:
    job = owner("batch/v1", "Job", annotations={"kai.scheduler/batch-min-member": text})
    assert error_of(pod(job), job).startswith("invalid min-member annotation value: ")


def test_runai_jobs_are_named_after_the_pod_without_its_last_part_and_keep_older_names() -> None:
    job = owner("run.ai/v1", "RunaiJob")

    def named(*groups: str, name: str = "own-2-7", **settings: Any) -> str:
        existing_groups = [stored_group(group) for group in groups]
        return decision_of(
            pod(job, name=name), job, *existing_groups, settings=Settings(**settings)
        ).pod_group

    assert named() == "pg-own-2-u-own"
    assert named(name="plain") == "pg-plain-u-own"
    assert named("pg-own-u-own") == "pg-own-u-own"
    assert named("pg-own-2-7-u-own") == "pg-own-2-7-u-own"
    assert named("pg-own-u-own", search_legacy=False) == "pg-own-2-u-own"


def test_an_aml_job_needs_its_node_count() -> None:
    job = owner("amlarc.azureml.com/v1alpha1", "AmlJob")
    assert error_of(pod(job), job) == (
        "AmlJob own: spec.job.options.envs.AZUREML_NODE_COUNT must be a whole number, got None"
    )


def test_an_exact_version_comes_before_any_version_before_karta_and_the_base_rules() -> None:
    def chosen(group: str, version: str, kind: str, **settings: Any) -> str:
        grouper = select_grouper(
            Kind(group=group, version=version, kind=kind), Settings(**settings)
        )
        return getattr(grouper, "__name__", "")

    assert chosen("nvidia.com", "v9", "DynamoGraphDeployment") == "skip_top_owner_grouper"
    assert chosen("run.ai", "v2alpha1", "TrainingWorkload") == "skip_top_owner_grouper"
    assert chosen("run.ai", "v2", "RunaiJob") == "karta_grouper"
    assert chosen("kubeflow.org", "v2", "TFJob") == "karta_grouper"
    assert chosen("example.test", "v1", "Any") == "karta_grouper"
    assert chosen("example.test", "v1", "Any", karta_fallback=False) == "_default"


def test_a_skipped_owners_child_is_grouped_by_its_own_kind_only_in_the_version_that_is_known() -> (
    None
):
    flow = owner("argoproj.io/v1alpha1", "Workflow")
    spec = {"tfReplicaSpecs": {"Worker": {"replicas": 2}}}
    known = owner("kubeflow.org/v1", "TFJob", spec, name="tf", uid="u-tf")
    assert spec_of(chain(known, flow), known, flow)["minMember"] == 2
    newer = owner("kubeflow.org/v2", "TFJob", spec, name="tf", uid="u-tf")
    assert spec_of(chain(newer, flow), newer, flow)["minMember"] == 1


def test_kais_kinds_and_ours_do_not_overlap() -> None:
    assert not set(KAI) & set(BEYOND_KAI)
    assert len(TABLE) == len(KAI) + len(BEYOND_KAI) == 42 + 5
