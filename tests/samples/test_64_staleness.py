"""Sample 64: gangs that lose a member, and how long the others may go on without it."""

from __future__ import annotations

import json
from datetime import datetime, timedelta

import pytest

from tests.samples.sample import Json, Sample

pytestmark = pytest.mark.timeout(240)
STALE_SINCE = "kai.scheduler/stale-podgroup-timestamp"
JOBS_OF_FILE = ("patient", "frail", "ageless")


@pytest.fixture(scope="module")
def stale_gangs(sample: Sample) -> Sample:
    """Three running gangs, each of which then loses one pod for good: its Job wants one less."""
    sample.apply("64-staleness.yaml")
    sample.wait_bound(*JOBS_OF_FILE, count=9)
    sample.wait(
        lambda: all(pod["status"].get("phase") == "Running" for pod in sample.bound(*JOBS_OF_FILE)),
        "nine running pods",
    )
    for job in JOBS_OF_FILE:
        set_parallelism(sample, job, 2)
    return sample


def set_parallelism(sample: Sample, job: str, pods: int) -> None:
    body = json.dumps({"spec": {"parallelism": pods}})
    sample.kubectl("patch", "job", job, "--type=merge", "-p", body)


def stale_since(sample: Sample, job: str) -> str:
    annotations = sample.pod_group_of(job)["metadata"]["annotations"]
    return str(annotations.get(STALE_SINCE, ""))


@pytest.mark.parametrize(
    ("job", "grace"), [("patient", "10m0s"), ("frail", "5s"), ("ageless", "-1s")]
)
def test_the_grace_is_written(stale_gangs: Sample, job: str, grace: str) -> None:
    spec = stale_gangs.pod_group_of(job)["spec"]
    assert (spec["minMember"], spec["stalenessGracePeriod"]) == (3, grace)


@pytest.mark.parametrize("job", JOBS_OF_FILE)
def test_a_gang_below_its_minimum_is_marked(stale_gangs: Sample, job: str) -> None:
    stale_gangs.wait(lambda: stale_since(stale_gangs, job), f"the mark of {job}")


def test_the_survivors_go_when_the_grace_is_over(stale_gangs: Sample) -> None:
    since = datetime.fromisoformat(stale_since(stale_gangs, "frail"))
    group = stale_gangs.pod_group_of("frail")["metadata"]["name"]
    stale_gangs.wait(lambda: not stale_gangs.bound("frail"), "the end of the survivors")
    expected = ("Normal", "StaleJob", "Job is stale. 2 pods are active, minMember is 3")
    stale_gangs.wait(
        lambda: expected in stale_gangs.events_of("PodGroup", group), f"the event {expected}"
    )
    text = "Workload doesn't meet the minimum required number of pods (3), evicting remaining pod: "
    start = f"{text}{stale_gangs.namespace}/frail-"

    def eviction_events() -> list[Json]:
        return [e for e in stale_gangs.all_events("Evict") if e["message"].startswith(start)]

    stale_gangs.wait(lambda: len(eviction_events()) == 2, "two events Evict")
    for event in eviction_events():
        assert event["involvedObject"]["name"] == group
        evicted_at = datetime.fromisoformat(event["firstTimestamp"] or event["eventTime"])
        assert evicted_at >= since + timedelta(seconds=5)


def test_others_go_on_for_longer_or_for_ever(stale_gangs: Sample) -> None:
    for job in ("patient", "ageless"):
        running = [
            pod for pod in stale_gangs.bound(job) if "deletionTimestamp" not in pod["metadata"]
        ]
        assert len(running) == 2


def test_a_gang_that_recovers_loses_its_mark(stale_gangs: Sample) -> None:
    set_parallelism(stale_gangs, "patient", 3)
    stale_gangs.wait_bound("patient", count=3)
    stale_gangs.wait(lambda: not stale_since(stale_gangs, "patient"), "no mark on patient")
