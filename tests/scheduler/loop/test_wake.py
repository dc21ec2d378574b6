"""Only what can change a decision wakes the scheduler; its own echoes do not."""

from __future__ import annotations

from threading import Event
from typing import Any

import pytest

from kube.gateway import EventType
from kube.objects.meta import convert
from kube.resources import BINDREQUESTS, CONFIGMAPS, NODES, PODGROUPS, PODS, QUEUES, Resource
from scheduler.loop.wake import Waker
from tests.scheduler.load.objects import TYPES, group, node, pod, queue


def told(waker: Waker, resource: Resource, body: dict[str, Any], kind: str = "MODIFIED") -> bool:
    return waker.matters(resource, EventType(kind), convert(body, TYPES[resource]))


def waker() -> Waker:
    return Waker(lambda: None)


def with_condition(body: dict[str, Any]) -> dict[str, Any]:
    status = {**body["status"], "conditions": [{"type": "PodScheduled", "status": "False"}]}
    return {**body, "status": status}


def test_pod_wakes_when_it_gets_its_group_and_when_it_ends_but_not_in_between() -> None:
    made = waker()
    assert not told(made, PODS, pod("p"), "ADDED")  # not grouped yet: nothing to decide
    assert told(made, PODS, pod("p", group="pg"))
    assert not told(made, PODS, with_condition(pod("p", group="pg")))
    assert not told(made, PODS, pod("p", group="pg", node="n0"))
    assert not told(made, PODS, pod("p", group="pg", node="n0", phase="Running"))
    assert told(made, PODS, pod("p", group="pg", node="n0", phase="Succeeded"))
    assert told(made, PODS, pod("p", group="pg", node="n0"), "DELETED")


def test_opened_gate_wakes() -> None:
    made = waker()
    told(made, PODS, pod("p", group="pg", schedulingGates=[{"name": "g"}]))
    assert told(made, PODS, pod("p", group="pg"))


def test_node_wakes_by_what_it_offers_not_by_its_heartbeat() -> None:
    made = waker()
    assert told(made, NODES, node("n"))
    beat = {"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:10Z"}
    assert not told(made, NODES, node("n", conditions=[beat]))
    assert told(made, NODES, node("n", conditions=[{"type": "Ready", "status": "False"}]))
    assert told(made, NODES, node("n", gpus=4, conditions=[{"type": "Ready", "status": "False"}]))


def test_status_of_groups_and_queues_does_not_wake() -> None:
    made = waker()
    assert told(made, PODGROUPS, group("pg"))
    assert not told(made, PODGROUPS, group("pg", status={"schedulingConditions": []}))
    assert told(made, PODGROUPS, group("pg", minMember=2))
    assert told(made, QUEUES, queue("q"))
    assert not told(made, QUEUES, {**queue("q"), "status": {"childQueues": ["x"]}})


@pytest.mark.parametrize(
    ("resource", "wakes"), [(PODGROUPS, True), (CONFIGMAPS, False), (BINDREQUESTS, False)]
)
def test_burst_becomes_one_wake_up(resource: Resource, wakes: bool) -> None:
    count, woken = 0, Event()

    def wake() -> None:
        nonlocal count
        count += 1
        woken.set()

    made = Waker(wake, pause_s=0.05)
    for number in range(50):
        made.on_change(resource, EventType.ADDED, convert(group(f"pg{number}"), TYPES[PODGROUPS]))
    made.start()
    assert woken.wait(2.0 if wakes else 0.2) is wakes
    made.stop()
    assert count == (1 if wakes else 0)
