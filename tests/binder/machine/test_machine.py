"""A short run with a fixed seed, and proof that the checks notice; `make fuzz-devices` runs many."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kube.resources import PODS, RESOURCE_CLAIMS
from tests.binder.machine.__main__ import run
from tests.binder.machine.checks import check_devices
from tests.binder.machine.cluster import RESERVATIONS, DeviceCluster, node_of
from tests.binder.machine.machine import Devices


def test_no_device_is_given_twice_and_nothing_is_left_over() -> None:
    assert run(seed=1, sequences=15) == ""


def _lose_reservation(cluster: DeviceCluster) -> None:
    (holder,) = cluster.holders()
    name = holder["metadata"]["name"]
    cluster.delete(PODS, name, namespace=RESERVATIONS, grace_period_s=0)


def _bind_two_more(cluster: DeviceCluster) -> None:
    cluster.arrive("p7", "two", "low")
    cluster.bind("ns", "p7", pod_uid=cluster.raw(PODS, "p7", "ns")["metadata"]["uid"], node="g0")


def _lose_claim(cluster: DeviceCluster) -> None:
    cluster.delete(RESOURCE_CLAIMS, "of-p0", namespace="ns")
    del cluster.objects[RESOURCE_CLAIMS, "ns", "of-p0"]


@pytest.mark.parametrize(
    ("kind", "break_it", "text"),
    [
        ("half", _lose_reservation, "no reservation of"),
        ("half", _bind_two_more, "GPUs of pods and reservations"),
        ("claim", _lose_claim, "p0 has 0 claims"),
    ],
)
def test_the_checks_notice(kind: str, break_it: Callable[[DeviceCluster], None], text: str) -> None:
    machine = Devices()
    machine.begin([kind])
    check_devices(machine.cluster)
    break_it(machine.cluster)
    with pytest.raises(AssertionError, match=text):
        check_devices(machine.cluster)


def test_of_sixteen_half_gpu_pods_eight_fill_four_devices_and_no_reservation_is_replaced() -> None:
    machine = Devices()
    machine.begin([])
    for number in range(16):
        machine.cluster.arrive(f"h{number:02d}", "half", "low")
    for _ in range(6):
        machine._round(11)
    bound = [body for body in machine.cluster.users() if node_of(body)]
    assert len(bound) == 8
    assert len(machine.cluster.holders()) == 4
    calls = [call for call in machine.cluster.calls if call[2].startswith("gpu-reservation-")]
    assert sorted(verb for verb, *_ in calls if verb in ("create", "delete")) == ["create"] * 4
