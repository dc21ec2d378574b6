"""DeviceTaintRules taint devices as a taint in their slice does."""

from __future__ import annotations

from typing import Any

import pytest

from kube.objects.devices import DeviceTaintRule
from kube.objects.meta import convert
from kube.resources import DEVICE_CLASSES, DEVICE_TAINT_RULES, NODES, RESOURCE_SLICES
from scheduler.core.cluster.constraints import Taint
from scheduler.load.taint_rules import taint_rule
from tests.scheduler.load.objects import meta, node
from tests.scheduler.load.test_claims import Cluster, build, gpu_slice

TAINT = {"key": "xid", "value": "79", "effect": "NoSchedule"}


def rule(selector: dict[str, Any] | None, **taint: str) -> dict[str, Any]:
    spec: dict[str, Any] = {"taint": TAINT | taint}
    if selector is not None:
        spec["deviceSelector"] = selector
    return {"metadata": meta("rule"), "spec": spec}


def tainted(cluster: Cluster) -> list[str]:
    [only] = build(cluster).devices.slices
    return [device.name for device in only.devices if device.taints]


def two_devices() -> Cluster:
    return Cluster().put(NODES, node("n0", gpus=0)).put(RESOURCE_SLICES, gpu_slice(2))


@pytest.mark.parametrize(
    ("selector", "devices"),
    [
        (None, []),
        ({}, ["d0", "d1"]),
        ({"driver": "gpu.x"}, ["d0", "d1"]),
        ({"driver": "gpu.y"}, []),
        ({"pool": "n0", "device": "d1"}, ["d1"]),
        ({"pool": "n1", "device": "d1"}, []),
        ({"driver": "gpu.x", "device": "d2"}, []),
    ],
)
def test_a_rule_taints_the_devices_that_meet_all_of_its_selector(
    selector: dict[str, Any] | None, devices: list[str]
) -> None:
    assert tainted(two_devices().put(DEVICE_TAINT_RULES, rule(selector))) == devices


@pytest.mark.parametrize(
    ("selector", "devices"),
    [
        ({"deviceClassName": "second"}, ["d1"]),
        ({"deviceClassName": "unknown"}, []),
        ({"selectors": [{"cel": {"expression": 'device.attributes["gpu.x"].index == 0'}}]}, ["d0"]),
    ],
)
def test_rules_of_kubernetes_1_34_may_name_a_class_or_selectors(
    selector: dict[str, Any], devices: list[str]
) -> None:
    expression = 'device.attributes["gpu.x"].index == 1'
    second = {
        "metadata": meta("second"),
        "spec": {"selectors": [{"cel": {"expression": expression}}]},
    }
    cluster = two_devices().put(DEVICE_CLASSES, second)
    assert tainted(cluster.put(DEVICE_TAINT_RULES, rule(selector))) == devices


def test_a_rule_that_comes_and_changes_is_seen_in_the_next_snapshot() -> None:
    cluster = two_devices()
    assert tainted(cluster) == []
    cluster.put(DEVICE_TAINT_RULES, rule({"device": "d0"}, effect="NoExecute"))
    [only] = build(cluster).devices.slices
    assert [device.taints for device in only.devices] == [(Taint("xid", "79", "NoExecute"),), ()]


def test_a_rule_without_a_selector_selects_nothing() -> None:
    assert not taint_rule(convert(rule(None), DeviceTaintRule)).selects
