"""The disruption controller: how many pods each budget lets go."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from kube.objects.policy import PodDisruptionBudget
from kube.resources import POD_DISRUPTION_BUDGETS, PODS, REPLICASETS
from sandbox.controllers.disruption import DELETION_TIMEOUT_S, DisruptionController
from sandbox.controllers.workloads.objects import ReplicaSet, WorkPod
from tests.fakes.gateway import FakeGateway

NOW = 1_767_225_600.0  # 2026-01-01T00:00:00Z


def pod(name: str, *, ready: bool = True, owner: str = "", deleted: str = "") -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "namespace": "ns", "labels": {"app": "web"}}
    if owner:
        reference = {"kind": "ReplicaSet", "name": owner, "uid": owner, "controller": True}
        metadata["ownerReferences"] = [reference]
    if deleted:
        metadata["deletionTimestamp"] = deleted
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": str(ready)}]}
    return {"metadata": metadata, "spec": {"nodeName": "n0"}, "status": status}


def figures(gateway: FakeGateway, *, now: float = NOW) -> tuple[int, int, int, int]:
    """Reconcile budget `b` once; return (allowed, healthy, desired, expected)."""
    controller = DisruptionController(
        gateway, threading.Event(), on_fatal=lambda error: None, clock=lambda: now
    )
    kinds = (
        (POD_DISRUPTION_BUDGETS, PodDisruptionBudget),
        (PODS, WorkPod),
        (REPLICASETS, ReplicaSet),
    )
    for resource, as_type in kinds:
        controller.store.replace(resource, gateway.list(resource, as_type=as_type))
    controller.reconcile("ns/b")
    status = gateway.raw(POD_DISRUPTION_BUDGETS, "b", "ns")["status"]
    return (
        status["disruptionsAllowed"],
        status["currentHealthy"],
        status["desiredHealthy"],
        status["expectedPods"],
    )


def cluster(spec: dict[str, Any], *pods: dict[str, Any], **status: Any) -> FakeGateway:
    gateway = FakeGateway()
    gateway.seed(PODS, *pods)
    body = {
        "metadata": {"name": "b", "namespace": "ns"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec},
        "status": status,
    }
    gateway.seed(POD_DISRUPTION_BUDGETS, body)
    return gateway


THREE = (pod("a"), pod("b"), pod("c"))


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"minAvailable": 2}, (1, 3, 2, 3)),
        ({"minAvailable": 5}, (0, 3, 5, 3)),
        ({"minAvailable": "50%"}, (1, 3, 2, 3)),
        ({"maxUnavailable": 1}, (1, 3, 2, 3)),
        ({"maxUnavailable": "34%"}, (2, 3, 1, 3)),
        ({}, (2, 3, 1, 3)),
    ],
)
def test_what_a_budget_allows(spec: dict[str, Any], expected: tuple[int, ...]) -> None:
    assert figures(cluster(spec, *THREE)) == expected


def test_unready_and_leaving_pods_are_not_healthy() -> None:
    pods = (pod("a"), pod("b", ready=False), pod("c", deleted="2026-01-01T00:00:00Z"))
    assert figures(cluster({"minAvailable": 1}, *pods)) == (0, 1, 1, 3)


def test_missing_replicas_count_as_unavailable() -> None:
    gateway = cluster({"maxUnavailable": 2}, pod("a", owner="rs"), pod("b", owner="rs"))
    gateway.seed(
        REPLICASETS, {"metadata": {"name": "rs", "namespace": "ns"}, "spec": {"replicas": 4}}
    )
    assert figures(gateway) == (0, 2, 2, 4)


def test_an_evicted_pod_is_not_healthy_until_its_deletion_is_seen_or_overdue() -> None:
    evicted = {"disruptedPods": {"a": "2026-01-01T00:00:00Z"}}
    gateway = cluster({"minAvailable": 1}, *THREE, **evicted)
    assert figures(gateway) == (1, 2, 1, 3)
    assert figures(gateway, now=NOW + DELETION_TIMEOUT_S) == (2, 3, 1, 3)
    status = gateway.raw(POD_DISRUPTION_BUDGETS, "b", "ns")["status"]
    assert not status.get("disruptedPods")


def test_a_second_pass_writes_nothing() -> None:
    gateway = cluster({"minAvailable": 2}, *THREE)
    figures(gateway)
    writes = len(gateway.calls)
    figures(gateway)
    assert len(gateway.calls) == writes
