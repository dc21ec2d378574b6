"""Two binders and one reservation: one deletes it because its last user ended, the other begins to use it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from binder.worker import SYNC_EVERY_S
from kube.errors import ConflictError, ServerError
from kube.resources import BINDREQUESTS, CONFIGMAPS, NODES, PODS
from tests.binder.interrupted import InterruptedGateway, Killed, kill
from tests.binder.objects import Harness, fraction_pod, fraction_request, pod, request
from tests.fakes.gateway import FakeGateway

RESERVATIONS = "kai-resource-reservation"
DEVICE = "run.ai/reserve_for_gpu_index"
BEFORE_AND_AFTER = pytest.mark.parametrize("is_answer_lost", [False, True], ids=["before", "after"])
EVERY_WRITE = pytest.mark.parametrize("at", range(10))


def binder_on(gateway: Any) -> Harness:
    """Return a binder whose reservation pods get a device of their own as soon as it waits for one."""
    harness = Harness(gateway)
    cluster: FakeGateway = getattr(gateway, "cluster", gateway)

    def annotate() -> None:
        for name in cluster.names(PODS, RESERVATIONS):
            meta = cluster.raw(PODS, name, RESERVATIONS)["metadata"]
            if DEVICE not in meta["annotations"]:
                patch = {"metadata": {"annotations": {DEVICE: f"GPU-of-{meta['uid']}"}}}
                FakeGateway.patch(cluster, PODS, name, patch, namespace=RESERVATIONS)

    harness.while_waiting.append(annotate)
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
@BEFORE_AND_AFTER
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
@BEFORE_AND_AFTER
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


def change_status(gateway: FakeGateway) -> None:
    """Write the status of the only reservation pod, as its kubelet does at any time."""
    (name,) = gateway.names(PODS, RESERVATIONS)
    change = {"status": {"message": f"seen at {len(gateway.calls)}"}}
    gateway.patch(PODS, name, change, namespace=RESERVATIONS, sub="status")


def test_a_reservation_pod_that_changes_after_it_was_marked_is_deleted_without_a_sweep() -> None:
    gateway, _ = group_between_users()
    interrupted = InterruptedGateway(gateway, 1, False, lambda: change_status(gateway))
    binder_on(interrupted).run()
    assert interrupted.writes > 1
    assert gateway.names(PODS, RESERVATIONS) == []


def test_a_reservation_pod_that_always_changes_is_left_to_the_next_sweep() -> None:
    gateway, binder = group_between_users()
    (name,) = gateway.names(PODS, RESERVATIONS)
    gateway.refuse("delete", "pods", name, ConflictError("changed", status=409))
    binder.run()
    assert gateway.names(PODS, RESERVATIONS) == [name]
    gateway.allow("delete", "pods", name)
    binder.now += SYNC_EVERY_S
    binder.worker.sweep()
    binder.run()
    assert gateway.names(PODS, RESERVATIONS) == []


def test_a_group_that_cannot_be_judged_keeps_no_other_reservation() -> None:
    gateway = FakeGateway()
    gateway.seed(NODES, {"metadata": {"name": "n1"}})
    for name in ("a", "b"):
        gateway.seed(PODS, fraction_pod(name))
        gateway.seed(BINDREQUESTS, fraction_request(name, f"g-{name}"))
    binder = binder_on(gateway).run()
    for name in ("a", "b"):
        gateway.patch(PODS, name, {"status": {"phase": "Failed"}}, namespace="ns", sub="status")
    recovered = binder_on(gateway)
    recovered.watch()
    gateway.fail_next("list", "bindrequests", ServerError("not now", status=500))
    with pytest.raises(ServerError):
        recovered.worker.reservations.sync_all()
    (name,) = gateway.names(PODS, RESERVATIONS)
    assert binder.pod(name, RESERVATIONS)["metadata"]["labels"]["runai-gpu-group"] == "g-a"


def first_work(binder: Harness) -> Callable[[], None]:
    """Take the work that a thread of this binder would do next."""
    work = binder.worker.queue.get_nowait()[2]
    assert work is not None
    return work


@pytest.mark.parametrize("is_ours", [True, False], ids=["own request", "another binder's request"])
def test_a_reservation_goes_although_its_pod_was_deleted_before_its_request_ended(
    is_ours: bool,
) -> None:
    gateway = FakeGateway()
    gateway.seed(NODES, {"metadata": {"name": "n1"}})
    gateway.seed(PODS, fraction_pod("p"))
    request_without_owner = fraction_request("p", "g1")
    del request_without_owner["metadata"]["ownerReferences"]  # so it stays after its pod
    gateway.seed(BINDREQUESTS, request_without_owner)
    reporter = binder_on(gateway)
    reporter.watch()
    first_work(reporter)()
    report = first_work(reporter)
    gateway.delete(PODS, "p", namespace="ns", grace_period_s=0)
    watching = reporter if is_ours else binder_on(gateway)
    watching.worker._busy.add("ns/p")  # it leaves the request to the reporter
    watching.watch()
    watching.work()
    assert len(gateway.names(PODS, RESERVATIONS)) == 1, "the open request keeps it"
    report()
    for _ in range(2):
        watching.work()
        watching.watch()
    assert gateway.names(PODS, RESERVATIONS) == []


@pytest.mark.parametrize("at", range(2))
@BEFORE_AND_AFTER
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
