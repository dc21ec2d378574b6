"""A cycle goes on beside objects with hostile values, and binds the healthy pod."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from kube.gateway import EventType, WatchEvent
from kube.resources import BINDREQUESTS, CONFIGS, NODES, PODGROUPS, PODS, SHARDS
from scheduler.settings.watched import WATCHED
from tests.hostile.bodies import hostile_values, spoiled
from tests.scheduler.load.objects import group, node, pod
from tests.scheduler.loop.harness import Harness
from tests.scheduler.loop.harness import harness as open_harness

CPU_S = 1.0
TAINT = {"key": "healthy", "value": "yes", "effect": "NoSchedule"}
#: What these say counts for the whole shard, so a legible value may well change where pods go.
SETTINGS = (SHARDS, CONFIGS)
BASES = {
    PODS: pod("x", requests={"cpu": "1"}, group="bad-1"),
    NODES: node("x"),
    PODGROUPS: group("x"),
}


@pytest.fixture
def harness() -> Iterator[Harness]:
    with open_harness() as opened:
        opened.cluster(nodes=1)
        opened.seed(NODES, node("healthy", labels={"for": "healthy"}, taints=[TAINT]))
        opened.pending(
            "healthy",
            pod={"tolerations": [TAINT], "nodeSelector": {"for": "healthy"}},
        )
        opened.watch()
        yield opened


@pytest.mark.parametrize("name", hostile_values())
def test_a_cycle_binds_the_healthy_pod_beside_hostile_objects(harness: Harness, name: str) -> None:
    value = hostile_values()[name]
    for item in WATCHED:
        if item.resource in SETTINGS:
            continue
        for bad in spoiled(item.as_type, value, BASES.get(item.resource)):
            event = WatchEvent(type=EventType.ADDED, object=bad, resource_version="9000")
            harness.worker.store.apply(item.resource, event)
    began = time.process_time()
    harness.cycle_unseen()
    assert time.process_time() - began < CPU_S
    assert harness.gateway.raw(BINDREQUESTS, "healthy-0", "ns")["spec"]["selectedNode"] == "healthy"


@pytest.mark.parametrize("name", hostile_values())
def test_a_worker_stays_ready_with_hostile_settings(harness: Harness, name: str) -> None:
    value = hostile_values()[name]
    name_of = {SHARDS: "default", CONFIGS: "kai-config"}
    for item in WATCHED:
        if item.resource not in SETTINGS:
            continue
        store = harness.worker.store.kind(item.resource)
        for bad in spoiled(item.as_type, value):
            store.objects[name_of[item.resource]] = bad
            assert harness.worker.is_ready()
        del store.objects[name_of[item.resource]]
