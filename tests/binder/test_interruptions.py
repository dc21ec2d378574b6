"""A binder may die or stand still between any two steps: the pod is bound once, or everything is taken back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from binder.turns import CLAIM_S
from binder.worker import SYNC_EVERY_S
from kube.errors import ForbiddenError
from kube.resources import BINDREQUESTS, CONFIGMAPS, NODES, PODS, RESOURCE_CLAIMS
from tests.binder.interrupted import InterruptedGateway, Killed, kill
from tests.binder.objects import Harness, fraction_pod, fraction_request, pod, request
from tests.fakes.gateway import FakeGateway

RESERVATIONS = "kai-resource-reservation"
DEVICE = "run.ai/reserve_for_gpu_index"
ALLOCATION = {
    "devices": {
        "results": [{"request": "r", "driver": "gpu.example.com", "pool": "p", "device": "d0"}]
    }
}
EXTENDED = {
    "allocation": ALLOCATION,
    "deviceRequests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}],
}
#: kind -> (the pod, its request for node n1, its request for node n2)
KINDS: dict[str, Callable[[], tuple[Any, Any, Any]]] = {
    "whole": lambda: (pod(), request(), request(node="n2")),
    "fraction": lambda: (
        fraction_pod("p"),
        fraction_request("p", "g1"),
        fraction_request("p", "h1", node="n2"),
    ),
    "two-devices": lambda: (
        fraction_pod("p", devices=2),
        fraction_request("p", "g1", "g2"),
        fraction_request("p", "h1", "h2", node="n2"),
    ),
    "extended": lambda: (
        pod(),
        request(extendedResourceClaimAllocation=EXTENDED),
        request(node="n2", extendedResourceClaimAllocation=EXTENDED),
    ),
}
#: More than any of them needs; a number beyond the last write interrupts nothing.
MOST_WRITES = 14
EVERY_BOUNDARY = pytest.mark.parametrize("is_answer_lost", [False, True], ids=["before", "after"])
EVERY_WRITE = pytest.mark.parametrize("at", range(MOST_WRITES))
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)


def cluster_with(kind: str) -> FakeGateway:
    gateway = FakeGateway()
    gateway.seed(NODES, {"metadata": {"name": "n1"}}, {"metadata": {"name": "n2"}})
    body, first, _ = KINDS[kind]()
    gateway.seed(PODS, body)
    gateway.seed(BINDREQUESTS, first)
    return gateway


def binder_on(gateway: Any, *, now: float = 0.0) -> Harness:
    """Return a binder process whose reservation pods get a device as soon as it waits for one."""
    harness = Harness(gateway, now=now)

    def tell() -> None:
        for name in gateway.names(PODS, RESERVATIONS):
            if DEVICE not in (gateway.raw(PODS, name, RESERVATIONS)["metadata"]["annotations"]):
                marks = {"metadata": {"annotations": {DEVICE: f"GPU-{name[-4:]}"}}}
                FakeGateway.patch(
                    getattr(gateway, "cluster", gateway), PODS, name, marks, namespace=RESERVATIONS
                )

    harness.while_waiting.append(tell)
    return harness


def recover(gateway: FakeGateway) -> Harness:
    """Start another binder and let it work until the dead one's claim counts no more."""
    binder = binder_on(gateway)
    binder.watch()
    binder.worker.reservations.sync_all()
    binder.run()
    binder.now += CLAIM_S + 1
    binder.worker.sweep()
    return binder.run()


def assert_bound_once(gateway: FakeGateway, kind: str, node: str = "n1") -> None:
    _, first, second = KINDS[kind]()
    groups = (first if node == "n1" else second)["spec"].get("selectedGPUGroups", [])
    body = gateway.raw(PODS, "p", "ns")
    assert body["spec"]["nodeName"] == node
    assert sorted((body["metadata"].get("labels") or {}).values()) == sorted(groups)
    holders = [gateway.raw(PODS, name, RESERVATIONS) for name in gateway.names(PODS, RESERVATIONS)]
    assert sorted(holder["metadata"]["labels"]["runai-gpu-group"] for holder in holders) == sorted(
        groups
    )
    assert {holder["spec"]["nodeName"] for holder in holders} <= {node}
    maps = gateway.names(CONFIGMAPS, "ns")
    assert len(maps) == (2 if groups else 0)
    assert len(gateway.names(RESOURCE_CLAIMS, "ns")) == (1 if kind == "extended" else 0)
    assert gateway.raw(BINDREQUESTS, "p", "ns")["status"]["phase"] == "Succeeded"
    binds = [call for call in gateway.calls if call[0] == "bind"]
    assert len(binds) >= 1


def assert_taken_back(gateway: FakeGateway) -> None:
    body = gateway.raw(PODS, "p", "ns")
    assert "nodeName" not in body["spec"]
    assert not body["metadata"].get("labels")
    assert gateway.names(PODS, RESERVATIONS) == []
    assert gateway.names(CONFIGMAPS, "ns") == []
    assert gateway.names(RESOURCE_CLAIMS, "ns") == []
    assert gateway.raw(BINDREQUESTS, "p", "ns")["status"]["phase"] == "Failed"


@EVERY_KIND
@EVERY_WRITE
@EVERY_BOUNDARY
def test_after_a_kill_at_any_write_the_next_binder_binds_the_pod_once(
    kind: str, at: int, is_answer_lost: bool
) -> None:
    gateway = cluster_with(kind)
    dying = InterruptedGateway(gateway, at, is_answer_lost, kill)
    try:
        binder_on(dying).run()
    except Killed:
        recover(gateway)
    assert_bound_once(gateway, kind)


@EVERY_KIND
@EVERY_WRITE
@EVERY_BOUNDARY
def test_after_a_kill_at_any_write_of_a_refused_bind_everything_is_taken_back(
    kind: str, at: int, is_answer_lost: bool
) -> None:
    gateway = cluster_with(kind)
    gateway.refuse("bind", "pods", "p", ForbiddenError("not you"))
    dying = InterruptedGateway(gateway, at, is_answer_lost, kill)
    try:
        binder_on(dying).run()
    except Killed:
        recover(gateway)
    assert_taken_back(gateway)


@EVERY_KIND
@EVERY_WRITE
@EVERY_BOUNDARY
def test_a_binder_that_stood_still_changes_nothing_that_another_did_meanwhile(
    kind: str, at: int, is_answer_lost: bool
) -> None:
    gateway = cluster_with(kind)
    stopped = InterruptedGateway(gateway, at, is_answer_lost, lambda: _take_over(gateway))
    binder_on(stopped).run()
    assert_bound_once(gateway, kind)


def _take_over(gateway: FakeGateway) -> None:
    recover(gateway)


@EVERY_KIND
@EVERY_WRITE
@EVERY_BOUNDARY
def test_a_binder_that_stood_still_does_not_bind_to_a_node_given_up_meanwhile(
    kind: str, at: int, is_answer_lost: bool
) -> None:
    gateway = cluster_with(kind)

    def fail_and_move() -> None:
        """Let another binder fail, and the scheduler decide for n2, unless the pod is bound."""
        gateway.refuse("bind", "pods", "p", ForbiddenError("n1 is broken"))
        recover(gateway)
        gateway.allow("bind", "pods", "p")
        if gateway.raw(PODS, "p", "ns")["spec"].get("nodeName"):
            return
        memory = {"metadata": {"annotations": {"kaiweb.dev/bind-failures": "{}"}}}
        gateway.patch(PODS, "p", memory, namespace="ns")
        gateway.delete(BINDREQUESTS, "p", namespace="ns")
        gateway.seed(BINDREQUESTS, KINDS[kind]()[2])
        recover(gateway)

    stopped = InterruptedGateway(gateway, at, is_answer_lost, fail_and_move)
    binder = binder_on(stopped).run()
    is_moved = any(call == ("delete", "bindrequests", "p") for call in gateway.calls)
    binder.now += SYNC_EVERY_S
    binder.worker.sweep()
    binder.run()
    assert_bound_once(gateway, kind, "n2" if is_moved else "n1")
