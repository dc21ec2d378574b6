"""Two binders and one reservation: one deletes it because its last user ended, the other begins to use it."""

from __future__ import annotations

from typing import Any

import pytest

from kube.resources import BINDREQUESTS, CONFIGMAPS, NODES, PODS
from tests.binder.interrupted import InterruptedGateway, Killed, kill
from tests.binder.objects import Harness, fraction_pod, fraction_request, pod, request
from tests.fakes.gateway import FakeGateway

RESERVATIONS = "kai-resource-reservation"
DEVICE = "run.ai/reserve_for_gpu_index"
EVERY_BOUNDARY = pytest.mark.parametrize("is_answer_lost", [False, True], ids=["before", "after"])
EVERY_WRITE = pytest.mark.parametrize("at", range(10))


def binder_on(gateway: Any) -> Harness:
    """Return a binder whose reservation pods get a device of their own as soon as it waits for one."""
    harness = Harness(gateway)
    cluster: FakeGateway = getattr(gateway, "cluster", gateway)

    def allocate() -> None:
        for name in cluster.names(PODS, RESERVATIONS):
            meta = cluster.raw(PODS, name, RESERVATIONS)["metadata"]
            if DEVICE not in meta["annotations"]:
                marks = {"metadata": {"annotations": {DEVICE: f"GPU-of-{meta['uid']}"}}}
                FakeGateway.patch(cluster, PODS, name, marks, namespace=RESERVATIONS)

    harness.while_waiting.append(allocate)
    return harness


def group_between_users() -> tuple[FakeGateway, Harness]:
    """Return a cluster in which the user of g1 has ended and the next is decided, and a binder that saw neither."""
    gateway = FakeGateway()
    gateway.seed(NODES, {"metadata": {"name": "n1"}})
    gateway.seed(PODS, fraction_pod("old"))
    gateway.seed(BINDREQUESTS, fraction_request("old", "g1"))
    binder = binder_on(gateway).run()
    gateway.patch(PODS, "old", {"status": {"phase": "Succeeded"}}, namespace="ns", sub="status")
    return gateway, binder


def decide_for_the_next(gateway: FakeGateway) -> None:
    gateway.seed(PODS, fraction_pod("next"))
    gateway.seed(BINDREQUESTS, fraction_request("next", "g1"))


def assert_next_is_protected(gateway: FakeGateway) -> None:
    """Check that the next user is bound, and its device is the one of the only reservation pod."""
    assert gateway.raw(PODS, "next", "ns")["spec"]["nodeName"] == "n1"
    (name,) = gateway.names(PODS, RESERVATIONS)
    annotations = gateway.raw(PODS, name, RESERVATIONS)["metadata"]["annotations"]
    data = gateway.raw(CONFIGMAPS, "next-abcdefg-shared-gpu-0", "ns")["data"]
    assert data["NVIDIA_VISIBLE_DEVICES"] == annotations[DEVICE]
    assert "kaiweb.dev/unused" not in annotations


def test_two_binders_that_carry_out_one_request_announce_its_pod_once() -> None:
    gateway = FakeGateway()
    gateway.seed(NODES, {"metadata": {"name": "n1"}})
    gateway.seed(PODS, pod())
    gateway.seed(BINDREQUESTS, request())
    binders = [Harness(gateway), Harness(gateway)]
    for binder in binders:
        binder.watch()
    for binder in binders:
        binder.work()
        binder.worker.recorder.flush()
    assert sorted(reason for _, reason, _ in binders[0].events()) == ["Bound", "Scheduled"]
    assert binders[0].status()["phase"] == "Succeeded"


def test_a_request_claimed_meanwhile_is_reported_by_the_next_sweep() -> None:
    gateway = FakeGateway()
    gateway.seed(NODES, {"metadata": {"name": "n1"}})
    gateway.seed(PODS, pod())
    gateway.seed(BINDREQUESTS, request())
    binder = Harness(gateway)
    binder.watch()
    claim = {"metadata": {"annotations": {"kaiweb.dev/binder": "another"}}}
    gateway.patch(BINDREQUESTS, "p", claim, namespace="ns")
    binder.work()
    assert (binder.pod()["spec"]["nodeName"], binder.status()) == ("n1", {})
    binder.watch()
    binder.worker.sweep()
    binder.run()
    assert binder.status()["phase"] == "Succeeded"


@EVERY_WRITE
@EVERY_BOUNDARY
def test_a_reservation_taken_into_use_is_not_deleted_by_a_binder_with_an_old_view(
    at: int, is_answer_lost: bool
) -> None:
    gateway, other = group_between_users()
    other.watch()  # shows the end of the old user, not the next request
    decide_for_the_next(gateway)
    interrupted = InterruptedGateway(gateway, at, is_answer_lost, other.work)
    binder_on(interrupted).run()
    assert_next_is_protected(gateway)


@EVERY_WRITE
@EVERY_BOUNDARY
def test_a_reservation_is_taken_into_use_at_any_moment_of_its_deletion(
    at: int, is_answer_lost: bool
) -> None:
    gateway, _ = group_between_users()
    user = binder_on(gateway)
    user.watch()

    def bind_the_next() -> None:
        decide_for_the_next(gateway)
        user.run()

    interrupted = InterruptedGateway(gateway, at, is_answer_lost, bind_the_next)
    binder_on(interrupted).run()
    if interrupted.writes <= at:
        bind_the_next()
    assert_next_is_protected(gateway)


@pytest.mark.parametrize("at", range(2))
@EVERY_BOUNDARY
def test_a_binder_killed_while_it_deletes_a_reservation_leaves_none_for_good(
    at: int, is_answer_lost: bool
) -> None:
    gateway, _ = group_between_users()
    with pytest.raises(Killed):
        binder_on(InterruptedGateway(gateway, at, is_answer_lost, kill)).run()
    recovered = binder_on(gateway)
    recovered.watch()
    recovered.worker.reservations.sync_all()
    assert gateway.names(PODS, RESERVATIONS) == []


def test_a_reservation_pod_that_the_kubelet_refused_fails_the_bind_at_once() -> None:
    gateway = FakeGateway()
    gateway.seed(NODES, {"metadata": {"name": "n1"}})
    gateway.seed(PODS, fraction_pod("p"))
    gateway.seed(BINDREQUESTS, fraction_request("p", "g1"))
    binder = Harness(gateway)

    def refuse() -> None:
        status = {
            "phase": "Failed",
            "reason": "UnexpectedAdmissionError",
            "message": "Allocate failed due to no devices available",
        }
        for name in gateway.names(PODS, RESERVATIONS):
            gateway.patch(PODS, name, {"status": status}, namespace=RESERVATIONS, sub="status")

    binder.while_waiting.append(refuse)
    binder.run()
    assert binder.now < 0.1
    assert binder.status()["reason"].endswith(
        "no device: Allocate failed due to no devices available"
    )
    assert gateway.names(PODS, RESERVATIONS) == []


def test_the_running_users_of_a_lost_reservation_are_deleted_when_it_goes() -> None:
    gateway = FakeGateway()
    gateway.seed(NODES, {"metadata": {"name": "n1"}})
    gateway.seed(PODS, fraction_pod("p"))
    gateway.seed(BINDREQUESTS, fraction_request("p", "g1"))
    binder = binder_on(gateway).run()
    gateway.patch(PODS, "p", {"status": {"phase": "Running"}}, namespace="ns", sub="status")
    (name,) = gateway.names(PODS, RESERVATIONS)
    gateway.delete(PODS, name, namespace=RESERVATIONS, grace_period_s=0)
    binder.run()
    assert "deletionTimestamp" in binder.pod("p")["metadata"]
