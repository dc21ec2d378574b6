"""Mirror, pod grouper, binder and controllers keep working beside objects with hostile values."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from binder.worker import WATCHED as BINDER_WATCHED
from kube.gateway import EventType, Listing, WatchEvent
from kube.resources import BINDREQUESTS, NODES, PODGROUPS, PODS, Resource
from kube.store import Store
from queues.controllers.drift import find_drift
from queues.controllers.metrics import QueueMetrics
from queues.controllers.queue_status import QueueController
from queues.controllers.scale_adjuster import ScaleAdjuster
from queues.mirror import kinds
from queues.mirror.feed import EventMessage, ListMessage, Mirror
from queues.mirror.writer import Writer
from queues.models import Pod as PodRow
from tests.binder import objects as binding
from tests.hostile.bodies import hostile_values, spoiled
from tests.queues.cluster_objects import a_pod
from tests.queues.controllers import fake_cluster
from tests.queues.controllers.test_podgroup_status import World as StatusWorld
from tests.queues.grouping.engine import test_controller as grouping
from tests.scheduler.load.objects import group, node, pod

CPU_S = 1.0
BASES: dict[Resource, Any] = {
    PODS: pod("x", requests={"cpu": "1"}, group="g"),
    NODES: node("x"),
    PODGROUPS: group("x"),
    BINDREQUESTS: binding.request("x"),
}
each_value = pytest.mark.parametrize("name", hostile_values())


@contextmanager
def bounded_cpu_time() -> Iterator[None]:
    began = time.process_time()
    yield
    assert time.process_time() - began < CPU_S


def put_spoiled(store: Store, resource: Resource, as_type: Any, value: Any) -> None:
    for spoiled_object in spoiled(as_type, value, BASES.get(resource)):
        event = WatchEvent(type=EventType.ADDED, object=spoiled_object, resource_version="9000")
        store.apply(resource, event)


@pytest.mark.django_db
@each_value
def test_the_mirror_shows_the_healthy_pod_beside_hostile_objects(name: str) -> None:
    value = hostile_values()[name]
    mirror = Mirror(kinds.KINDS, Writer(sleep=lambda _s: None), now=lambda: datetime.now(UTC))
    for kind in kinds.KINDS:
        spoiled_object = list(spoiled(kind.as_type, value, BASES.get(kind.resource)))
        with bounded_cpu_time():
            mirror.consume(
                [ListMessage(kind.resource, Listing(items=spoiled_object, resource_version="9000"))]
            )
    healthy = WatchEvent(
        type=EventType.ADDED, object=a_pod("healthy", 9001), resource_version="9001"
    )
    mirror.consume([EventMessage(PODS, healthy)])
    assert PodRow.objects.filter(name="healthy").exists()


@each_value
def test_the_grouper_groups_the_healthy_pod_beside_hostile_objects(name: str) -> None:
    value = hostile_values()[name]
    world = grouping.World()
    owner = grouping.job()
    world.gateway.seed(grouping.JOBS, owner)
    world.pods(grouping.pod("healthy", owner))
    world.settle()
    for resource, as_type in grouping.KINDS:
        put_spoiled(world.store, resource, as_type, value)
    with bounded_cpu_time():
        world.work()
    assert "pod-group-name" in world.gateway.raw(PODS, "healthy", "lab")["metadata"]["annotations"]


@each_value
def test_the_binder_binds_the_healthy_pod_beside_hostile_objects(name: str) -> None:
    value = hostile_values()[name]
    harness = binding.Harness()
    for resource, as_type in BINDER_WATCHED:
        put_spoiled(harness.worker.store, resource, as_type, value)
    with bounded_cpu_time():
        harness.worker.sweep()
        harness.work()
    harness.seed(pods=[binding.pod("healthy")], requests=[binding.request("healthy")])
    harness.watch()
    harness.work()
    assert harness.pod("healthy")["spec"]["nodeName"] == "n1"


@each_value
def test_the_status_controllers_count_the_healthy_group_beside_hostile_objects(name: str) -> None:
    value = hostile_values()[name]
    world = StatusWorld()
    queues = QueueController(world.gateway, world.store)
    queues.follow()
    world.gateway.seed(PODGROUPS, fake_cluster.group("healthy"))
    world.gateway.seed(PODS, fake_cluster.pod("p", "healthy"))
    world.sync()
    for resource, as_type in fake_cluster.KINDS:
        put_spoiled(world.store, resource, as_type, value)
    with bounded_cpu_time():
        world.work()
        queues.pass_once(datetime(2026, 1, 1, tzinfo=UTC))
        find_drift(world.store, world.controller)
        list(QueueMetrics(world.store, "kai", {}, {}).collect())
        ScaleAdjuster(world.gateway, world.store, world.store).pass_once()
    assert world.resources("healthy")["requested"] == {"cpu": "1", "nvidia.com/gpu": "1"}
