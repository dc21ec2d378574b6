"""Sample 41: a job that starts small, grows while there is room and gives back what it does not need."""

from __future__ import annotations

import pytest
import yaml

from tests.queues.live_cluster.objects import resource_of
from tests.samples.installations import MANIFESTS
from tests.samples.sample import Json, Sample

pytestmark = pytest.mark.timeout(240)
FILE = "41-elastic.yaml"


@pytest.fixture(scope="module")
def jobs(sample: Sample) -> dict[str, Json]:
    """Return the jobs, after their pods were made as the training operator would make them."""
    sample.define(FILE)
    sample.apply(FILE)
    sample.wait_bound("lodger", count=1)
    documents = list(yaml.safe_load_all((MANIFESTS / FILE).read_text()))
    counts = {}
    for document in documents[-2:]:
        job = sample.get(resource_of(document), document["metadata"]["name"])
        counts[job["metadata"]["name"]] = job
        for role, spec in job["spec"]["pytorchReplicaSpecs"].items():
            pods = [_pod(job, role, index, spec["template"]) for index in range(spec["replicas"])]
            sample.apply_text(yaml.safe_dump_all(pods))
    return counts


def test_the_elastic_minimum_is_the_gang_and_without_a_master_workers_are_its_only_part(
    sample: Sample, jobs: dict[str, Json]
) -> None:
    group = sample.pod_group_of("flock")
    assert group["metadata"]["name"] == f"pg-flock-{jobs['flock']['metadata']['uid']}"
    assert group["spec"] == {
        "queue": "s41-herd",
        "priorityClassName": "train",
        "minMember": 2,
        "subGroups": [{"name": "worker", "minMember": 2}],
    }


def test_a_stated_minimum_wins_and_leaves_the_workers_what_the_master_does_not_take(
    sample: Sample, jobs: dict[str, Json]
) -> None:
    group = sample.pod_group_of("floor")
    assert group["metadata"]["name"] == f"pg-floor-{jobs['floor']['metadata']['uid']}"
    assert group["spec"] == {
        "queue": "s41-herd",
        "priorityClassName": "train",
        "minMember": 3,
        "subGroups": [{"name": "master", "minMember": 1}, {"name": "worker", "minMember": 2}],
    }
    sample.wait_bound("floor", count=6)


def test_two_of_six_start_where_there_is_room_for_two(
    sample: Sample, jobs: dict[str, Json]
) -> None:
    sample.wait_bound("flock", count=2)
    sample.stays(lambda: len(sample.bound("flock")) == 2, "two workers run")


def test_surplus_comes_while_there_is_room_and_goes_first_when_the_queue_gives_back(
    sample: Sample, jobs: dict[str, Json]
) -> None:
    sample.kubectl("delete", "pod", "lodger", "--wait=false")
    sample.wait_bound("flock", count=4)
    sample.apply("41-claimant.yaml")
    sample.wait_bound("claimant", count=1)
    sample.wait(
        lambda: len(sample.bound("flock")) == 2,
        f"two workers left, found {[pod['metadata']['name'] for pod in sample.bound('flock')]}",
    )
    sample.stays(lambda: len(sample.bound("flock")) == 2, "the minimum stays")
    evicted = [
        event for event in sample.all_events("Evict") if "/flock-worker-" in event["message"]
    ]
    assert len(evicted) == 2


def _pod(job: Json, role: str, index: int, template: Json) -> Json:
    name = job["metadata"]["name"]
    owner = {key: job[key] for key in ("apiVersion", "kind")}
    owner |= {"name": name, "uid": job["metadata"]["uid"], "controller": True}
    labels = {
        "training.kubeflow.org/job-name": name,
        "training.kubeflow.org/replica-type": role.lower(),
        "training.kubeflow.org/replica-index": str(index),
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{name}-{role.lower()}-{index}",
            "labels": labels,
            "ownerReferences": [owner],
        },
        "spec": template["spec"],
    }
