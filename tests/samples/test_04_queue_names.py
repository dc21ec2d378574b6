"""Sample 04: the queue of work that names none, an old project, or a queue that does not exist."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.samples.sample import Sample

pytestmark = pytest.mark.timeout(240)
DEFAULT_QUEUES = Path(__file__).resolve().parents[2] / "deploy" / "defaults" / "queues.yaml"
POD_WITHOUT_QUEUE = """
apiVersion: v1
kind: Pod
metadata: {name: homeless}
spec:
  schedulerName: kai-scheduler
  containers: [{name: main, image: "example.test/x:1"}]
"""


@pytest.fixture(scope="module")
def pods_of_file(sample: Sample) -> Sample:
    sample.apply("04-queue-names.yaml")
    return sample


@pytest.fixture
def no_default_queue(pods_of_file: Sample) -> Iterator[Sample]:
    pods_of_file.kubectl("delete", "queue", "default-queue")
    yield pods_of_file
    pods_of_file.stack.kubectl("apply", "-f", str(DEFAULT_QUEUES))


def wait_for_missing_queue(sample: Sample, pod: str, queue: str) -> None:
    """Wait for the condition that names a missing queue; the pod stays pending."""
    expected = {"QueueDoesNotExist": f"Queue '{queue}' does not exist"}
    sample.wait(
        lambda: sample.reasons_of(pod) == expected,
        f"{expected} of {pod}, found {sample.reasons_of(pod)}",
    )
    assert sample.pod(pod)["status"]["phase"] == "Pending"
    assert not sample.bound(pod)


@pytest.mark.parametrize(
    ("name", "queue"),
    [
        ("nameless", "default-queue"),
        ("old-project", "s04-meteor"),
        ("pooled-project", "s04-meteor-fast"),
        ("typing-error", "s04-nowhere"),
    ],
)
def test_the_queue_of_a_pod(pods_of_file: Sample, name: str, queue: str) -> None:
    group = pods_of_file.pod_group_of(name)
    assert group["metadata"]["name"] == f"pg-{name}-{pods_of_file.pod(name)['metadata']['uid']}"
    assert group["spec"]["queue"] == queue


def test_pods_without_a_queue_run_in_the_default_queue(pods_of_file: Sample) -> None:
    pods_of_file.wait_bound("nameless", count=1)


@pytest.mark.parametrize(
    ("name", "queue"), [("old-project", "s04-meteor"), ("typing-error", "s04-nowhere")]
)
def test_a_queue_that_does_not_exist_is_named(pods_of_file: Sample, name: str, queue: str) -> None:
    wait_for_missing_queue(pods_of_file, name, queue)


def test_without_the_default_queue_pods_without_a_queue_wait(no_default_queue: Sample) -> None:
    no_default_queue.apply_text(POD_WITHOUT_QUEUE)
    wait_for_missing_queue(no_default_queue, "homeless", "default-queue")


def test_a_pod_without_a_queue_starts_once_the_default_queue_exists_again(
    pods_of_file: Sample,
) -> None:
    pods_of_file.wait_bound("homeless", count=1)
