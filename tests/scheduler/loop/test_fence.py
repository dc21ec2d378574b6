"""Fence numbers rise whatever happens to clock and broker, and the binder goes on accepting them."""

from __future__ import annotations

import pytest

from binder.reconcile import Fences
from kube.errors import ConflictError, ServerError
from kube.gateway import Body
from kube.keys import FENCE
from kube.objects.bindrequest import BindRequest
from kube.objects.meta import convert
from kube.resources import LEASES
from scheduler.loop.fence import ATTEMPTS, NAMESPACE, FenceLease
from tests.fakes.gateway import FakeGateway


class WallClock:
    def __init__(self) -> None:
        self.now_s = 1_800_000_000.9

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def wall() -> WallClock:
    return WallClock()


def lease(gateway: FakeGateway, wall: WallClock, shard: str = "default") -> FenceLease:
    """Return what a scheduler makes that has just started: it remembers nothing."""
    return FenceLease(gateway=gateway, shard=shard, holder="host_1", wall=wall)


def test_numbers_rise_from_holder_to_holder_and_when_the_clock_steps_back(wall: WallClock) -> None:
    gateway = FakeGateway()
    fences = [lease(gateway, wall).next_fence(), lease(gateway, wall).next_fence()]
    wall.now_s -= 6_000
    fences.append(lease(gateway, wall).next_fence())
    wall.now_s += 12_000
    fences.append(lease(gateway, wall).next_fence())
    assert fences == [1_800_000_000, 1_800_000_001, 1_800_000_002, 1_800_006_000]


def test_the_number_is_kept_in_a_lease_of_the_shard(wall: WallClock) -> None:
    gateway = FakeGateway()
    fence = lease(gateway, wall, "a100").next_fence()
    body: Body = gateway.get(LEASES, "kaiweb-fence-a100", as_type=dict, namespace=NAMESPACE)
    assert body["metadata"]["annotations"] == {FENCE: str(fence)}
    assert body["spec"] == {"holderIdentity": "host_1"}


def test_a_number_taken_meanwhile_by_another_process_is_not_given_again(wall: WallClock) -> None:
    gateway = FakeGateway()
    first = lease(gateway, wall).next_fence()
    gateway.fail_next("replace", "leases", ConflictError("changed"))
    assert lease(gateway, wall).next_fence() == first + 1


def test_without_the_cluster_there_is_no_number(wall: WallClock) -> None:
    gateway = FakeGateway()
    gateway.fail_next("get", "leases", ServerError("away"))
    with pytest.raises(ServerError):
        lease(gateway, wall).next_fence()
    lease(gateway, wall).next_fence()
    for _ in range(ATTEMPTS):
        gateway.fail_next("replace", "leases", ConflictError("changed"))
    with pytest.raises(ConflictError, match="kai-scheduler/kaiweb-fence-default"):
        lease(gateway, wall).next_fence()


def test_the_binder_accepts_a_scheduler_that_started_after_the_clock_stepped_back(
    wall: WallClock,
) -> None:
    gateway, fences = FakeGateway(), Fences()
    refused = []
    for version in range(1, 4):
        fence = lease(gateway, wall).next_fence()
        metadata = {
            "name": f"pod-{version}",
            "namespace": "team",
            "resourceVersion": str(version),
            "annotations": {FENCE: str(fence)},
        }
        refused.append(fences.record(convert({"metadata": metadata}, BindRequest)))
        wall.now_s -= 6_000  # and broker and scheduler are restarted
    assert refused == [False, False, False]
