"""Sample 32: workers of a PyTorchJob in segments, each segment in one rack."""

from __future__ import annotations

import pytest
import yaml

from kube.resources import PODGROUPS
from tests.queues.live_cluster.objects import resource_of
from tests.samples.installations import MANIFESTS
from tests.samples.sample import Json, Sample

pytestmark = pytest.mark.timeout(240)
SEGMENTS = {"worker-0": (0, 1), "worker-1": (2, 3), "worker-2": (4,)}


@pytest.fixture(scope="module")
def chain(sample: Sample) -> Json:
    """Return the job, after its pods were made as the training operator would make them."""
    sample.define("32-segments.yaml")
    sample.apply("32-segments.yaml")
    documents = list(yaml.safe_load_all((MANIFESTS / "32-segments.yaml").read_text()))
    job = sample.get(resource_of(documents[-1]), "chain")
    pods = [
        _pod(job, role, index, replicas["template"])
        for role, replicas in job["spec"]["pytorchReplicaSpecs"].items()
        for index in range(replicas["replicas"])
    ]
    sample.apply_text(yaml.safe_dump_all(pods))
    return job


def test_the_group_has_a_subgroup_per_segment(sample: Sample, chain: Json) -> None:
    name = f"pg-chain-{chain['metadata']['uid']}"

    def spec() -> Json:
        spec: Json = sample.get(PODGROUPS, name)["spec"]
        return spec

    assert sample.pod_group_of("chain")["metadata"]["name"] == name
    assert (spec()["queue"], spec()["priorityClassName"]) == ("s32-relay", "train")
    rack = {"topology": "s32-hall", "requiredTopologyLevel": "place.test/rack"}
    shapes = [
        {key: group.get(key) for key in ("name", "parent", "minMember", "minSubGroup")}
        for group in spec()["subGroups"]
    ]
    assert shapes == [
        {"name": "master", "parent": None, "minMember": 1, "minSubGroup": None},
        {"name": "worker", "parent": None, "minMember": None, "minSubGroup": 3},
        {"name": "worker-0", "parent": "worker", "minMember": 2, "minSubGroup": None},
        {"name": "worker-1", "parent": "worker", "minMember": 2, "minSubGroup": None},
        {"name": "worker-2", "parent": "worker", "minMember": 1, "minSubGroup": None},
    ]
    constraints = [group.get("topologyConstraint") for group in spec()["subGroups"]]
    assert constraints == [None, None, rack, rack, rack]


def test_each_worker_is_labelled_with_its_segment(sample: Sample, chain: Json) -> None:
    def segment(pod: str) -> str:
        return str(sample.pod(pod)["metadata"]["labels"].get("kai.scheduler/subgroup-name"))

    for name, workers in SEGMENTS.items():
        for index in workers:
            sample.wait(
                lambda index=index, name=name: segment(f"chain-worker-{index}") == name,
                f"worker {index} in {name}",
            )
    sample.wait(lambda: segment("chain-master-0") == "master", "the master's subgroup")


def test_the_workers_of_a_segment_share_a_rack(sample: Sample, chain: Json) -> None:
    sample.wait_bound("chain", count=6)
    for workers in SEGMENTS.values():
        nodes = [sample.node_of(f"chain-worker-{index}") for index in workers]
        assert len({node["metadata"]["labels"]["place.test/rack"] for node in nodes}) == 1


def _pod(job: Json, role: str, index: int, template: Json) -> Json:
    labels = {
        "training.kubeflow.org/job-name": job["metadata"]["name"],
        "training.kubeflow.org/replica-type": role.lower(),
        "training.kubeflow.org/replica-index": str(index),
    }
    owner = {
        "apiVersion": job["apiVersion"],
        "kind": job["kind"],
        "name": job["metadata"]["name"],
        "uid": job["metadata"]["uid"],
        "controller": True,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"chain-{role.lower()}-{index}",
            "labels": labels,
            "annotations": (template.get("metadata") or {}).get("annotations") or {},
            "ownerReferences": [owner],
        },
        "spec": template["spec"],
    }
