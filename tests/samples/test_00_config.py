"""Sample 00: the Config is read, never rewritten, and carries how the installation stands."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator

import pytest

from kube.resources import CONFIGS, PODGROUPS, QUEUES
from tests.samples.cluster_config import (
    CONFIG,
    READY,
    apply_file,
    config_restored,
    current_conditions,
    get,
    wait_for,
)
from tests.samples.installations import MANIFESTS
from tests.samples.sample import Json, Sample

pytestmark = pytest.mark.timeout(300)

HALF = """
apiVersion: v1
kind: Pod
metadata:
  name: half
  labels: {kai.scheduler/queue: default-queue}
  annotations: {gpu-fraction: "0.5"}
spec:
  schedulerName: kai-scheduler
  containers:
  - {name: main, image: example.test/x:1}
"""

MARKER = """
apiVersion: scheduling.run.ai/v2
kind: Queue
metadata: {name: s00-marker}
spec:
  resources:
    gpu: {quota: 0, limit: -1, overQuotaWeight: 1}
    cpu: {quota: 0, limit: -1, overQuotaWeight: 1}
    memory: {quota: 0, limit: -1, overQuotaWeight: 1}
"""


@pytest.fixture(scope="module")
def configured(sample: Sample) -> Iterator[Sample]:
    """The manifest applied, and all of it done."""
    with config_restored(sample.installation):
        apply_file(sample.installation, MANIFESTS / "00-config.yaml")
        yield sample


@pytest.fixture(scope="module")
def applied(configured: Sample) -> Json:
    """The object right after kubectl applied the manifest."""
    return get(configured.installation, CONFIGS, CONFIG)


def test_all_five_conditions_observe_the_applied_generation(
    configured: Sample, applied: Json
) -> None:
    wait_for(configured.installation, CONFIGS, CONFIG, "Ready", "True")
    assert current_conditions(configured.installation, CONFIGS, CONFIG) == READY
    assert get(configured.installation, CONFIGS, CONFIG)["spec"] == applied["spec"]
    generation = get(configured.installation, CONFIGS, CONFIG)["metadata"]["generation"]
    assert generation == applied["metadata"]["generation"]


def test_every_component_runs(configured: Sample) -> None:
    wait_for(configured.installation, CONFIGS, CONFIG, "Ready", "True")
    expected = {"web", "controllers", "binding", "scheduling-default", "beat", "operator"}
    # One that starts anew with what the Config says is away for a moment.
    configured.wait(lambda: expected <= set(configured.stack.pids()), f"{expected}")


@pytest.mark.parametrize(
    ("port", "metric"),
    [
        ("controller-metrics", "queue_info"),
        ("scheduler-metrics", "e2e_scheduling_latency_milliseconds"),
    ],
)
def test_what_it_says_reaches_the_components_it_is_for(
    configured: Sample, port: str, metric: str
) -> None:
    def page() -> str:
        address = f"http://127.0.0.1:{configured.installation.port(port)}/metrics"
        try:
            with urllib.request.urlopen(address, timeout=10) as answer:
                return str(answer.read().decode())
        except OSError:
            return ""  # it is just being started anew

    wait_for(configured.installation, CONFIGS, CONFIG, "Ready", "True")
    configured.wait(lambda: f"sampled_{metric}" in page(), "metrics under the new name")
    assert f"\nkai_{metric}" not in page()


def test_a_config_of_another_name_has_no_effect_and_no_status(configured: Sample) -> None:
    configured.apply("00-other-config.yaml")
    configured.stays(
        lambda: "status" not in configured.get(CONFIGS, "s00-bystander"),
        "pods are grouped and bound, and the other Config has no status",
    )
    assert current_conditions(configured.installation, CONFIGS, CONFIG) == READY


def test_a_component_that_is_down_is_named_until_it_is_back(configured: Sample) -> None:
    wait_for(configured.installation, CONFIGS, CONFIG, "Ready", "True")
    configured.stack.kill("binding")
    wait_for(
        configured.installation, CONFIGS, CONFIG, "Available", "False", "Binder: not available"
    )
    assert current_conditions(configured.installation, CONFIGS, CONFIG)["Ready"][0] == "False"
    wait_for(configured.installation, CONFIGS, CONFIG, "Ready", "True")


@pytest.mark.parametrize(
    ("is_on", "text"), [(False, "GPU sharing is disabled"), (True, "pod/half created")]
)
def test_gpu_sharing_is_switched_while_everything_runs(
    configured: Sample, is_on: bool, text: str
) -> None:
    def answer() -> str:
        return configured.stack.kubectl(
            "apply", "-n", configured.namespace, "--dry-run=server", "-f", "-",
            stdin=HALF, check=False,
        )  # fmt: skip

    body = {"spec": {"admission": {"gpuSharing": is_on}}}
    configured.installation.gateway.patch(CONFIGS, CONFIG, body)
    configured.wait(lambda: text in answer(), text)
    wait_for(configured.installation, CONFIGS, CONFIG, "Ready", "True")


def test_a_component_that_is_switched_off_ends_and_is_not_reported_as_missing(
    configured: Sample,
) -> None:
    def switch(is_on: bool) -> None:
        body = {"spec": {"podGrouper": {"service": {"enabled": is_on}}}}
        configured.installation.gateway.patch(CONFIGS, CONFIG, body)
        wait_for(configured.installation, CONFIGS, CONFIG, "Ready", "True")

    switch(False)
    configured.apply_text(HALF.replace('{gpu-fraction: "0.5"}', "{}").replace("half", "alone"))
    # The queue controller lives in the same process: it works on, and the pod stays without a group.
    configured.apply_text(MARKER)
    configured.wait(
        lambda: configured.get(QUEUES, "s00-marker").get("status"), "the status of the queue"
    )
    assert configured.all(PODGROUPS) == {}
    switch(True)
    configured.wait_bound("alone", count=1)
