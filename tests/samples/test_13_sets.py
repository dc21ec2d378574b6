"""Sample 13: a StatefulSet, and a ReplicaSet without a Deployment, are one group each."""

from __future__ import annotations

import json

import pytest

from kube.resources import REPLICASETS, STATEFULSETS, Resource
from tests.samples.sample import Sample

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def vault(sample: Sample) -> Sample:
    sample.apply("13-sets.yaml")
    return sample


@pytest.mark.parametrize(
    ("kind", "name", "pods"), [(STATEFULSETS, "drawers", 2), (REPLICASETS, "twins", 2)]
)
def test_a_set_is_one_group_for_all_its_pods(
    vault: Sample, kind: Resource, name: str, pods: int
) -> None:
    bound = vault.wait_bound(name, count=pods)
    group = vault.pod_group_of(name)
    assert group["metadata"]["name"] == f"pg-{name}-{vault.get(kind, name)['metadata']['uid']}"
    spec = group["spec"]
    stated = (spec["queue"], spec["priorityClassName"], spec["minMember"])
    assert stated == ("s13-vault", "train", 1)
    named = {pod["metadata"]["annotations"]["pod-group-name"] for pod in bound}
    assert named == {group["metadata"]["name"]}


def test_above_one_pod_the_group_grows_as_there_is_room(vault: Sample) -> None:
    vault.wait(lambda: len(vault.pods_of("drawers")) == 3, "three drawers")
    group = vault.pod_group_of("drawers")["metadata"]["name"]
    vault.wait(
        lambda: vault.pod("drawers-2")["metadata"]["annotations"].get("pod-group-name") == group,
        "the third drawer in the group",
    )
    assert not vault.bound("drawers-2")
    wider = json.dumps({"spec": {"resources": {"gpu": {"limit": 3}}}})
    vault.kubectl("patch", "queue", "s13-vault", "--type=merge", "-p", wider)
    vault.wait_bound("drawers", count=3)
