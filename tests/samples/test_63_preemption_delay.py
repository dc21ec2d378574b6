"""Sample 63: jobs for which nothing is evicted until their preemption delay is over."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from kube.resources import PODGROUPS
from tests.samples.sample import Sample

pytestmark = pytest.mark.timeout(240)
LAST_EVICTION = "kai.scheduler/last-eviction-timestamp"


@pytest.fixture(scope="module")
def delayed_jobs(sample: Sample) -> Sample:
    sample.apply("63-preemption-delay.yaml")
    sample.wait_bound("tenant-still", "tenant-soon", "guest", count=3)
    sample.apply("63-delayed.yaml")
    return sample


def window_text(delay: str, end: datetime) -> str:
    return (
        f"Workload is within its preemption delay window ({delay}) and may not trigger "
        f"evictions before {end:%Y-%m-%dT%H:%M:%SZ}"
    )


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


@pytest.mark.parametrize(
    ("job", "delay"),
    [
        ("mule", "5m0s"),
        ("heir", "5m0s"),
        ("pony", "8s"),
        ("swift", "5m0s"),
        ("unitless", None),
        ("negative", None),
    ],
)
def test_a_valid_delay_is_written(delayed_jobs: Sample, job: str, delay: str | None) -> None:
    assert delayed_jobs.pod_group_of(job)["spec"].get("preemptionDelay") == delay


def test_free_room_is_taken_at_once(delayed_jobs: Sample) -> None:
    delayed_jobs.wait_bound("swift", count=1)


@pytest.mark.parametrize("job", ["mule", "heir"])
def test_the_condition_names_the_end_of_the_window(delayed_jobs: Sample, job: str) -> None:
    group = delayed_jobs.pod_group_of(job)
    end = moment(group["metadata"]["creationTimestamp"]) + timedelta(minutes=5)
    text = window_text("5m0s", end)
    delayed_jobs.wait(
        lambda: delayed_jobs.reasons_of(job).get("PreemptionDelayNotElapsed") == text,
        f"{text!r}, found {delayed_jobs.reasons_of(job)}",
    )


def test_a_pod_is_evicted_when_the_window_is_over(delayed_jobs: Sample) -> None:
    group = delayed_jobs.pod_group_of("pony")
    end = moment(group["metadata"]["creationTimestamp"]) + timedelta(seconds=8)
    delayed_jobs.wait_bound("pony", count=1)
    eviction = delayed_jobs.wait(
        lambda: [e for e in delayed_jobs.all_events("Evict") if "/tenant-soon-" in e["message"]],
        "the event of the eviction",
    )[0]
    name = group["metadata"]["name"]
    text = f"was preempted by higher priority workload {delayed_jobs.namespace}/{name}"
    assert eviction["message"].endswith(text)
    assert moment(eviction["firstTimestamp"] or eviction["eventTime"]) >= end


@pytest.mark.parametrize(("tenant", "job"), [("tenant-still", "mule"), ("guest", "heir")])
def test_no_pod_is_evicted_for_the_job_that_still_waits(
    delayed_jobs: Sample, tenant: str, job: str
) -> None:
    (pod,) = delayed_jobs.bound(tenant)
    assert pod["metadata"].get("deletionTimestamp") is None
    assert not delayed_jobs.bound(job)


def test_another_queue_reclaims_its_quota_for_a_job_without_a_delay(delayed_jobs: Sample) -> None:
    delayed_jobs.apply("63-claimant.yaml")
    name = delayed_jobs.pod_group_of("claimant")["metadata"]["name"]
    text = f"was preempted by workload {delayed_jobs.namespace}/{name}."
    eviction_messages = delayed_jobs.wait(
        lambda: [
            e["message"] for e in delayed_jobs.all_events("Evict") if "/guest-" in e["message"]
        ],
        "the event of the guest's eviction",
    )
    assert text in eviction_messages[0]


def test_the_delay_protects_nobody_and_an_eviction_restarts_the_window(
    delayed_jobs: Sample,
) -> None:
    delayed_jobs.apply("63-rival.yaml")
    delayed_jobs.wait_bound("rival", count=1)

    def evicted() -> str:
        group = delayed_jobs.pod_group_of("swift")["metadata"]
        return str(group["annotations"].get(LAST_EVICTION, ""))

    last = moment(delayed_jobs.wait(evicted, "the time of the eviction of swift"))
    group = delayed_jobs.pod_group_of("swift")
    assert last > moment(group["metadata"]["creationTimestamp"])
    text = window_text("5m0s", last + timedelta(minutes=5))
    delayed_jobs.wait(
        lambda: delayed_jobs.reasons_of("swift").get("PreemptionDelayNotElapsed") == text,
        f"{text!r}, found {delayed_jobs.reasons_of('swift')}",
    )
    assert group["metadata"]["name"] in delayed_jobs.all(PODGROUPS)
