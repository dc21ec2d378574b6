"""A queue, a node and a waiting pod, for tests of the scheduler's messages."""

from __future__ import annotations

from typing import Any

from kube.resources import PODGROUPS, PODS, QUEUES, SHARDS
from tests.scheduler.load.objects import group, meta, pod, queue
from tests.scheduler.loop.harness import FREE, Harness

NO_NODES = "no nodes with enough resources were found"


def queues(harness: Harness, *, cpu: Any = None, memory: Any = None, **gpu: Any) -> Harness:
    """Add the queues `top` and, below it, `q` with what is given; all else is unlimited."""
    harness.seed(QUEUES, queue("top", resources={"cpu": FREE, "memory": FREE, "gpu": FREE}))
    cells = {"cpu": cpu or FREE, "memory": memory or FREE, "gpu": gpu or FREE}
    return harness.seed(
        QUEUES, queue("q", parentQueue="top", displayName="The queue", resources=cells)
    )


def wants(harness: Harness, requests: dict[str, str] | None = None, **body: Any) -> Harness:
    """Add the pod group `pg` with the one pod `p`."""
    harness.seed(PODGROUPS, group("pg"))
    return harness.seed(PODS, pod("p", group="pg", requests=requests or {}, **body))


def sits(name: str, requests: dict[str, str] | None = None, **body: Any) -> dict[str, Any]:
    """Return a pod that runs on n0."""
    return pod(name, node="n0", phase="Running", requests=requests or {}, **body)


def args(harness: Harness, **values: str) -> Harness:
    named = {key.replace("_", "-"): value for key, value in values.items()}
    return harness.seed(SHARDS, {"metadata": meta("default"), "spec": {"args": named}})


def message_of_pod(harness: Harness) -> str:
    """Run a cycle; return what the pod's condition says, having checked that its event says the same."""
    harness.cycle()
    condition = harness.condition("p")
    assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")
    message: str = condition["message"]
    assert harness.events("p") == [("Warning", "Unschedulable", message)]
    return message


def message_of_group(harness: Harness, name: str = "pg") -> str:
    """Run a cycle; return the group's message, having checked that event and condition agree."""
    harness.cycle()
    (condition,) = harness.group_conditions(name)
    message: str = condition["message"]
    assert (condition["type"], condition["reason"], condition["status"]) == (
        "UnschedulableOnNodePool",
        "Unschedulable",
        "True",
    )
    assert ("Normal", "Unschedulable", message) in harness.events(name)
    return message


def reasons(harness: Harness, name: str = "pg") -> list[tuple[str, str]]:
    (condition,) = harness.group_conditions(name)
    return [(item["reason"], item["message"]) for item in condition["reasons"]]


def taken(harness: Harness, requests: dict[str, str], **spec: Any) -> Harness:
    """Let another group of the queue hold something on n0."""
    harness.seed(PODGROUPS, group("held", **spec))
    return harness.seed(PODS, sits("held-0", requests, group="held"))
