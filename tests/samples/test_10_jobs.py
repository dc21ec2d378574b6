"""Sample 10: a Job whose pods start one by one, one that is a gang, and one whose size is no number."""

from __future__ import annotations

import json

import pytest

from kube.resources import JOBS, PODGROUPS
from tests.samples.sample import Sample

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def applied(sample: Sample) -> Sample:
    sample.apply("10-jobs.yaml")
    return sample


@pytest.mark.parametrize(
    ("name", "queue", "minimum"), [("grain", "s10-singles", 1), ("team", "s10-gangs", 4)]
)
def test_a_job_is_one_group(applied: Sample, name: str, queue: str, minimum: int) -> None:
    group = applied.pod_group_of(name)
    assert group["metadata"]["name"] == f"pg-{name}-{applied.get(JOBS, name)['metadata']['uid']}"
    spec = group["spec"]
    stated = (spec["queue"], spec["priorityClassName"], spec["minMember"])
    assert stated == (queue, "train", minimum)


def test_pods_of_a_plain_job_start_as_there_is_room(applied: Sample) -> None:
    applied.wait_bound("grain", count=2)
    assert len(applied.pods_of("grain")) == 3


def test_a_gang_starts_when_all_fit(applied: Sample) -> None:
    applied.wait(lambda: len(applied.pods_of("team")) == 4, "four pods of team")
    applied.wait(lambda: "OverLimit" in applied.reasons_of("team"), "the limit as the reason")
    applied.stays(lambda: not applied.bound("team"), "no pod of team has a node")
    wider = json.dumps({"spec": {"resources": {"gpu": {"limit": 8}}}})
    applied.kubectl("patch", "queue", "s10-gangs", "--type=merge", "-p", wider)
    applied.wait_bound("team", count=4)


def test_a_size_that_is_no_number_is_an_event_on_every_pod(applied: Sample) -> None:
    pods = applied.wait(lambda: applied.pods_of("blurred"), "the pods of blurred")
    assert len(pods) == 2
    for pod in pods:
        name = pod["metadata"]["name"]

        def warned(name: str = name) -> bool:
            start = "invalid min-member annotation value"
            return any(
                (kind, reason) == ("Warning", "PodGrouperWarning") and message.startswith(start)
                for kind, reason, message in applied.events_of("Pod", name)
            )

        applied.wait(warned, f"the warning on {name}, found {applied.events_of('Pod', name)}")
    assert not [name for name in applied.all(PODGROUPS) if name.startswith("pg-blurred")]
    assert not applied.bound("blurred")
