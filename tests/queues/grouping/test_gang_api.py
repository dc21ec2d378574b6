"""Pods that name a Workload or PodGroup of `scheduling.k8s.io` are grouped by it, without a label of ours."""

from __future__ import annotations

from typing import Any

import pytest

from queues.grouping.base import Settings
from queues.grouping.engine.reconcile import Skip, decide
from queues.grouping.errors import GangMissingError
from queues.grouping.offline.file_cluster import FileCluster
from tests.queues.grouping.owned_pods import (
    decision_of,
    error_of,
    file_cluster,
    owner,
    pod,
    stored_group,
)

BASIC: dict[str, Any] = {"basic": {}}


def gang(size: Any) -> dict[str, Any]:
    return {"gang": {"minCount": size}}


def workload(name: str = "training", **policies: dict[str, Any]) -> dict[str, Any]:
    groups = [{"name": group, "policy": policy} for group, policy in policies.items()]
    body = owner("scheduling.k8s.io/v1alpha1", "Workload", {"podGroups": groups})
    body["metadata"] |= {"name": name, "uid": f"u-{name}"}
    return body


def upstream_pod_group(**spec: Any) -> dict[str, Any]:
    body = owner("scheduling.k8s.io/v1alpha2", "PodGroup", spec)
    body["metadata"] |= {"name": "replica-3", "uid": "u-replica-3"}
    return body


def member(
    *owners: dict[str, Any], of: str = "training", part: str = "workers", key: str = "", **meta: Any
) -> dict[str, Any]:
    body = pod(*owners, **meta)
    body["spec"]["workloadRef"] = {"name": of, "podGroup": part}
    if key:
        body["spec"]["workloadRef"]["podGroupReplicaKey"] = key
    return body


def body_of(the_pod: dict[str, Any], *objects: dict[str, Any]) -> dict[str, Any]:
    body = decision_of(the_pod, *objects).body
    assert body is not None
    return body


def test_the_gang_size_of_a_workload_is_the_minimum_of_its_pod_group() -> None:
    body = body_of(member(), workload(workers=gang(4)))
    assert body["metadata"]["name"] == "training-workers"
    assert body["spec"] == {
        "queue": "default-queue",
        "priorityClassName": "train",
        "minMember": 4,
    }
    assert body["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "scheduling.k8s.io/v1alpha1",
            "kind": "Workload",
            "name": "training",
            "uid": "u-training",
        }
    ]


def test_each_replica_key_of_a_gang_is_a_pod_group_of_its_own() -> None:
    objects = workload(workers=gang(2))
    names = [decision_of(member(key=key), objects).pod_group for key in ("0", "1", "")]
    assert names == ["training-workers-0", "training-workers-1", "training-workers"]


def test_pods_under_the_basic_policy_start_one_by_one_in_one_pod_group() -> None:
    objects = workload(workers=BASIC)
    first, second = (body_of(member(key=key), objects) for key in ("0", "1"))
    assert first == second
    assert (first["metadata"]["name"], first["spec"]["minMember"]) == ("training-workers", 1)


def test_pod_groups_of_one_workload_start_independently() -> None:
    objects = workload(driver=gang(1), workers=gang(4))
    bodies = [body_of(member(part=part), objects) for part in ("driver", "workers")]
    assert [body["metadata"]["name"] for body in bodies] == ["training-driver", "training-workers"]
    assert [body["spec"]["minMember"] for body in bodies] == [1, 4]
    assert all("subGroups" not in body["spec"] for body in bodies)


def test_all_pods_without_owners_agree_on_the_pod_group_of_their_gang() -> None:
    objects = workload(workers=gang(2))
    first = member(name="a", uid="u-a", labels={"app": "x"}, annotations={"note": "1"})
    second = member(name="b", uid="u-b", labels={"app": "y"}, annotations={"note": "2"})
    assert body_of(first, objects) == body_of(second, objects)


def test_what_the_gang_does_not_state_comes_from_the_owner() -> None:
    labels = {"kai.scheduler/queue": "of-job", "priorityClassName": "build"}
    job = owner("batch/v1", "Job", labels=labels)
    job["metadata"]["annotations"] = {
        "kai.scheduler/batch-min-member": "9",
        "kai.scheduler/topology": "racks",
        "kai.scheduler/topology-required-placement": "rack",
    }
    body = body_of(member(job), job, workload(workers=gang(2)))
    assert body["spec"] == {
        "queue": "of-job",
        "priorityClassName": "build",
        "minMember": 2,
        "topologyConstraint": {"topology": "racks", "requiredTopologyLevel": "rack"},
    }
    assert body["metadata"]["ownerReferences"][0]["kind"] == "Job"


def test_labels_of_the_gang_win_over_those_of_the_owner() -> None:
    job = owner("batch/v1", "Job", labels={"kai.scheduler/queue": "of-job"})
    objects = workload(workers=gang(2))
    objects["metadata"]["labels"] = {
        "kai.scheduler/queue": "of-workload",
        "kai.scheduler/preemptibility": "non-preemptible",
        "priorityClassName": "inference",
    }
    spec = body_of(member(job), job, objects)["spec"]
    assert (spec["queue"], spec["preemptibility"], spec["priorityClassName"]) == (
        "of-workload",
        "non-preemptible",
        "inference",
    )


def test_the_subgroups_of_the_owners_rule_give_way_to_the_gang() -> None:
    template = {"metadata": {"annotations": {"kai.scheduler/segment-size": "2"}}}
    replicas = {"Worker": {"replicas": 4, "template": template}}
    job = owner("kubeflow.org/v1", "PyTorchJob", {"pytorchReplicaSpecs": replicas})
    decision = decision_of(member(job), job, workload(workers=gang(3)))
    assert decision.body is not None
    assert decision.sub_group == ""
    assert decision.body["spec"]["minMember"] == 3
    assert "subGroups" not in decision.body["spec"]


def test_a_pod_group_of_kubernetes_gives_name_size_and_priority() -> None:
    the_pod = pod()
    the_pod["spec"]["schedulingGroup"] = {"podGroupName": "replica-3"}
    body = body_of(
        the_pod, upstream_pod_group(schedulingPolicy=gang(8), priorityClassName="inference")
    )
    assert body["metadata"]["name"] == "replica-3"
    assert body["spec"]["minMember"] == 8
    assert body["spec"]["priorityClassName"] == "inference"


@pytest.mark.parametrize("where", ["pod", "owner"])
def test_an_annotation_on_pod_or_top_owner_opts_out(where: str) -> None:
    job = owner("batch/v1", "Job")
    the_pod = member(job)
    target = the_pod if where == "pod" else job
    target["metadata"]["annotations"] = {"kai.scheduler/ignore-workload-api": "true"}
    assert decision_of(the_pod, job, workload(workers=gang(2))).pod_group == "pg-own-u-own"


def test_where_the_api_is_not_served_the_field_changes_nothing() -> None:
    class WithoutGangs(FileCluster):
        def serves_gangs(self, kind: str) -> bool:
            return False

    with_field = decide(member(), WithoutGangs(), Settings())
    assert with_field == decision_of(pod())


def test_a_pod_whose_gang_is_missing_waits_for_it() -> None:
    with pytest.raises(GangMissingError) as missing:
        decision_of(member())
    assert str(missing.value) == (
        "Workload lab/training, which the pod names, does not exist; the pod waits for it"
    )
    assert error_of(member(part="ps"), workload(workers=gang(2))) == (
        "Workload lab/training, which the pod names, has no pod group 'ps'"
    )


def test_a_pod_stays_in_its_pod_group_when_the_workload_is_deleted() -> None:
    the_pod = member(annotations={"pod-group-name": "training-workers"})
    decision = decide(the_pod, file_cluster(stored_group("training-workers")), Settings())
    assert decision.skip is Skip.GANG_GONE


def test_a_leaving_pod_without_its_gang_is_no_error() -> None:
    leaving = member(deletionTimestamp="2026-01-01T00:00:00Z")
    assert decision_of(leaving).skip is Skip.LEAVING


def test_a_pod_that_somebody_put_into_a_pod_group_stays_there() -> None:
    the_pod = member(annotations={"pod-group-name": "by-hand"})
    assert decision_of(the_pod, workload(workers=gang(2))).skip is Skip.GROUPED


def test_a_grown_gang_reaches_pods_that_are_already_grouped() -> None:
    the_pod = member(annotations={"pod-group-name": "training-workers"})
    assert body_of(the_pod, workload(workers=gang(5)))["spec"]["minMember"] == 5


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (
            -1,
            "Workload lab/training: policy.gang.minCount must be between 0 and 2147483647, got -1",
        ),
        ("two", "Workload lab/training: policy.gang.minCount must be a whole number, got 'two'"),
    ],
)
def test_a_size_that_is_none_is_an_error(size: Any, text: str) -> None:
    assert error_of(member(), workload(workers=gang(size))) == text


def test_two_gangs_whose_names_meet_are_not_merged() -> None:
    cluster = file_cluster(workload("a", **{"b-c": gang(2)}), workload("a-b", c=gang(3)))
    first = decide(member(of="a", part="b-c"), cluster, Settings()).body
    assert first is not None
    cluster.add(first)
    text = "Workload lab/a-b needs the pod group a-b-c, which belongs to Workload/a/b-c; rename one of them"
    with pytest.raises(Exception, match=text):
        decide(member(of="a-b", part="c"), cluster, Settings())
    cluster.add(stored_group("training-workers"))
    cluster.add(workload(workers=gang(2)))
    with pytest.raises(Exception, match="which belongs to somebody else"):
        decide(member(), cluster, Settings())
