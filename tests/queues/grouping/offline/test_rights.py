"""Offline and in a cluster the walk ends at the same owner: what the role covers, what a file grants, what is missing."""

from __future__ import annotations

import pytest

from queues.grouping.base import Settings
from queues.grouping.offline.manifests import parse_manifests
from queues.grouping.offline.report import GroupReport, group_objects

OPERATOR = """
{apiVersion: example.test/v1, kind: Operator, metadata: {name: o, uid: u-o, labels: {kai.scheduler/queue: above}}}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: j
  uid: u-j
  ownerReferences: [{apiVersion: example.test/v1, kind: Operator, name: o, uid: u-o}]
spec: {template: {spec: {schedulerName: kai-scheduler}}}
"""
GRANT = """
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: more}, rules: [
  {apiGroups: [example.test], resources: [RESOURCE], verbs: [get, list, watch]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: more},
  roleRef: {kind: ClusterRole, name: more}, subjects: [{kind: ServiceAccount, name: ACCOUNT, namespace: kai-scheduler}]}
"""


def report_of(text: str) -> GroupReport:
    return group_objects(parse_manifests(text, "test"), Settings())


def names(report: GroupReport) -> list[str]:
    return [group["metadata"]["name"] for group in report.pod_groups]


def test_below_an_owner_that_the_role_does_not_cover_the_next_one_groups_and_a_note_says_so() -> (
    None
):
    report = report_of(OPERATOR)
    assert names(report) == ["pg-j-u-j"]
    assert report.pod_groups[0]["spec"]["queue"] == "default-queue"
    assert report.notes == {
        "Operator default/o": "the role of the pod grouper does not cover this kind: its pods are grouped by the owner "
        "below it, until a ClusterRole bound to the account pod-grouper lets it be read"
    }


@pytest.mark.parametrize(
    ("resource", "account", "group"),
    [
        ("operators", "pod-grouper", "pg-o-u-o"),
        ('"*"', "pod-grouper", "pg-o-u-o"),
        ("operators", "binder", "pg-j-u-j"),
        ("others", "pod-grouper", "pg-j-u-j"),
    ],
)
def test_a_role_among_the_files_lets_the_owner_be_read(
    resource: str, account: str, group: str
) -> None:
    grant = GRANT.replace("RESOURCE", resource).replace("ACCOUNT", account)
    assert names(report_of(OPERATOR + grant)) == [group]


def test_a_kind_outside_the_role_that_owns_pods_itself_is_shown_as_it_would_be_with_a_role() -> (
    None
):
    report = report_of(
        "{apiVersion: example.test/v1, kind: Gadget, metadata: {name: g, uid: u-g}, "
        "spec: {replicas: 2, template: {spec: {schedulerName: kai-scheduler, containers: [{name: c}]}}}}"
    )
    assert names(report) == ["pg-g-u-g"]
    assert report.notes == {
        "Gadget default/g": "the role of the pod grouper does not cover this kind: each pod of it gets a group of its "
        "own, until a ClusterRole bound to the account pod-grouper lets it be read"
    }


def test_a_missing_owner_of_a_kind_beyond_kai_is_named() -> None:
    report = report_of(
        "{apiVersion: v1, kind: Pod, metadata: {name: p, uid: u-p, ownerReferences: "
        "[{apiVersion: sparkoperator.k8s.io/v1beta2, kind: SparkApplication, name: s, uid: u-s}]}, "
        "spec: {schedulerName: kai-scheduler}}"
    )
    assert names(report) == ["pg-p-u-p"]
    assert report.notes == {
        "SparkApplication default/s": "Pod default/p names it as its owner, but it is not in these files: what it says "
        "about the pod group is not known"
    }


def test_a_virtual_machine_groups_its_instance_under_its_own_queue_and_name() -> None:
    machine = (
        "{apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {name: vm, uid: u-vm, "
        "labels: {kai.scheduler/queue: bio}}, spec: {STATE, template: {spec: {schedulerName: kai-scheduler}}}}"
    )
    report = report_of(machine.replace("STATE", "runStrategy: Always"))
    assert names(report) == ["pg-vm-u-vm"]
    assert report.pod_groups[0]["spec"]["queue"] == "bio"
    assert names(report_of(machine.replace("STATE", "runStrategy: Halted"))) == []
