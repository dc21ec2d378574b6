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


def is_woken(
    waker: Waker, resource: Resource, body: dict[str, Any], kind: str = "MODIFIED"
) -> bool:
    return waker.matters(resource, EventType(kind), convert(body, TYPES[resource]))


def waker() -> Waker:
    return Waker(lambda: None)


def with_condition(body: dict[str, Any]) -> dict[str, Any]:
    status = {**body["status"], "conditions": [{"type": "PodScheduled", "status": "False"}]}
    return {**body, "status": status}


def test_pod_wakes_when_it_gets_its_group_and_when_it_ends_but_not_in_between() -> None:
    observer = waker()
    assert not is_woken(observer, PODS, pod("p"), "ADDED")  # not grouped yet: nothing to decide
    assert is_woken(observer, PODS, pod("p", group="pg"))
    assert not is_woken(observer, PODS, with_condition(pod("p", group="pg")))
    assert not is_woken(observer, PODS, pod("p", group="pg", node="n0"))
    assert not is_woken(observer, PODS, pod("p", group="pg", node="n0", phase="Running"))
    assert is_woken(observer, PODS, pod("p", group="pg", node="n0", phase="Succeeded"))
    assert is_woken(observer, PODS, pod("p", group="pg", node="n0"), "DELETED")


def test_opened_gate_wakes() -> None:
    observer = waker()
    is_woken(observer, PODS, pod("p", group="pg", schedulingGates=[{"name": "g"}]))
    assert is_woken(observer, PODS, pod("p", group="pg"))


def test_node_wakes_by_what_it_offers_not_by_its_heartbeat() -> None:
    observer = waker()
    assert is_woken(observer, NODES, node("n"))
    beat = {"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:10Z"}
    assert not is_woken(observer, NODES, node("n", conditions=[beat]))
    assert is_woken(observer, NODES, node("n", conditions=[{"type": "Ready", "status": "False"}]))
    assert is_woken(
        observer, NODES, node("n", gpus=4, conditions=[{"type": "Ready", "status": "False"}])
    )


def test_status_of_groups_and_queues_does_not_wake() -> None:
    observer = waker()
    assert is_woken(observer, PODGROUPS, group("pg"))
    assert not is_woken(observer, PODGROUPS, group("pg", status={"schedulingConditions": []}))
    assert is_woken(observer, PODGROUPS, group("pg", minMember=2))
    assert is_woken(observer, QUEUES, queue("q"))
    assert not is_woken(observer, QUEUES, {**queue("q"), "status": {"childQueues": ["x"]}})


@pytest.mark.parametrize(
    ("resource", "wakes"), [(PODGROUPS, True), (CONFIGMAPS, False), (BINDREQUESTS, False)]
)
def test_burst_becomes_one_wake_up(resource: Resource, wakes: bool) -> None:
    count, woken = 0, Event()

    def wake() -> None:
        nonlocal count
        count += 1
        woken.set()

    observer = Waker(wake, calm_pause_s=0.05)
    observer.follow([convert(pod("p", group="pg49"), TYPES[PODS])])
    for number in range(50):
        observer.on_change(
            resource, EventType.ADDED, convert(group(f"pg{number}"), TYPES[PODGROUPS])
        )
    observer.start()
    assert woken.wait(2.0 if wakes else 0.2) is wakes
    observer.stop()
    assert count == (1 if wakes else 0)


def is_requested(
    waker: Waker, resource: Resource, body: dict[str, Any], kind: str = "ADDED"
) -> bool:
    """Pass a change to a waker; return whether it asks for a cycle."""
    waker._due.clear()
    waker.on_change(resource, EventType(kind), convert(body, TYPES[resource]))
    return waker._due.is_set()


def test_queue_wakes_at_once_only_while_a_pod_waits_for_a_node() -> None:
    observer = waker()
    assert not is_requested(observer, QUEUES, queue("q0"))
    assert is_requested(observer, PODS, pod("p", group="pg"))
    assert is_requested(observer, QUEUES, queue("q1"))
    assert is_requested(observer, QUEUES, queue("q1"), "DELETED")
    is_requested(observer, PODS, pod("p", group="pg", node="n0"), "MODIFIED")
    assert not is_requested(observer, QUEUES, queue("q2"))
    assert not is_requested(observer, QUEUES, queue("q2"), "DELETED")


def test_gated_finished_and_deleted_pods_wait_for_no_node() -> None:
    observer = waker()
    is_requested(observer, PODS, pod("gated", group="pg", schedulingGates=[{"name": "g"}]))
    is_requested(observer, PODS, pod("finished", group="pg", phase="Succeeded"))
    is_requested(observer, PODS, pod("gone", group="pg"))
    is_requested(observer, PODS, pod("gone", group="pg"), "DELETED")
    assert not is_requested(observer, QUEUES, queue("q"))


def test_queue_wakes_for_a_pod_that_waited_before_the_first_change() -> None:
    observer = waker()
    observer.follow([convert(pod("p", group="pg"), TYPES[PODS])])
    assert is_requested(observer, QUEUES, queue("q"))


def test_a_new_group_wakes_only_for_a_pod_that_names_it() -> None:
    observer = waker()
    assert not is_requested(observer, PODGROUPS, group("pg"))
    assert is_requested(observer, PODS, pod("p", group="pg"))
    assert not is_requested(observer, PODGROUPS, group("other"))
    assert is_requested(observer, PODS, pod("q", group="late"))
    assert is_requested(observer, PODGROUPS, group("late"))


def test_a_changed_group_wakes_while_a_pod_waits_for_a_node() -> None:
    observer = waker()
    is_requested(observer, PODGROUPS, group("pg"))
    assert not is_requested(observer, PODGROUPS, group("pg", minMember=2), "MODIFIED")
    is_requested(observer, PODS, pod("p", group="x"))
    assert is_requested(observer, PODGROUPS, group("pg", minMember=3), "MODIFIED")
