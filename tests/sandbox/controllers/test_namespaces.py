"""The namespace controller: a deleted namespace is emptied, then finalised."""

from __future__ import annotations

import threading
from typing import Any

from kube.resources import CONFIGMAPS, CRDS, NAMESPACES, PODGROUPS, PODS
from sandbox.controllers.namespaces import NamespaceController, custom_kind
from tests.fakes.gateway import FakeGateway


def cluster(*, is_deleted: bool) -> FakeGateway:
    gateway = FakeGateway()
    metadata: dict[str, Any] = {"name": "old"}
    if is_deleted:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    gateway.seed(NAMESPACES, {"metadata": metadata, "spec": {"finalizers": ["kubernetes"]}})
    gateway.seed(CRDS, definition())
    for resource in (CONFIGMAPS, PODGROUPS):
        gateway.seed(resource, {"metadata": {"name": "a", "namespace": "old", "uid": "1"}})
        gateway.seed(resource, {"metadata": {"name": "a", "namespace": "other", "uid": "2"}})
    return gateway


def definition(scope: str = "Namespaced") -> dict[str, Any]:
    return {
        "metadata": {"name": "podgroups.scheduling.run.ai"},
        "spec": {
            "group": PODGROUPS.group,
            "scope": scope,
            "names": {"plural": "podgroups", "kind": "PodGroup"},
            "versions": [
                {"name": "v1", "served": False},
                {"name": PODGROUPS.version, "served": True},
            ],
        },
    }


def controller(gateway: FakeGateway) -> NamespaceController:
    return NamespaceController(gateway, threading.Event(), on_fatal=lambda error: None)


def places(gateway: FakeGateway, *resources: Any) -> list[tuple[str, str]]:
    return [
        (resource.plural, item["metadata"]["namespace"])
        for resource in resources
        for item in gateway.list(resource, as_type=dict).items
    ]


def test_a_deleted_namespace_is_emptied_with_its_custom_objects() -> None:
    gateway = cluster(is_deleted=True)
    controller(gateway).reconcile("old")
    assert places(gateway, CONFIGMAPS, PODGROUPS) == [
        ("configmaps", "other"),
        ("podgroups", "other"),
    ]


def test_a_deleted_namespace_goes_once_it_is_empty() -> None:
    gateway = cluster(is_deleted=True)
    ending = controller(gateway)
    ending.reconcile("old")
    assert len(gateway.list(NAMESPACES, as_type=dict).items) == 1
    ending.reconcile("old")
    assert gateway.list(NAMESPACES, as_type=dict).items == []


def test_a_namespace_that_is_not_deleted_is_left_alone() -> None:
    gateway = cluster(is_deleted=False)
    gateway.seed(PODS, {"metadata": {"name": "p", "namespace": "old", "uid": "3"}})
    controller(gateway).reconcile("old")
    assert ("pods", "old") in places(gateway, PODS)


def test_kinds_of_the_cluster_are_not_emptied() -> None:
    assert custom_kind(definition("Cluster")) is None
    kind = custom_kind(definition())
    assert kind is not None
    assert kind.path("old") == PODGROUPS.path("old")
