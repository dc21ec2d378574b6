"""Sample 25: a MIG slice goes where it is advertised, keeps its name in the status and weighs its compute slices."""

from __future__ import annotations

from fractions import Fraction

import pytest

from kube.resources import NODES, QUEUES
from tests.samples.sample import Sample
from tests.samples.shared_gpus import amounts, request_of

pytestmark = pytest.mark.timeout(240)
THIN = "nvidia.com/mig-1g.10gb"


@pytest.fixture(scope="module")
def sliced(sample: Sample) -> Sample:
    sample.apply("25-mig.yaml")
    sample.wait_bound("thin-slice", count=1)
    return sample


def test_it_is_on_the_machine_that_has_such_slices(sliced: Sample) -> None:
    node = sliced.node_of("thin-slice")
    assert node["metadata"]["labels"]["nvidia.com/mig.strategy"] == "mixed"
    having = [
        name for name, node in sliced.all(NODES).items() if THIN in node["status"]["allocatable"]
    ]
    assert having == [node["metadata"]["name"]]
    assert request_of(sliced, "thin-slice")["receivedResourceType"] == "MigInstance"


def test_the_pod_group_counts_the_slice_by_its_name(sliced: Sample) -> None:
    group = sliced.pod_group_of("thin-slice")
    uid = sliced.pod("thin-slice")["metadata"]["uid"]
    assert group["metadata"]["name"] == f"pg-thin-slice-{uid}"
    assert (group["spec"]["minMember"], group["spec"]["priorityClassName"]) == (1, "train")
    for part in ("requested", "allocated"):
        sliced.wait(
            lambda part=part: amounts(sliced, "thin-slice", part) == {THIN: Fraction(1)},
            f"one slice {part}: {amounts(sliced, 'thin-slice', part)}",
        )

    def of_queue() -> dict[str, str]:
        amounts: dict[str, str] = (sliced.get(QUEUES, "s25-slicer").get("status") or {}).get(
            "allocated"
        ) or {}
        return amounts

    sliced.wait(lambda: of_queue() == {THIN: "1"}, f"one slice in the queue: {of_queue()}")


def test_a_slice_of_two_is_too_much_for_a_queue_of_one_gpu(sliced: Sample) -> None:
    sliced.stays(lambda: not sliced.bound("wide-slice"), "wide-slice has no machine")

    def told() -> str:
        group = sliced.pod_group_of("wide-slice")["metadata"]["name"]
        return " ".join(text for _, _, text in sliced.events_of("PodGroup", group))

    sliced.wait(
        lambda: "OverLimit" in told() and "s25-slicer" in told(), f"the limit as reason: {told()}"
    )
