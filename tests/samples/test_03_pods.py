"""Sample 03: pods without an owner, with and without a GPU."""

from __future__ import annotations

import pytest
import yaml

from kube.resources import QUEUES
from tests.samples.sample import Sample

pytestmark = pytest.mark.timeout(240)
PODS_OF_FILE = ("abacus", "lamp")


@pytest.fixture(scope="module")
def running(sample: Sample) -> Sample:
    sample.apply("03-pods.yaml")
    sample.wait_bound(*PODS_OF_FILE, count=2)
    return sample


@pytest.mark.parametrize("name", PODS_OF_FILE)
def test_each_pod_is_a_group_of_its_own(running: Sample, name: str) -> None:
    uid = running.pod(name)["metadata"]["uid"]
    group = running.pod_group_of(name)
    metadata = group["metadata"]
    assert metadata["name"] == f"pg-{name}-{uid}"
    owners = [(o["apiVersion"], o["kind"], o["uid"]) for o in metadata["ownerReferences"]]
    assert owners == [("v1", "Pod", uid)]
    spec = group["spec"]
    assert (spec["minMember"], spec["priorityClassName"], spec["queue"]) == (
        1,
        "train",
        "s03-bench",
    )
    owner_metadata = yaml.safe_load(metadata["annotations"]["kai.scheduler/top-owner-metadata"])
    assert owner_metadata == {"name": name, "uid": uid, "group": "", "version": "v1", "kind": "Pod"}
    assert running.pod(name)["metadata"]["annotations"]["pod-group-name"] == metadata["name"]


def test_priority_class_train_is_50_and_preemptible(running: Sample) -> None:
    assert running.kubectl("get", "priorityclass", "train", "-o", "jsonpath={.value}") == "50"

    def allocated_gpus() -> tuple[str, str]:
        status = running.get(QUEUES, "s03-bench").get("status") or {}
        parts = (status.get("allocated") or {}, status.get("allocatedNonPreemptible") or {})
        return tuple(str(part.get("nvidia.com/gpu", "0")) for part in parts)  # type: ignore[return-value]

    running.wait(lambda: allocated_gpus() == ("1", "0"), "one GPU, none of it non-preemptible")


@pytest.mark.parametrize("name", PODS_OF_FILE)
def test_a_bound_pod_has_the_condition_pod_bound(running: Sample, name: str) -> None:
    def is_bound() -> bool:
        conditions = running.pod(name)["status"].get("conditions") or ()
        return any((c["type"], c["status"]) == ("PodBound", "True") for c in conditions)

    running.wait(is_bound, f"condition PodBound on {name}")
    annotations = running.pod(name)["metadata"]["annotations"]
    assert annotations["received-resource-type"] == "Regular"
