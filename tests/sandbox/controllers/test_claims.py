"""The resource-claim controller: what pods get from templates, and how devices come back."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from kube.errors import ServerError
from kube.gateway import EventType, WatchEvent
from kube.keys import DELETE_PROTECTION
from kube.objects.devices import ResourceClaim
from kube.objects.pod import Pod
from kube.resources import PODS, RESOURCE_CLAIMS
from sandbox.controllers.claims import CLAIM_OF_POD, CLAIM_TEMPLATES, ClaimController
from tests.fakes.gateway import FakeGateway

SPEC = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "lens"}}]}}
TEMPLATE = {"metadata": {"labels": {"team": "a"}, "annotations": {"note": "b"}}, "spec": SPEC}


def pod(name: str, *, phase: str = "Pending", templates: tuple[str, ...] = ()) -> dict[str, Any]:
    claims = [{"name": template, "resourceClaimTemplateName": "t"} for template in templates]
    return {
        "metadata": {"name": name, "namespace": "ns", "uid": f"uid-{name}"},
        "spec": {"resourceClaims": claims},
        "status": {"phase": phase},
    }


def claim(name: str, *pods: str, owner: str = "", finalizers: tuple[str, ...] = ()) -> Any:
    owners = [{"apiVersion": "v1", "kind": "Pod", "name": owner, "uid": f"uid-{owner}"}]
    status = {
        "allocation": {"devices": {"results": [{"device": "d"}]}},
        "reservedFor": [{"resource": "pods", "name": pod, "uid": f"uid-{pod}"} for pod in pods],
    }
    metadata: dict[str, Any] = {"name": name, "namespace": "ns", "finalizers": list(finalizers)}
    if owner:
        metadata["ownerReferences"] = [{**owners[0], "controller": True}]
    return {"metadata": metadata, "spec": SPEC, "status": status}


def controller(gateway: FakeGateway) -> ClaimController:
    claim_controller = ClaimController(gateway, threading.Event(), on_fatal=lambda error: None)
    claim_controller.store.replace(PODS, gateway.list(PODS, as_type=Pod))
    claim_controller.store.replace(
        RESOURCE_CLAIMS, gateway.list(RESOURCE_CLAIMS, as_type=ResourceClaim)
    )
    return claim_controller


def cluster(*pods: dict[str, Any], claims: tuple[Any, ...] = ()) -> FakeGateway:
    gateway = FakeGateway()
    gateway.seed(CLAIM_TEMPLATES, {"metadata": {"name": "t", "namespace": "ns"}, "spec": TEMPLATE})
    gateway.seed(PODS, *pods)
    gateway.seed(RESOURCE_CLAIMS, *claims)
    return gateway


def allocated_nodes(gateway: FakeGateway, name: str) -> dict[str, str]:
    statuses = gateway.raw(PODS, name, "ns")["status"].get("resourceClaimStatuses", ())
    return {item["name"]: item["resourceClaimName"] for item in statuses}


def test_a_pod_gets_a_claim_for_each_template_it_names() -> None:
    gateway = cluster(pod("p", templates=("gpu", "nic")))
    controller(gateway).reconcile("pods ns/p")
    names = allocated_nodes(gateway, "p")
    assert sorted(names) == ["gpu", "nic"]
    body = gateway.raw(RESOURCE_CLAIMS, names["gpu"], "ns")
    assert body["metadata"]["name"].startswith("p-gpu-")
    assert body["metadata"]["labels"] == {"team": "a"}
    assert body["metadata"]["annotations"] == {"note": "b", CLAIM_OF_POD: "gpu"}
    assert [(o["kind"], o["uid"]) for o in body["metadata"]["ownerReferences"]] == [
        ("Pod", "uid-p")
    ]
    assert body["spec"] == SPEC


def test_a_pass_that_was_cut_off_makes_no_second_claim() -> None:
    gateway = cluster(pod("p", templates=("gpu",)))
    claim_controller = controller(gateway)
    gateway.fail_next("patch", "pods", ServerError("down"))
    claim_controller.reconcile("pods ns/p")
    assert allocated_nodes(gateway, "p") == {}
    claim_controller.reconcile("pods ns/p")
    assert list(allocated_nodes(gateway, "p").values()) == gateway.names(RESOURCE_CLAIMS, "ns")
    assert len(gateway.names(RESOURCE_CLAIMS, "ns")) == 1


def test_a_missing_template_is_waited_for() -> None:
    gateway = FakeGateway()
    gateway.seed(PODS, pod("p", templates=("gpu",)))
    claim_controller = controller(gateway)
    claim_controller.reconcile("pods ns/p")
    assert gateway.names(RESOURCE_CLAIMS, "ns") == []
    assert len(claim_controller.queue) > 0


@pytest.mark.parametrize("bodies", [(), (pod("p", phase="Succeeded"),)])
def test_a_pod_that_is_done_reserves_nothing_and_the_last_one_frees_the_devices(
    bodies: tuple[Any, ...],
) -> None:
    shared, own = claim("shared", "p", "q"), claim("own", "p", finalizers=(DELETE_PROTECTION,))
    gateway = cluster(*bodies, pod("q", phase="Running"), claims=(shared, own))
    claim_controller = controller(gateway)
    claim_controller.reconcile("resourceclaims ns/shared")
    claim_controller.reconcile("resourceclaims ns/own")
    status = gateway.raw(RESOURCE_CLAIMS, "shared", "ns")["status"]
    assert [user["uid"] for user in status["reservedFor"]] == ["uid-q"]
    assert "allocation" in status
    freed = gateway.raw(RESOURCE_CLAIMS, "own", "ns")
    assert freed["status"] == {}
    assert freed["metadata"].get("finalizers", []) == []


def test_a_claim_of_a_finished_pod_goes_and_that_of_a_waiting_one_stays() -> None:
    gateway = cluster(
        pod("done", phase="Failed"),
        pod("waits"),
        claims=(
            claim("a", "done", owner="done", finalizers=(DELETE_PROTECTION,)),
            claim("b", owner="waits", finalizers=(DELETE_PROTECTION,)),
        ),
    )
    claim_controller = controller(gateway)
    claim_controller.reconcile("resourceclaims ns/a")
    claim_controller.reconcile("resourceclaims ns/b")
    assert gateway.names(RESOURCE_CLAIMS, "ns") == ["b"]
    assert gateway.raw(RESOURCE_CLAIMS, "b", "ns")["metadata"]["finalizers"] == [DELETE_PROTECTION]


def test_a_deleted_claim_is_let_go_once_nobody_uses_it() -> None:
    gateway = cluster(claims=(claim("a", finalizers=(DELETE_PROTECTION,)),))
    gateway.delete(RESOURCE_CLAIMS, "a", namespace="ns")
    controller(gateway).reconcile("resourceclaims ns/a")
    assert gateway.names(RESOURCE_CLAIMS, "ns") == []


def test_claims_are_looked_at_when_their_pod_goes() -> None:
    gateway = cluster(pod("p", phase="Running"), claims=(claim("a", "p"),))
    claim_controller = controller(gateway)
    while claim_controller.queue.get(timeout_s=0) is not None:
        pass
    gone = gateway.get(PODS, "p", as_type=Pod, namespace="ns")
    claim_controller.store.apply(
        PODS, WatchEvent(type=EventType.DELETED, object=gone, resource_version="999")
    )
    claim_controller.queue.done("resourceclaims ns/a")
    assert claim_controller.queue.get(timeout_s=0) == "resourceclaims ns/a"
