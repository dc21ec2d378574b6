"""Sample 30: gangs that stay in one rack, and a tree of places whose labels cannot change."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from kube.resources import JOBS, TOPOLOGIES
from tests.samples.sample import Sample

pytestmark = pytest.mark.timeout(240)
RACK = "place.test/rack"


@pytest.fixture(scope="module")
def hall(sample: Sample) -> Sample:
    sample.apply("30-topology.yaml")
    return sample


def racks_of(sample: Sample, job: str) -> set[str]:
    nodes = [sample.node_of(pod["metadata"]["name"]) for pod in sample.bound(job)]
    return {node["metadata"]["labels"][RACK] for node in nodes}


def hosts_of(sample: Sample, job: str) -> list[int]:
    """Return how many pods each of its hosts has, most first."""
    count = Counter(pod["spec"]["nodeName"] for pod in sample.bound(job))
    return sorted(count.values(), reverse=True)


@pytest.mark.parametrize("job", ["close", "wide", "apart"])
def test_the_group_knows_where_it_may_go(hall: Sample, job: str) -> None:
    group = hall.pod_group_of(job)
    assert group["metadata"]["name"] == f"pg-{job}-{hall.get(JOBS, job)['metadata']['uid']}"
    assert group["spec"]["minMember"] == 4
    assert group["spec"]["topologyConstraint"] == {
        "topology": "s30-hall",
        "requiredTopologyLevel": "rack",
        "preferredTopologyLevel": "kubernetes.io/hostname",
    }


@pytest.mark.parametrize(("job", "hosts"), [("close", [4]), ("wide", [2, 2])])
def test_a_gang_lands_in_one_rack_on_few_hosts(hall: Sample, job: str, hosts: list[int]) -> None:
    hall.wait_bound(job, count=4)
    assert len(racks_of(hall, job)) == 1
    assert hosts_of(hall, job) == hosts


def test_a_gang_that_no_rack_can_hold_is_not_bound(hall: Sample) -> None:
    hall.kubectl("delete", "job", "close", "wide")
    hall.wait(lambda: not hall.bound("close", "wide"), "free machines")
    hall.stays(lambda: not hall.bound("apart"), "no pod of apart has a node")
    group = hall.pod_group_of("apart")["metadata"]["name"]

    def texts() -> list[str]:
        return [text for _, _, text in hall.events_of("PodGroup", group)]

    expected_text = "topology s30-hall, requirement"
    hall.wait(
        lambda: any(expected_text in text for text in texts()),
        f"{expected_text!r}, found {texts()}",
    )


def test_it_would_fit_without_the_rack(hall: Sample) -> None:
    free = hall.get(JOBS, "apart")
    body = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": "anywhere",
            "labels": free["metadata"]["labels"],
            "annotations": {"kai.scheduler/batch-min-member": "4"},
        },
        "spec": {
            "parallelism": 4,
            "completions": 4,
            "template": {"spec": free["spec"]["template"]["spec"]},
        },
    }
    hall.apply_text(json.dumps(body))
    hall.wait_bound("anywhere", count=4)
    assert hosts_of(hall, "anywhere") == [1, 1, 1, 1]


def test_labels_of_levels_cannot_be_edited_but_aliases_can(hall: Sample) -> None:
    levels = hall.get(TOPOLOGIES, "s30-hall")["spec"]["levels"]
    moved = [levels[0], {**levels[1], "nodeLabel": "place.test/shelf"}, levels[2]]
    answer = hall.stack.kubectl(*_patch(moved), check=False)
    assert "nodeLabel structure is immutable; only aliases may be edited" in answer
    assert hall.get(TOPOLOGIES, "s30-hall")["spec"]["levels"] == levels
    renamed = [levels[0], {**levels[1], "alias": "cabinet"}, levels[2]]
    hall.stack.kubectl(*_patch(renamed))
    assert hall.get(TOPOLOGIES, "s30-hall")["spec"]["levels"] == renamed


def _patch(levels: list[dict[str, str]]) -> tuple[str, ...]:
    body = json.dumps({"spec": {"levels": levels}})
    return ("patch", "topology", "s30-hall", "--type=merge", "-p", body)
