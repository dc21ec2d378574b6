"""Slices and classes as real drivers write them, in core terms, and the GPUs they add to nodes."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from kube.objects.devices import DeviceClass, ResourceSlice
from kube.objects.meta import convert
from scheduler.core.cluster.constraints import Taint
from scheduler.core.cluster.device_inputs import CounterSet, DeviceCapacity, Version
from scheduler.load.selectors import matching_devices
from scheduler.load.slices import device_class, device_slice, dra_gpus


def published(*devices: dict[str, Any], **spec: Any) -> ResourceSlice:
    pool = {"name": "n0", "generation": spec.pop("generation", 1), "resourceSliceCount": 1}
    body = {"driver": "gpu.nvidia.com", "pool": pool, "devices": list(devices)}
    place = {} if spec.keys() & {"perDeviceNodeSelection", "allNodes"} else {"nodeName": "n0"}
    return convert({"metadata": {"name": "s"}, "spec": body | place | spec}, ResourceSlice)


#: What the NVIDIA driver writes for one card, and for one of its partitions.
CARD = {
    "name": "gpu-0",
    "attributes": {
        "architecture": {"string": "Hopper"},
        "cudaComputeCapability": {"version": "9.0.0"},
        "resource.kubernetes.io/pcieRoot": {"string": "pci0000:00"},
        "type": {"string": "gpu"},
        "minor": {"int": 0},
    },
    "capacity": {"memory": {"value": "80Gi"}},
    "consumesCounters": [
        {"counterSet": "gpu-0-counters", "counters": {"memory": {"value": "80Gi"}}}
    ],
}
PARTITION = {
    "name": "gpu-0-mig-1g10gb-0",
    "attributes": {"type": {"string": "mig"}, "profile": {"string": "1g.10gb"}},
    "capacity": {"memory": {"value": "10Gi"}},
    "consumesCounters": [
        {"counterSet": "gpu-0-counters", "counters": {"memory": {"value": "10Gi"}}}
    ],
}


def test_a_card_of_the_nvidia_driver() -> None:
    part = device_slice(published(CARD, PARTITION, generation=3))
    assert (part.driver, part.pool, part.generation, part.pool_slices) == (
        "gpu.nvidia.com",
        "n0",
        3,
        1,
    )
    card = part.devices[0]
    assert card.attributes["minor"] == 0
    assert isinstance(card.attributes["cudaComputeCapability"], Version)
    assert not isinstance(card.attributes["architecture"], Version)
    assert card.capacity == {"memory": DeviceCapacity(value=Fraction(80 * 2**30))}
    assert card.draws == (
        CounterSet(name="gpu-0-counters", counters=(("memory", Fraction(80 * 2**30)),)),
    )


def test_shared_counters_taints_and_places_of_devices() -> None:
    counters = {"name": "gpu-0-counters", "counters": {"memory": {"value": "80Gi"}}}
    assert device_slice(published(sharedCounters=[counters])).counter_sets == (
        CounterSet(name="gpu-0-counters", counters=(("memory", Fraction(80 * 2**30)),)),
    )
    taint = {
        "key": "xid",
        "value": "79",
        "effect": "NoExecute",
        "timeAdded": "2026-01-01T00:00:00Z",
    }
    each = device_slice(
        published(
            {"name": "a", "nodeName": "n1", "taints": [taint]},
            {"name": "b", "allNodes": True, "allowMultipleAllocations": True},
            perDeviceNodeSelection=True,
        )
    )
    assert each.is_per_device
    assert each.devices[0].taints == (Taint("xid", "79", "NoExecute"),)
    assert [item.node for item in each.devices] == ["n1", ""]
    assert [item.is_shareable for item in each.devices] == [False, True]


def test_what_of_a_capacity_may_be_consumed() -> None:
    policy = {"default": "1Gi", "validRange": {"min": "1Gi", "max": "8Gi", "step": "1Gi"}}
    capacity = {"memory": {"value": "16Gi", "requestPolicy": policy}}
    [device] = device_slice(published({"name": "a", "capacity": capacity})).devices
    gib = Fraction(2**30)
    assert device.capacity["memory"] == DeviceCapacity(
        value=16 * gib, default=gib, minimum=gib, maximum=8 * gib, step=gib
    )


def test_settings_of_a_class() -> None:
    sharing = {"driver": "gpu.nvidia.com", "parameters": {"sharing": {"strategy": "MPS"}}}
    body = {"metadata": {"name": "gpu"}, "spec": {"config": [{"opaque": sharing}]}}
    assert device_class(convert(body, DeviceClass)).settings == (sharing,)


def test_partitions_of_a_card_add_one_gpu_to_the_node() -> None:
    assert dra_gpus([published(CARD, PARTITION)]) == {"n0": 1.0}
    assert dra_gpus([published({"name": "a"}, {"name": "b"})]) == {"n0": 2.0}


def test_an_old_generation_adds_no_gpus() -> None:
    old = published({"name": "a"}, {"name": "b"})
    assert dra_gpus([old, published({"name": "a"}, generation=2)]) == {"n0": 1.0}


def test_gpus_that_state_their_node_themselves_count_there() -> None:
    devices = [{"name": "a", "nodeName": "n1"}, {"name": "b", "nodeName": "n2"}, {"name": "c"}]
    assert dra_gpus([published(*devices, perDeviceNodeSelection=True)]) == {"n1": 1.0, "n2": 1.0}
    assert dra_gpus([published({"name": "a"}, allNodes=True)]) == {}


@pytest.mark.parametrize(
    ("text", "devices"),
    [
        ("device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('40Gi')) >= 0", ["gpu-0"]),
        ("device.capacity['gpu.nvidia.com'].memory.isLessThan(quantity('40Gi'))", ["mig"]),
        ("device.capacity['gpu.nvidia.com'].memory == quantity('80Gi')", ["gpu-0"]),
        (
            "device.attributes['gpu.nvidia.com'].cudaComputeCapability"
            ".isGreaterThan(semver('8.9.0'))",
            ["gpu-0"],
        ),
        ("device.attributes['gpu.nvidia.com'].cudaComputeCapability.major() == 9", ["gpu-0"]),
        ("device.attributes['gpu.nvidia.com'].type.upperAscii() == 'MIG'", ["mig"]),
        ("device.attributes['gpu.nvidia.com'].profile.lowerAscii().matches('^1g')", ["mig"]),
        ("!('model' in device.attributes['other.example.com'])", ["gpu-0", "mig"]),
        ("has(device.attributes['other.example.com'].model)", []),
        ("!device.allowMultipleAllocations && isQuantity('1Gi')", ["gpu-0", "mig"]),
        ("device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('much')) > 0", []),
        ("device.attributes['gpu.nvidia.com'].type.compareTo('gpu') == 0", []),
        ("semver('1.0.0-rc.2').isLessThan(semver('1.0.0'))", ["gpu-0", "mig"]),
        ("semver('1.0.0-rc.10').isGreaterThan(semver('1.0.0-rc.9'))", ["gpu-0", "mig"]),
    ],
)
def test_selectors_as_the_documentation_of_drivers_writes_them(
    text: str, devices: list[str]
) -> None:
    matches = matching_devices([text], [published(CARD, {**PARTITION, "name": "mig"})])
    assert sorted(match[3] for match in matches) == devices
