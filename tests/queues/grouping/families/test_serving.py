"""Rules of serving and launching kinds that no manifest shows: Knative, Grove, and owners that are looked through."""

from __future__ import annotations

from typing import Any

import pytest

from queues.grouping.base import Settings
from tests.queues.grouping.offline.test_manifests import grouped, owners, specs, sub_groups
from tests.queues.grouping.owned_pods import (
    chain,
    decision_of,
    error_of,
    owner,
    pod,
    spec_of,
    stored_group,
)

Json = dict[str, Any]
REVISION = "serving.knative.dev/revision"
SCALE = "autoscaling.knative.dev/min-scale"
GANG = "grove.io/podgang"


def revision(**metadata: Any) -> Json:
    return owner("serving.knative.dev/v1", "Revision", name="rev", uid="u-rev", **metadata)


def served(**metadata: Any) -> Json:
    service = owner("serving.knative.dev/v1", "Service")
    labels = {REVISION: "rev", **metadata.pop("labels", {})}
    return pod(service, labels=labels, **metadata)


SERVICE = owner("serving.knative.dev/v1", "Service")


@pytest.mark.parametrize(
    ("annotations", "minimum"),
    [({}, 1), ({SCALE: "3"}, 3), ({SCALE: "0"}, 0), ({SCALE: "some"}, 1), ({SCALE: "-2"}, 1)],
)
def test_a_revisions_gang_is_its_minimum_scale(annotations: dict[str, str], minimum: int) -> None:
    spec = spec_of(served(), SERVICE, revision(annotations=annotations))
    assert spec == {
        "queue": "default-queue",
        "priorityClassName": "inference",
        "minMember": minimum,
    }


def test_a_revision_names_queue_and_class_and_nothing_of_when_or_where() -> None:
    silent = {
        "kai.scheduler/preemption-delay": "5m",
        "kai.scheduler/staleness-grace-period": "5m",
        "kai.scheduler/topology": "hall",
        "kai.scheduler/topology-required-placement": "rack",
    }
    labels = {"kai.scheduler/queue": "web", "priorityClassName": "build"}
    labels["kai.scheduler/preemptibility"] = "preemptible"
    rev = revision(annotations=silent, labels=labels)
    spec = spec_of(served(annotations=silent), SERVICE, rev)
    assert spec == {"queue": "web", "priorityClassName": "build", "minMember": 1}
    decision = decision_of(served(), SERVICE, rev, settings=Settings(knative_gang=False))
    assert decision.pod_group == "pg-p-u-p"
    assert decision.body is not None
    # One by one, the class is always inference.
    assert decision.body["spec"] == {
        "queue": "web",
        "priorityClassName": "inference",
        "minMember": 1,
    }
    assert decision.body["metadata"]["ownerReferences"][0]["kind"] == "Pod"


def grouped_pod(name: str, group: str) -> Json:
    annotations = {"pod-group-name": group}
    body = served(name=name, uid=f"u-{name}", annotations=annotations)
    return {"apiVersion": "v1", "kind": "Pod", **body}


@pytest.mark.parametrize(
    ("others", "groups", "name"),
    [
        ([], [], "pg-rev-u-rev"),
        ([("q", "pg-rev-u-rev")], [("pg-rev-u-rev", "Revision")], "pg-rev-u-rev"),
        ([("q", "pg-q")], [("pg-q", "Pod")], "pg-p-u-p"),
        ([("q", "pg-q"), ("r", "pg-r")], [], "pg-p-u-p"),
        # Two that share a group show a gang, also beside a pod of another group.
        ([("q", "pg-rev-u-rev"), ("r", "pg-rev-u-rev"), ("s", "pg-s")], [], "pg-rev-u-rev"),
        # The group that the pod names is gone: nothing says that they go one by one.
        ([("q", "pg-q")], [], "pg-rev-u-rev"),
    ],
)
def test_a_revision_whose_pods_went_one_by_one_goes_on_so(
    others: list[tuple[str, str]], groups: list[tuple[str, str]], name: str
) -> None:
    pods = [grouped_pod(*other) for other in others]
    existing_groups = [stored_group(group) for group, _ in groups]
    for body, (_, kind) in zip(existing_groups, groups, strict=True):
        body["metadata"]["ownerReferences"] = [{"kind": kind, "name": "x"}]
    assert decision_of(served(), SERVICE, revision(), *pods, *existing_groups).pod_group == name


def test_a_served_pod_needs_a_revision_that_exists() -> None:
    assert error_of(pod(SERVICE), SERVICE) == (f'pod lab/p missing required label "{REVISION}"')
    assert error_of(served(), SERVICE).startswith("failed to get Revision lab/rev: ")


def gang(spec: Json, **metadata: Any) -> Json:
    return {
        "apiVersion": "scheduler.grove.io/v1alpha1",
        "kind": "PodGang",
        "metadata": {"name": "g", "namespace": "lab", "uid": "u-g", **metadata},
        "spec": spec,
    }


def clique(kind: str = "PodCliqueSet", **metadata: Any) -> Json:
    return owner("grove.io/v1alpha1", kind, **metadata)


def podgroup(name: str, least: int = 1, **fields: Any) -> Json:
    return {"name": name, "minReplicas": least, **fields}


@pytest.mark.parametrize("kind", ["PodCliqueSet", "PodGangSet"])
def test_a_gang_takes_from_its_set_what_it_does_not_say_itself(kind: str) -> None:
    annotations = {"kai.scheduler/preemption-delay": "5m", "note": "set"}
    labels = {
        "kai.scheduler/queue": "web",
        "kai.scheduler/preemptibility": "Preemptible",
        "team": "set",
    }
    the_set = clique(kind, labels=labels, annotations=annotations)
    the_gang = gang({"podgroups": [podgroup("a", 2)]}, labels={"team": "gang"})
    decision = decision_of(pod(the_set, labels={GANG: "g"}), the_set, the_gang)
    assert decision.pod_group == "pg-g-u-g"
    assert decision.body is not None
    assert decision.body["metadata"]["labels"]["team"] == "gang"
    assert decision.body["metadata"]["annotations"]["note"] == "set"
    assert decision.body["spec"] == {
        "queue": "web",
        "priorityClassName": "train",
        "minMember": 2,
        "preemptibility": "preemptible",
        "preemptionDelay": "5m0s",
        "subGroups": [{"name": "a", "minMember": 2}],
    }


SAID_BY_ALL = ("kai.scheduler/queue", "project", "user")
GRACE = "kai.scheduler/staleness-grace-period"


@pytest.mark.parametrize("speakers", [("gang", "pod", "set"), ("pod", "set"), ("set",)])
@pytest.mark.parametrize("label", SAID_BY_ALL)
def test_queue_project_user_and_staleness_are_the_gangs_then_the_pods_then_the_sets(
    speakers: tuple[str, ...], label: str
) -> None:
    def words(speaker: str) -> Json:
        number = 1 + ["gang", "pod", "set"].index(speaker)
        if speaker not in speakers:
            return {}
        return {"labels": {label: f"of-{speaker}"}, "annotations": {GRACE: f"{number}m"}}

    the_set = clique(**words("set"))
    the_gang = gang({"podgroups": [podgroup("a")]}, **words("gang"))
    member = pod(the_set, **words("pod"))
    member["metadata"].setdefault("labels", {})[GANG] = "g"
    decision = decision_of(member, the_set, the_gang)
    assert decision.body is not None
    spec, first = decision.body["spec"], f"of-{speakers[0]}"
    minutes = 1 + ["gang", "pod", "set"].index(speakers[0])
    assert spec["stalenessGracePeriod"] == f"{minutes}m0s"
    if label == "user":
        assert decision.body["metadata"]["labels"]["user"] == first
    else:
        assert spec["queue"] == first


def test_a_sets_queue_does_not_beat_a_pods_project_or_a_gang_that_names_the_default_queue() -> None:
    the_set = clique(labels={"kai.scheduler/queue": "of-set"})
    the_gang = gang({"podgroups": [podgroup("a")]})
    member = pod(the_set, labels={GANG: "g", "project": "of-pod"})
    assert spec_of(member, the_set, the_gang)["queue"] == "of-pod"
    the_gang = gang({"podgroups": [podgroup("a")]}, labels={"kai.scheduler/queue": "default-queue"})
    assert spec_of(member, the_set, the_gang)["queue"] == "default-queue"


def test_a_topology_that_grove_names_is_the_roots_only_where_the_root_packs() -> None:
    name = {"grove.io/topology-name": "hall"}
    pack = {"topologyConstraint": {"packConstraint": {"required": "rack"}}}
    member = pod(clique(), labels={GANG: "g"})
    below = spec_of(
        member, clique(), gang({"podgroups": [podgroup("a", **pack)]}, annotations=name)
    )
    assert "topologyConstraint" not in below
    leaf = {"topology": "hall", "requiredTopologyLevel": "rack"}
    assert below["subGroups"][0]["topologyConstraint"] == leaf
    root = spec_of(member, clique(), gang({"podgroups": [podgroup("a")], **pack}, annotations=name))
    assert root["topologyConstraint"] == leaf
    annotated = clique(annotations={"kai.scheduler/topology": "yard"})
    spec = spec_of(member, annotated, gang({"podgroups": [podgroup("a")]}, annotations=name))
    assert spec["topologyConstraint"] == {"topology": "yard"}


def test_a_gangs_class_replaces_the_base_and_a_label_replaces_that_unchecked() -> None:
    the_gang = gang({"podgroups": [podgroup("a")], "priorityClassName": "no-such"})
    member = pod(clique(), labels={GANG: "g"})
    assert spec_of(member, clique(), the_gang)["priorityClassName"] == "no-such"
    labelled = clique(labels={"priorityClassName": "neither"})
    assert spec_of(member, labelled, the_gang)["priorityClassName"] == "neither"


def test_a_gangs_place_is_its_own_and_blanks_are_filled_by_annotations() -> None:
    pack = {"topologyConstraint": {"packConstraint": {"required": "block"}}}
    the_set = clique(
        annotations={
            "kai.scheduler/topology": "yard",
            "kai.scheduler/topology-required-placement": "row",
            "kai.scheduler/topology-preferred-placement": "rack",
        }
    )
    member = pod(the_set, labels={GANG: "g"})

    def place(**annotations: str) -> Any:
        the_gang = gang({"podgroups": [podgroup("a", **pack)], **pack}, annotations=annotations)
        spec = spec_of(member, the_set, the_gang)
        return spec["topologyConstraint"], spec["subGroups"][0]["topologyConstraint"]

    block = {"requiredTopologyLevel": "block"}
    assert place() == (
        {"topology": "yard", **block, "preferredTopologyLevel": "rack"},
        {"topology": "yard", **block},
    )
    assert place(**{"grove.io/topology-name": "hall"})[1] == {"topology": "hall", **block}


def test_parents_count_their_names_and_one_without_names_is_left_out() -> None:
    configs = [{"name": "both", "podGroupNames": ["a", "b"]}, {"name": "none", "podGroupNames": []}]
    groups = [podgroup("a"), podgroup("b", 3), podgroup("c")]
    the_gang = gang({"podgroups": groups, "topologyConstraintGroupConfigs": configs})
    spec = spec_of(pod(clique(), labels={GANG: "g"}), clique(), the_gang)
    assert spec["minMember"] == 5
    assert spec["subGroups"] == [
        {"name": "both", "minSubGroup": 2},
        {"name": "a", "minMember": 1, "parent": "both"},
        {"name": "b", "minMember": 3, "parent": "both"},
        {"name": "c", "minMember": 1},
    ]


def test_a_gang_that_is_missing_or_asks_for_nothing_is_an_error() -> None:
    member = pod(clique(), labels={GANG: "g"})
    assert error_of(member, clique()).startswith("failed to get PodGang lab/g: ")
    assert error_of(member, clique(), gang({"podgroups": [podgroup("a", 0)]})) == (
        "PodGang lab/g: minReplicas of podgroup a must be greater than 0, got 0"
    )


def test_a_pod_finds_its_part_by_name() -> None:
    references = [{"namespace": "lab", "name": "x"}, {"name": "p"}]
    the_gang = gang({"podgroups": [podgroup("a"), podgroup("b", podReferences=references)]})
    assert decision_of(pod(clique(), labels={GANG: "g"}), clique(), the_gang).sub_group == "b"
    other = pod(clique(), name="y", labels={GANG: "g"})
    assert decision_of(other, clique(), the_gang).sub_group == ""


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        ("argoproj.io/v1alpha1", "Workflow"),
        ("trainer.kubeflow.org/v1alpha1", "TrainJob"),
        ("nvidia.com/v7", "DynamoGraphDeployment"),
        ("run.ai/v2alpha1", "TrainingWorkload"),
        ("run.ai/v1", "InteractiveWorkload"),
        ("run.ai/v1", "DistributedWorkload"),
        ("run.ai/v1", "InferenceWorkload"),
        ("run.ai/v3", "DistributedInferenceWorkload"),
        ("workload.codeflare.dev/v1beta2", "AppWrapper"),
    ],
)
def test_launchers_are_looked_through(api_version: str, kind: str) -> None:
    launcher = owner(
        api_version, kind,
        labels={"kai.scheduler/queue": "q", "team": "above"},
        annotations={"kai.scheduler/staleness-grace-period": "1m"},
    )  # fmt: skip
    alone = decision_of(pod(launcher, labels={"team": "pod"}), launcher)
    assert alone.pod_group == "pg-p-u-p"
    assert alone.body is not None
    assert alone.body["metadata"]["labels"] == {"kai.scheduler/queue": "q", "team": "pod"}
    spec = {"pytorchReplicaSpecs": {"Worker": {"replicas": 3}}}
    job = owner("kubeflow.org/v1", "PyTorchJob", spec, name="j", uid="u-j", labels={"team": "job"})
    below = decision_of(chain(job, launcher), job, launcher)
    assert below.pod_group == "pg-j-u-j"
    assert below.body is not None
    assert below.body["metadata"]["labels"] == {"kai.scheduler/queue": "q", "team": "job"}
    assert below.body["spec"] == {
        "queue": "q",
        "priorityClassName": "train",
        "minMember": 3,
        "stalenessGracePeriod": "1m0s",
        "subGroups": [{"name": "worker", "minMember": 3}],
    }
    # What is written down in memory stays in memory.
    assert job["metadata"]["labels"] == {"team": "job"}


def test_a_deployment_below_a_launcher_serves_pod_by_pod() -> None:
    graph = owner(
        "nvidia.com/v1alpha1", "DynamoGraphDeployment", labels={"kai.scheduler/queue": "q"}
    )
    deployment = owner("apps/v1", "Deployment", name="d", uid="u-d")
    replicas = owner("apps/v1", "ReplicaSet", name="r", uid="u-r")
    decision = decision_of(chain(replicas, deployment, graph), replicas, deployment, graph)
    assert decision.pod_group == "pg-p-u-p"
    assert decision.body is not None
    assert decision.body["spec"] == {"queue": "q", "priorityClassName": "inference", "minMember": 1}


def test_a_dynamo_graph_of_any_version_is_looked_through() -> None:
    report = grouped("dynamo.yaml")
    by_name = specs(report)
    assert by_name["pg-pairs-u-pairs-group-0"] == {
        "queue": "own",
        "priorityClassName": "train",
        "minMember": 2,
        "preemptionDelay": "2m0s",
        "subGroups": [{"name": "leader", "minMember": 1}, {"name": "workers", "minMember": 1}],
    }
    (gang,) = [name for name in by_name if name.startswith("pg-split-0-")]
    assert (by_name[gang]["queue"], sub_groups(by_name[gang])) == (
        "web",
        [("prefill", "", 1), ("decode", "", 1)],
    )
    assert owners(report)[gang] == "PodGang/split-0"
    alone = [name for name in by_name if name.startswith("pg-later-decode-")]
    assert len(alone) == 2
    for name in alone:
        assert by_name[name] == {
            "queue": "optics",
            "priorityClassName": "inference",
            "minMember": 1,
        }
    metadata = {g["metadata"]["name"]: g["metadata"] for g in report.pod_groups}
    assert metadata["pg-pairs-u-pairs-group-0"]["labels"] == {
        "kai.scheduler/queue": "own",
        "team": "lynx",
    }
    assert metadata["pg-pairs-u-pairs-group-0"]["annotations"]["note"] == "from-the-graph"
    assert metadata[gang]["labels"]["team"] == "lynx"
    assert metadata[gang]["annotations"]["note"] == "its-own"
