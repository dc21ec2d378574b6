"""Sample 11: each run of a CronJob is a group of its own."""

from __future__ import annotations

import pytest

from kube.resources import JOBS
from tests.samples.sample import Sample

pytestmark = pytest.mark.timeout(240)
RUNS = {"report-1": "s11-owls", "report-2": "s11-owls", "echo-1": "s11-bats"}


@pytest.fixture(scope="module")
def runs(sample: Sample) -> Sample:
    sample.apply("11-cronjob.yaml")
    for run in RUNS:
        cron_job = run.partition("-")[0]
        sample.kubectl("create", "job", run, f"--from=cronjob/{cron_job}")
    return sample


@pytest.mark.parametrize(("run", "queue"), RUNS.items())
def test_a_run_is_a_group_below_the_job(runs: Sample, run: str, queue: str) -> None:
    job = runs.get(JOBS, run)
    assert [owner["kind"] for owner in job["metadata"]["ownerReferences"]] == ["CronJob"]
    group = runs.pod_group_of(run)
    assert group["metadata"]["name"] == f"pg-{run}-{job['metadata']['uid']}"
    assert [(o["kind"], o["name"]) for o in group["metadata"]["ownerReferences"]] == [("Job", run)]
    spec = group["spec"]
    # The annotation for gangs stands on CronJob and Job alike, and is not read.
    stated = (spec["queue"], spec["priorityClassName"], spec["minMember"])
    assert stated == (queue, "train", 1)


def test_the_pods_of_all_runs_start(runs: Sample) -> None:
    runs.wait_bound(*RUNS, count=6)
