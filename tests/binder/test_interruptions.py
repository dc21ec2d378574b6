"""A binder may die or stand still between any two steps: the pod is bound once, or everything is taken back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from binder.turns import CLAIM_S
from binder.worker import SYNC_EVERY_S
from kube.errors import ForbiddenError
from kube.keys import DELETE_PROTECTION
from kube.resources import (
    BINDREQUESTS,
    CONFIGMAPS,
    NODES,
    PODS,
    PVCS,
    PVS,
    RESOURCE_CLAIMS,
    STORAGE_CLASSES,
)
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
CLAIMED = {"resourceClaimAllocations": [{"name": "gpu", "allocation": ALLOCATION}]}


def claiming_pod(reference: dict[str, str], **status: Any) -> dict[str, Any]:
    return pod(spec={"resourceClaims": [{"name": "gpu", **reference}]}, **status)


def volume_pod() -> dict[str, Any]:
    volume = {"name": "books", "persistentVolumeClaim": {"claimName": "books"}}
    return pod(spec={"volumes": [volume]})


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
    "claim": lambda: (
        claiming_pod({"resourceClaimName": "c"}),
        request(**CLAIMED),
        request(node="n2", **CLAIMED),
    ),
    "claim-template": lambda: (
        claiming_pod(
            {"resourceClaimTemplateName": "t"},
            resourceClaimStatuses=[{"name": "gpu", "resourceClaimName": "c"}],
        ),
        request(**CLAIMED),
        request(node="n2", **CLAIMED),
    ),
    "static-volume": lambda: (volume_pod(), request(), request(node="n2")),
    "new-volume": lambda: (volume_pod(), request(), request(node="n2")),
}
#: An upper bound of the writes that a bind or a refused bind of each kind takes. If it takes fewer, the last values of
#: `at` interrupt nothing.
MOST_WRITES = {
    "whole": 5,
    "fraction": 15,
    "two-devices": 19,
    "extended": 12,
    "claim": 8,
    "claim-template": 8,
    "static-volume": 7,
    "new-volume": 7,
}
CLAIM_KINDS = ("extended", "claim", "claim-template")
BEFORE_AND_AFTER = pytest.mark.parametrize("is_answer_lost", [False, True], ids=["before", "after"])
EVERY_WRITE = pytest.mark.parametrize(
    ("kind", "at"), [(kind, at) for kind, most in MOST_WRITES.items() for at in range(most)]
)


def cluster_with(kind: str) -> FakeGateway:
    gateway = FakeGateway()
    gateway.seed(NODES, {"metadata": {"name": "n1"}}, {"metadata": {"name": "n2"}})
    body, first, _ = KINDS[kind]()
    gateway.seed(PODS, body)
    gateway.seed(BINDREQUESTS, first)
    if kind.startswith("claim"):
        gateway.seed(RESOURCE_CLAIMS, {"metadata": {"name": "c", "namespace": "ns"}, "spec": {}})
    if kind.endswith("volume"):
        seed_volume_claim(gateway, has_volume=kind == "static-volume")
    return gateway


def seed_volume_claim(gateway: FakeGateway, *, has_volume: bool) -> None:
    """Add a claim that waits for its first consumer, and perhaps a volume that every node can mount."""
    size = {"storage": "1Gi"}
    gateway.seed(
        STORAGE_CLASSES,
        {
            "metadata": {"name": "fast"},
            "provisioner": "kubernetes.io/no-provisioner" if has_volume else "disks.example.com",
            "volumeBindingMode": "WaitForFirstConsumer",
        },
    )
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "fast"}
    claim = {**spec, "resources": {"requests": size}}
    gateway.seed(
        PVCS,
        {"metadata": {"name": "books", "namespace": "ns", "uid": "uid-books"}, "spec": claim},
    )
    if has_volume:
        gateway.seed(PVS, {"metadata": {"name": "shelf"}, "spec": {**spec, "capacity": size}})


def run_volume_controller(gateway: FakeGateway) -> None:
    """Bind the claim to the volume that names it, or make a volume once it has a node."""
    if "books" not in gateway.names(PVCS, "ns"):
        return
    claim = gateway.raw(PVCS, "books", "ns")
    annotations = claim["metadata"].get("annotations") or {}
    needs_new_volume = "volume.kubernetes.io/selected-node" in annotations
    if needs_new_volume and not gateway.names(PVS):
        spec = {"capacity": {"storage": "1Gi"}, "claimRef": {"uid": "uid-books"}}
        gateway.seed(PVS, {"metadata": {"name": "made"}, "spec": spec})
    for name in gateway.names(PVS):
        reference = gateway.raw(PVS, name)["spec"].get("claimRef") or {}
        if reference.get("uid") == "uid-books" and not claim["spec"].get("volumeName"):
            bound = {"spec": {"volumeName": name}, "status": {"phase": "Bound"}}
            FakeGateway.patch(gateway, PVCS, "books", bound, namespace="ns")
            FakeGateway.patch(
                gateway, PVCS, "books", {"status": bound["status"]}, namespace="ns", sub="status"
            )


def kill_and_recover(
    gateway: FakeGateway, at: int, *, is_answer_lost: bool, is_outdated: bool = False
) -> None:
    """Let a binder die at a write, before it or before its answer arrives, and another one take over.

    Parameters
    ----------
    is_outdated : see `recover`
    """
    try:
        binder_on(InterruptedGateway(gateway, at, is_answer_lost, kill)).run()
    except Killed:
        recover(gateway, is_outdated=is_outdated)


def binder_on(gateway: Any, *, now: float = 0.0) -> Harness:
    """Return a binder process for which others do their part as soon as it waits for them.

    Reservation pods get a device, and volume claims a volume. These writes are not interrupted.
    """
    harness = Harness(gateway, now=now)
    cluster = getattr(gateway, "cluster", gateway)

    def do_the_part_of_others() -> None:
        for name in gateway.names(PODS, RESERVATIONS):
            if DEVICE not in gateway.raw(PODS, name, RESERVATIONS)["metadata"]["annotations"]:
                patch = {"metadata": {"annotations": {DEVICE: f"GPU-{name[-4:]}"}}}
                FakeGateway.patch(cluster, PODS, name, patch, namespace=RESERVATIONS)
        run_volume_controller(cluster)

    harness.while_waiting.append(do_the_part_of_others)
    return harness


def recover(gateway: FakeGateway, *, is_outdated: bool = False) -> Harness:
    """Start another binder and let it work until the dead one's claim counts no more.

    Parameters
    ----------
    is_outdated : it knows that the scheduler that made the request has lost its shard
    """
    binder = binder_on(gateway)
    binder.watch()
    if is_outdated:
        binder.worker._outdated.add("ns/p")
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
    assert len(gateway.names(RESOURCE_CLAIMS, "ns")) == (1 if kind in CLAIM_KINDS else 0)
    if kind.startswith("claim"):
        assert_claim_serves_the_pod(gateway)
    if kind.endswith("volume"):
        assert gateway.raw(PVCS, "books", "ns")["status"]["phase"] == "Bound"
        assert len(gateway.names(PVS)) == 1
    assert gateway.raw(BINDREQUESTS, "p", "ns")["status"]["phase"] == "Succeeded"
    # A binder that did not see the answer may try again; the server refuses to bind a bound pod.
    assert any(call[0] == "bind" for call in gateway.calls)


def assert_claim_serves_the_pod(gateway: FakeGateway) -> None:
    """Check that the claim has its devices, is reserved once, and is protected once."""
    claim = gateway.raw(RESOURCE_CLAIMS, "c", "ns")
    assert claim["status"]["allocation"] == ALLOCATION
    assert [user["uid"] for user in claim["status"]["reservedFor"]] == ["uid-p"]
    assert claim["metadata"]["finalizers"] == [DELETE_PROTECTION]


def assert_taken_back(gateway: FakeGateway, kind: str) -> None:
    body = gateway.raw(PODS, "p", "ns")
    assert "nodeName" not in body["spec"]
    assert not body["metadata"].get("labels")
    assert gateway.names(PODS, RESERVATIONS) == []
    assert gateway.names(CONFIGMAPS, "ns") == []
    # A claim that the pod names keeps its devices for the next attempt, as in KAI; one that the binder made is deleted.
    assert gateway.names(RESOURCE_CLAIMS, "ns") == (["c"] if kind.startswith("claim") else [])
    assert gateway.raw(BINDREQUESTS, "p", "ns")["status"]["phase"] == "Failed"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("is_refused", [False, True])
def test_no_bind_takes_more_writes_than_are_interrupted(kind: str, is_refused: bool) -> None:
    gateway = cluster_with(kind)
    if is_refused:
        gateway.refuse("bind", "pods", "p", ForbiddenError("not you"))
    counted = InterruptedGateway(gateway, -1, False, kill)
    binder_on(counted).run()
    assert counted.writes <= MOST_WRITES[kind]


@EVERY_WRITE
@BEFORE_AND_AFTER
def test_after_a_kill_at_any_write_the_next_binder_binds_the_pod_once(
    kind: str, at: int, is_answer_lost: bool
) -> None:
    gateway = cluster_with(kind)
    kill_and_recover(gateway, at, is_answer_lost=is_answer_lost)
    assert_bound_once(gateway, kind)


@EVERY_WRITE
@BEFORE_AND_AFTER
def test_after_a_kill_at_any_write_of_a_refused_bind_everything_is_taken_back(
    kind: str, at: int, is_answer_lost: bool
) -> None:
    gateway = cluster_with(kind)
    gateway.refuse("bind", "pods", "p", ForbiddenError("not you"))
    kill_and_recover(gateway, at, is_answer_lost=is_answer_lost)
    assert_taken_back(gateway, kind)


@EVERY_WRITE
@BEFORE_AND_AFTER
def test_after_a_kill_at_any_write_a_request_of_a_former_scheduler_leaves_nothing_behind(
    kind: str, at: int, is_answer_lost: bool
) -> None:
    gateway = cluster_with(kind)
    kill_and_recover(gateway, at, is_answer_lost=is_answer_lost, is_outdated=True)
    if "nodeName" in gateway.raw(PODS, "p", "ns")["spec"]:
        assert_bound_once(gateway, kind)
    else:
        assert_taken_back(gateway, kind)


@EVERY_WRITE
@BEFORE_AND_AFTER
def test_a_binder_that_stood_still_changes_nothing_that_another_did_meanwhile(
    kind: str, at: int, is_answer_lost: bool
) -> None:
    gateway = cluster_with(kind)

    def take_over() -> None:
        recover(gateway)

    binder_on(InterruptedGateway(gateway, at, is_answer_lost, take_over)).run()
    assert_bound_once(gateway, kind)


@EVERY_WRITE
@BEFORE_AND_AFTER
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
        no_failures = {"metadata": {"annotations": {"kaiweb.dev/bind-failures": "{}"}}}
        gateway.patch(PODS, "p", no_failures, namespace="ns")
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
