"""Sample 05: priority classes from labels and specs, and who may be preempted."""

from __future__ import annotations

import pytest

from tests.samples.sample import Sample

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def applied(sample: Sample) -> Sample:
    sample.apply("05-priorities.yaml")
    return sample


@pytest.mark.parametrize(
    ("name", "rank", "preemptibility"),
    [
        ("loom", "build", None),
        ("anvil", "build", None),
        ("wool", "build", "preemptible"),
        ("mist", "train", None),
    ],
)
def test_priority_class_and_preemptibility_of_each_pod(
    applied: Sample, name: str, rank: str, preemptibility: str | None
) -> None:
    group = applied.pod_group_of(name)
    assert group["metadata"]["name"] == f"pg-{name}-{applied.pod(name)['metadata']['uid']}"
    spec = group["spec"]
    assert (spec["priorityClassName"], spec.get("preemptibility")) == (rank, preemptibility)


def test_the_class_build_stands_at_100(applied: Sample) -> None:
    assert applied.kubectl("get", "priorityclass", "build", "-o", "jsonpath={.value}") == "100"


def test_what_may_not_be_preempted_uses_quota_only(applied: Sample) -> None:
    applied.wait_bound("loom", "wool", "mist", count=3)
    applied.wait(
        lambda: set(applied.reasons_of("anvil")) == {"NonPreemptibleOverQuota"},
        "the reason of anvil",
    )
    assert not applied.bound("anvil")
