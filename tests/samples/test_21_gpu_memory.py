"""Sample 21: a slice of GPU memory weighs what the machine's memory makes of it, and needs to know that memory."""

from __future__ import annotations

from fractions import Fraction

import pytest

from kube.resources import QUEUES
from tests.samples.sample import Sample
from tests.samples.shared_gpus import amounts, maps_of, request_of

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def weighed(sample: Sample) -> Sample:
    sample.add_nodes("21-nodes.yaml")
    sample.apply("21-gpu-memory.yaml")
    sample.wait_bound("weighed", count=1)
    return sample


@pytest.mark.parametrize("name", ["weighed", "unweighed"])
def test_what_is_asked_is_counted_in_memory(weighed: Sample, name: str) -> None:
    uid = weighed.pod(name)["metadata"]["uid"]
    assert weighed.pod_group_of(name)["metadata"]["name"] == f"pg-{name}-{uid}"
    requested = {"run.ai/gpu.memory": Fraction(2000)}
    weighed.wait(
        lambda: amounts(weighed, name, "requested") == requested,
        f"{requested} and not {amounts(weighed, name, 'requested')}",
    )


def test_what_is_held_is_a_part_of_the_device(weighed: Sample) -> None:
    def held() -> float:
        return float(amounts(weighed, "weighed", "allocated").get("nvidia.com/gpu", 0))

    weighed.wait(lambda: held() == pytest.approx(2000 / 16384), "an eighth of the device, roughly")
    assert amounts(weighed, "weighed", "allocated").keys() == {"nvidia.com/gpu"}

    def of_queue() -> str:
        status = weighed.get(QUEUES, "s21-weigher").get("status") or {}
        return str((status.get("allocated") or {}).get("nvidia.com/gpu"))

    weighed.wait(lambda: of_queue() == "122070313n", "the same in the queue")
    assert weighed.pod("weighed")["spec"]["nodeName"] == "scale-16"
    # The scheduler rounds the memory of a device down to hundreds, and parts up to hundredths.
    assert request_of(weighed, "weighed")["receivedGPU"] == {"count": 1, "portion": "0.13"}
    data = maps_of(weighed, weighed.pod("weighed"))["0"]["data"]
    assert data["GPU_PORTION"] == "0.13"


def test_a_machine_that_does_not_say_its_memory_cannot_host_it(weighed: Sample) -> None:
    weighed.stays(lambda: not weighed.bound("unweighed"), "unweighed has no machine")
    assert amounts(weighed, "unweighed", "allocated") == {}

    def reasons() -> str:
        conditions = (weighed.pod_group_of("unweighed").get("status") or {}).get(
            "schedulingConditions"
        ) or [{}]
        return str(conditions[-1])

    weighed.wait(lambda: "UnschedulableOnNodePool" in reasons(), "the reason of unweighed")
