"""There is one leader at a time; another candidate takes over after the lease has expired."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from kube.errors import ServerError
from kube.lease import Elector, candidate_identity
from kube.resources import LEASES
from tests.fakes.gateway import FakeGateway

START = datetime(2026, 1, 1, tzinfo=UTC)


def step(elector: Elector, now: float) -> bool:
    return elector.step(now, START + timedelta(seconds=now))


def pair() -> tuple[FakeGateway, Elector, Elector]:
    gateway = FakeGateway()
    return gateway, Elector(gateway, "sys", "kai", "one"), Elector(gateway, "sys", "kai", "two")


def test_second_candidate_waits_while_the_first_renews() -> None:
    gateway, first, second = pair()
    assert step(first, 0) is True
    for now in range(5, 60, 5):
        assert step(first, now) is True
        assert step(second, now + 1) is False
    assert gateway.raw(LEASES, "kai", "sys")["spec"]["leaseTransitions"] == 0
    assert gateway.raw(LEASES, "kai", "sys")["spec"]["acquireTime"] == "2026-01-01T00:00:00.000000Z"


def test_a_leader_that_stops_renewing_is_replaced_after_the_lease_duration() -> None:
    gateway, first, second = pair()
    step(first, 0)
    assert [step(second, now) for now in (3, 8, 13, 17.9)] == [False, False, False, False]
    assert step(second, 18) is True
    assert gateway.raw(LEASES, "kai", "sys")["spec"]["holderIdentity"] == "two"
    assert gateway.raw(LEASES, "kai", "sys")["spec"]["leaseTransitions"] == 1


def test_a_leader_that_cannot_renew_steps_down_before_the_lease_expires() -> None:
    gateway, first, _ = pair()
    step(first, 0)
    for _ in range(2):
        gateway.fail_next("get", "leases", ServerError("down"))
    assert step(first, 5) is True
    assert step(first, 10) is False


def test_a_released_lease_can_be_taken_at_once() -> None:
    _, first, second = pair()
    step(first, 0)
    first.release(START)
    assert not first.is_leader
    assert step(second, 1) is True


def test_each_candidate_identity_is_unique() -> None:
    assert candidate_identity() != candidate_identity()
