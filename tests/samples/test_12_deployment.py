"""Sample 12: each pod of a Deployment is a group for inference of its own."""

from __future__ import annotations

import pytest

from kube.resources import PODGROUPS, PODS, QUEUES
from tests.samples.sample import Sample

pytestmark = pytest.mark.timeout(240)


def group_names(sample: Sample) -> set[str]:
    return {
        f"pg-{name}-{pod['metadata']['uid']}"
        for name, pod in sample.all(PODS).items()
        if name.startswith("teller-")
    }


@pytest.fixture(scope="module")
def shop(sample: Sample) -> Sample:
    sample.apply("12-deployment.yaml")
    sample.wait(lambda: len(sample.bound()) == 2, "two bound replicas")
    return sample


def test_every_replica_is_a_group_below_its_pod(shop: Sample) -> None:
    groups = shop.all(PODGROUPS)
    assert set(groups) == group_names(shop)
    assert len(groups) == 2
    for body in groups.values():
        (owner,) = body["metadata"]["ownerReferences"]
        assert body["metadata"]["name"] == f"pg-{owner['name']}-{owner['uid']}"
        assert owner["kind"] == "Pod"
        spec = body["spec"]
        stated = (spec["queue"], spec["priorityClassName"], spec["minMember"])
        assert stated == ("s12-shop", "inference", 1)


def test_inference_stands_at_125_and_may_not_be_preempted(shop: Sample) -> None:
    assert shop.kubectl("get", "priorityclass", "inference", "-o", "jsonpath={.value}") == "125"

    def protected() -> str:
        status = shop.get(QUEUES, "s12-shop").get("status") or {}
        return str((status.get("allocatedNonPreemptible") or {}).get("nvidia.com/gpu"))

    shop.wait(lambda: protected() == "2", "two protected GPUs")


def test_scaling_up_adds_groups(shop: Sample) -> None:
    before = set(shop.all(PODGROUPS))
    shop.kubectl("scale", "deployment", "teller", "--replicas=3")
    shop.wait(lambda: len(shop.all(PODGROUPS)) == 3, "three groups")
    assert before < set(shop.all(PODGROUPS)) == group_names(shop)
    shop.wait(lambda: len(shop.bound()) == 3, "three bound replicas")


def test_the_group_of_a_deleted_pod_is_collected(shop: Sample) -> None:
    name, pod = sorted(shop.all(PODS).items())[0]
    shop.kubectl("delete", "pod", name, "--wait=false")
    gone = f"pg-{name}-{pod['metadata']['uid']}"
    shop.wait(lambda: gone not in shop.all(PODGROUPS), f"the end of {gone}")
    shop.wait(lambda: len(shop.bound()) == 3, "the bound replacement")
