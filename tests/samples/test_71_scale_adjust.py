"""Sample 71: an autoscaler sees parts of GPUs through stand-ins, and nothing is shared while it works."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from kube.errors import NotFoundError
from kube.resources import CONFIGS, PODS
from tests.samples.cluster_config import CONFIG, config_restored, wait_for
from tests.samples.sample import Json, Sample
from tests.samples.shared_gpus import RESERVATIONS

pytestmark = pytest.mark.timeout(400)
NAMESPACE = "kai-scale-adjust"
ADJUSTED = {"spec": {"nodeScaleAdjuster": {"service": {"enabled": True}}}}
REFUSAL = "cluster is scaling up, could not create reservation pod"
PAUSE_S = 60


@pytest.fixture(scope="module")
def full(sample: Sample) -> Iterator[Sample]:
    """A full pool, two pods that wait for parts of its GPU, and the adjuster switched on."""
    sample.add_nodes("71-nodes.yaml")
    sample.apply("71-full.yaml")
    sample.wait_bound("settled", count=1)
    with config_restored(sample.installation):
        sample.installation.gateway.patch(CONFIGS, CONFIG, ADJUSTED)
        wait_for(sample.installation, CONFIGS, CONFIG, "Ready", "True")
        sample.apply("71-thirsty.yaml")
        try:
            yield sample
        finally:
            # A stand-in that outlives its adjuster would keep GPUs from being shared for ever.
            for name in stand_ins(sample):
                remove(sample, name)


def stand_ins(sample: Sample) -> dict[str, Json]:
    listing = sample.installation.gateway.list(PODS, as_type=dict, namespace=NAMESPACE)
    return {item["metadata"]["name"]: item for item in listing.items}


def remove(sample: Sample, name: str) -> None:
    try:
        sample.installation.gateway.delete(PODS, name, namespace=NAMESPACE, grace_period_s=0)
    except NotFoundError:
        return


def named(sample: Sample, *sources: str) -> set[str]:
    return {f"{sample.namespace}-{source}" for source in sources}


def scheduled(pod: Json) -> tuple[str, str]:
    for condition in pod["status"].get("conditions") or ():
        if condition["type"] == "PodScheduled":
            return condition["status"], condition.get("reason", "")
    return "", ""


def test_each_part_that_needs_a_device_gets_a_stand_in(full: Sample) -> None:
    expected = named(full, "thirsty-a", "thirsty-b")
    full.wait(
        lambda: stand_ins(full).keys() == expected, f"{expected}, found {set(stand_ins(full))}"
    )
    full.wait(
        lambda: (
            {scheduled(pod) for pod in stand_ins(full).values()} == {("False", "Unschedulable")}
        ),
        "stand-ins that say at once that they are unschedulable",
    )
    for source in ("thirsty-a", "thirsty-b"):
        stand_in = stand_ins(full)[f"{full.namespace}-{source}"]
        assert stand_in["metadata"]["labels"] == {
            "app": "scaling-pod",
            "shared-gpu-pod-name": source,
            "shared-gpu-pod-namespace": full.namespace,
        }
        spec = stand_in["spec"]
        assert spec["schedulerName"] == "default-scheduler"
        assert spec["restartPolicy"] == "OnFailure"
        assert spec["nodeSelector"] == {"samples.test/pool": "brook"}
        assert {"key": "samples.test/wet", "operator": "Exists"} in spec["tolerations"]
        (container,) = spec["containers"]
        assert container["resources"] == {
            "requests": {"cpu": "300m", "memory": "64Mi", "nvidia.com/gpu": "1"},
            "limits": {"nvidia.com/gpu": "1"},
        }


def test_no_device_is_reserved_meanwhile(full: Sample) -> None:
    full.wait(lambda: len(stand_ins(full)) == 2, "two stand-ins")
    reserved = reservations(full)
    full.apply("71-elsewhere.yaml")

    def refusals() -> list[str]:
        events = full.events_of("Pod", "elsewhere")
        return [text for _, reason, text in events if reason == "BindingError"]

    full.wait(refusals, "a binding that is refused")
    start = f"Failed to bind pod {full.namespace}/elsewhere to node "
    assert all(event.startswith(start) and event.endswith(f": {REFUSAL}") for event in refusals())
    assert not full.bound("elsewhere")
    assert reservations(full) == reserved


def reservations(sample: Sample) -> set[str]:
    listing = sample.installation.gateway.list(PODS, as_type=dict, namespace=RESERVATIONS)
    return {item["metadata"]["name"] for item in listing.items}


def test_a_stand_in_goes_with_its_source_and_none_comes_for_a_minute(full: Sample) -> None:
    full.wait(lambda: len(stand_ins(full)) == 2, "two stand-ins")
    late, gone = named(full, "thirsty-c"), named(full, "thirsty-b")
    before = datetime.now(UTC)
    full.kubectl("delete", "pod", "thirsty-b", "--wait=false", "--grace-period=0", "--force")
    full.wait(lambda: not gone & stand_ins(full).keys(), "the end of the stand-in of thirsty-b")
    if full.installation.name == "real":
        return  # the minute is measured by the adjuster's own clock, so once is enough
    full.apply("71-late.yaml")
    full.wait(lambda: late <= stand_ins(full).keys(), "a stand-in for thirsty-c", timeout_s=120)
    (name,) = late
    came = datetime.fromisoformat(stand_ins(full)[name]["metadata"]["creationTimestamp"])
    # The first stand-in went after `before`; creation times are whole seconds.
    assert (came - before).total_seconds() > PAUSE_S - 1


def test_a_source_that_is_scheduled_needs_no_stand_in(full: Sample) -> None:
    full.kubectl(
        "delete", "pod", "thirsty-c", "--wait=false", "--grace-period=0", "--force", "--ignore-not-found"
    )  # fmt: skip
    full.wait(lambda: stand_ins(full).keys() == named(full, "thirsty-a"), "one stand-in")
    # The autoscaler has brought a machine: the stand-in runs there, and sharing is possible again.
    (name,) = named(full, "thirsty-a")
    full.stack.kubectl(
        "patch", "pod", name, "-n", NAMESPACE, "--subresource=status", "--type=merge", "-p",
        '{"status": {"conditions": [{"type": "PodScheduled", "status": "True"}]}}',
    )  # fmt: skip
    full.wait_bound("elsewhere", count=1)
    full.kubectl("delete", "pod", "settled", "--wait=false", "--grace-period=0", "--force")
    full.wait_bound("thirsty-a", count=1)
    full.wait(lambda: not stand_ins(full), "the end of the last stand-in")
