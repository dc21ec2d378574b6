"""Sample 13: a StatefulSet, and a ReplicaSet without a Deployment, are one group each."""

from __future__ import annotations

import pytest

from kube.resources import REPLICASETS, STATEFULSETS, Resource
from tests.samples.place import Place

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def vault(place: Place) -> Place:
    place.apply("13-sets.yaml")
    return place


@pytest.mark.parametrize(
    ("kind", "name", "pods"), [(STATEFULSETS, "drawers", 3), (REPLICASETS, "twins", 2)]
)
def test_a_set_is_one_group_for_all_its_pods(
    vault: Place, kind: Resource, name: str, pods: int
) -> None:
    bound = vault.wait_bound(name, count=pods)
    group = vault.pod_group_of(name)
    assert group["metadata"]["name"] == f"pg-{name}-{vault.get(kind, name)['metadata']['uid']}"
    spec = group["spec"]
    found = (spec["queue"], spec["priorityClassName"], spec["minMember"])
    assert found == ("s13-vault", "train", 1)
    named = {pod["metadata"]["annotations"]["pod-group-name"] for pod in bound}
    assert named == {group["metadata"]["name"]}
