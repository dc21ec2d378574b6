"""Sample 70: pods that the grouper must not change."""

from __future__ import annotations

import pytest

from kube.resources import PODGROUPS
from tests.samples.sample import Sample

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def garden(sample: Sample) -> Sample:
    sample.apply("70-left-alone.yaml")
    sample.wait_bound("trimmed", count=1)
    return sample


def test_a_pod_with_a_group_is_scheduled_as_part_of_it(garden: Sample) -> None:
    assert garden.pod("trimmed")["metadata"]["annotations"]["pod-group-name"] == "hedge"
    garden.wait(
        lambda: garden.pod("trimmed")["status"].get("phase") == "Running", "the running pod"
    )


def test_the_others_are_untouched(garden: Sample) -> None:
    garden.stays(lambda: not garden.bound("fenced", "wild"), "neither has a node")
    kubectl_only = {"kubectl.kubernetes.io/last-applied-configuration"}
    for name, own in (("wild", set()), ("fenced", {"kai.scheduler/skip-podgrouper"})):
        metadata = garden.pod(name)["metadata"]
        assert set(metadata["annotations"]) - kubectl_only == own
        assert metadata["labels"] == {"kai.scheduler/queue": "s70-garden"}
    own_groups = {n for n in garden.all(PODGROUPS) if not n.startswith("pg-probe-")}
    assert own_groups == {"hedge"}
