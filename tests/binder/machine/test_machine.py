"""The state machine with a fixed seed and few sequences, and a test that its checks fail on broken clusters.

`make fuzz-devices` runs many seeds.
"""

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


def _delete_reservation(cluster: DeviceCluster) -> None:
    (holder,) = cluster.holders()
    name = holder["metadata"]["name"]
    cluster.delete(PODS, name, namespace=RESERVATIONS, grace_period_s=0)


def _overcommit_node(cluster: DeviceCluster) -> None:
    """Bind a pod of two whole GPUs to a node of two, of which one is reserved for a fraction."""
    cluster.arrive("p7", "two", "low")
    cluster.bind("ns", "p7", pod_uid=cluster.raw(PODS, "p7", "ns")["metadata"]["uid"], node="g0")


def _delete_claim(cluster: DeviceCluster) -> None:
    cluster.delete(RESOURCE_CLAIMS, "of-p0", namespace="ns")
    del cluster.objects[RESOURCE_CLAIMS, "ns", "of-p0"]


@pytest.mark.parametrize(
    ("kind", "break_cluster", "text"),
    [
        ("half", _delete_reservation, "no reservation of"),
        ("half", _overcommit_node, "GPUs of pods and reservations"),
        ("claim", _delete_claim, "p0 has 0 claims"),
    ],
)
def test_the_checks_fail_on_a_broken_cluster(
    kind: str, break_cluster: Callable[[DeviceCluster], None], text: str
) -> None:
    machine = Devices()
    machine.begin([kind])
    check_devices(machine.cluster)
    break_cluster(machine.cluster)
    with pytest.raises(AssertionError, match=text):
        check_devices(machine.cluster)


def test_eight_of_sixteen_half_gpu_pods_share_the_four_devices_under_one_reservation_each() -> None:
    machine = Devices()
    machine.begin([])
    for number in range(16):
        machine.cluster.arrive(f"h{number:02d}", "half", "low")
    for _ in range(6):
        machine._round(seconds=11)
    bound = [body for body in machine.cluster.users() if node_of(body)]
    assert len(bound) == 8
    assert len(machine.cluster.holders()) == 4
    # One creation per device and no deletion: no reservation was given up and made anew.
    calls = [call for call in machine.cluster.calls if call[2].startswith("gpu-reservation-")]
    assert sorted(verb for verb, *_ in calls if verb in ("create", "delete")) == ["create"] * 4
