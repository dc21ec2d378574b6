"""The garbage collector: what goes with its owner, and what stays."""

from __future__ import annotations

import threading
from typing import Any

from kube.errors import ServerError
from kube.gateway import EventType, WatchEvent
from kube.objects.meta import KubeObject
from kube.resources import BINDREQUESTS, JOBS, PODGROUPS, PODS, Resource
from sandbox.controllers.garbage import GarbageCollector
from tests.fakes.gateway import FakeGateway


def collector(gateway: FakeGateway) -> GarbageCollector:
    return GarbageCollector(gateway, threading.Event(), on_fatal=lambda error: None)


def seed(gateway: FakeGateway, resource: Resource, name: str, *owners: dict[str, Any]) -> None:
    metadata = {"name": name, "namespace": "ns", "uid": f"uid-{name}"}
    gateway.seed(resource, {"metadata": {**metadata, "ownerReferences": list(owners)}})


def owner(resource: Resource, name: str, uid: str = "") -> dict[str, Any]:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": name,
        "uid": uid or f"uid-{name}",
    }


def see(garbage_collector: GarbageCollector, gateway: FakeGateway, *resources: Resource) -> None:
    for resource in resources:
        garbage_collector.store.replace(resource, gateway.list(resource, as_type=KubeObject))


def test_dependents_are_queued_when_their_owner_goes() -> None:
    gateway = FakeGateway()
    seed(gateway, JOBS, "j")
    seed(gateway, PODS, "a", owner(JOBS, "j"))
    garbage_collector = collector(gateway)
    see(garbage_collector, gateway, JOBS, PODS)
    assert len(garbage_collector.queue) == 0
    job = gateway.get(JOBS, "j", as_type=KubeObject, namespace="ns")
    event = WatchEvent(type=EventType.DELETED, object=job, resource_version="999")
    garbage_collector.store.apply(JOBS, event)
    assert garbage_collector.queue.get(timeout_s=0) == "pods ns/a"


def test_an_object_whose_owners_are_all_gone_is_deleted() -> None:
    gateway = FakeGateway()
    seed(gateway, PODGROUPS, "pg", owner(PODS, "gone"))
    garbage_collector = collector(gateway)
    see(garbage_collector, gateway, PODGROUPS)
    garbage_collector.reconcile("podgroups ns/pg")
    assert gateway.names(PODGROUPS, "ns") == []


def test_owner_that_only_the_server_knows_yet_keeps_its_dependent() -> None:
    gateway = FakeGateway()
    seed(gateway, PODS, "a")
    seed(gateway, BINDREQUESTS, "a", owner(PODS, "a"))
    garbage_collector = collector(gateway)
    see(garbage_collector, gateway, BINDREQUESTS)
    garbage_collector.reconcile("bindrequests ns/a")
    assert gateway.names(BINDREQUESTS, "ns") == ["a"]


def test_namesake_of_the_owner_does_not_count() -> None:
    gateway = FakeGateway()
    seed(gateway, PODS, "a")
    seed(gateway, BINDREQUESTS, "b", owner(PODS, "a", uid="uid-of-an-earlier-a"))
    garbage_collector = collector(gateway)
    see(garbage_collector, gateway, BINDREQUESTS, PODS)
    garbage_collector.reconcile("bindrequests ns/b")
    assert gateway.names(BINDREQUESTS, "ns") == []


def test_one_existing_owner_is_enough_and_unknown_kinds_count_as_existing() -> None:
    gateway = FakeGateway()
    seed(gateway, PODS, "a")
    seed(gateway, PODGROUPS, "two", owner(JOBS, "gone"), owner(PODS, "a"))
    strange = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "r", "uid": "u"}
    seed(gateway, PODGROUPS, "strange", strange)
    garbage_collector = collector(gateway)
    see(garbage_collector, gateway, PODGROUPS, PODS)
    for name in ("two", "strange"):
        garbage_collector.reconcile(f"podgroups ns/{name}")
    assert gateway.names(PODGROUPS, "ns") == ["strange", "two"]


def test_failed_delete_is_tried_again() -> None:
    gateway = FakeGateway()
    seed(gateway, PODGROUPS, "pg", owner(PODS, "gone"))
    garbage_collector = collector(gateway)
    see(garbage_collector, gateway, PODGROUPS)
    gateway.fail_next("delete", "podgroups", ServerError("down"))
    garbage_collector.reconcile("podgroups ns/pg")
    assert gateway.names(PODGROUPS, "ns") == ["pg"]
    garbage_collector.reconcile("podgroups ns/pg")
    assert gateway.names(PODGROUPS, "ns") == []
