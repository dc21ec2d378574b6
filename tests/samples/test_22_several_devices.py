"""Sample 22: half of each of two devices of one machine."""

from __future__ import annotations

from fractions import Fraction

import pytest

from kube.resources import BINDREQUESTS
from tests.samples.sample import Sample
from tests.samples.shared_gpus import GROUP, amounts, holders_of, maps_of, request_of

pytestmark = pytest.mark.timeout(240)
POD = "pair-of-halves"


@pytest.fixture(scope="module")
def bound(sample: Sample) -> Sample:
    sample.apply("22-several-devices.yaml")
    sample.wait_bound(POD, count=1)
    return sample


def test_the_bind_request_names_two_devices(bound: Sample) -> None:
    spec = request_of(bound, POD)
    assert spec["receivedResourceType"] == "Fraction"
    assert spec["receivedGPU"] == {"count": 2, "portion": "0.50"}
    assert len(set(spec["selectedGPUGroups"])) == 2
    bound.wait(
        lambda: bound.get(BINDREQUESTS, POD).get("status", {}).get("phase") == "Succeeded",
        "the phase Succeeded",
    )


def test_each_device_has_a_label_of_its_own(bound: Sample) -> None:
    groups = request_of(bound, POD)["selectedGPUGroups"]
    labels = bound.pod(POD)["metadata"]["labels"]
    of_devices = {key: value for key, value in labels.items() if key.startswith(GROUP)}
    assert of_devices == {f"{GROUP}/{group}": group for group in groups}


def test_each_device_is_held_and_named_to_the_container(bound: Sample) -> None:
    devices = []
    for group in request_of(bound, POD)["selectedGPUGroups"]:
        (holder,) = holders_of(bound, group)
        assert holder["spec"]["nodeName"] == bound.pod(POD)["spec"]["nodeName"]
        devices.append(holder["metadata"]["annotations"]["run.ai/reserve_for_gpu_index"])
    assert len(set(devices)) == 2
    data = maps_of(bound, bound.pod(POD))["0"]["data"]
    assert data["NVIDIA_VISIBLE_DEVICES"] == ",".join(devices)


def test_two_halves_are_one_gpu(bound: Sample) -> None:
    for part in ("requested", "allocated"):
        bound.wait(
            lambda part=part: amounts(bound, POD, part) == {"nvidia.com/gpu": Fraction(1)},
            f"one GPU {part}",
        )


def test_both_devices_are_free_when_it_is_gone(bound: Sample) -> None:
    groups = request_of(bound, POD)["selectedGPUGroups"]
    bound.kubectl("delete", "pod", POD, "--wait=false")
    bound.wait(
        lambda: not any(holders_of(bound, group) for group in groups),
        "the end of both reservations",
    )
