"""Small scenes for tests of what the scheduler says: a queue, a node, a pod that waits."""

from __future__ import annotations

from typing import Any

from kube.resources import PODGROUPS, PODS, QUEUES, SHARDS
from tests.scheduler.load.objects import group, meta, pod, queue
from tests.scheduler.loop.rig import FREE, Rig

NO_NODES = "no nodes with enough resources were found"


def queues(rig: Rig, *, cpu: Any = None, memory: Any = None, **gpu: Any) -> Rig:
    """Add the queues `top` and, below it, `q` with what is given; all else is unlimited."""
    rig.seed(QUEUES, queue("top", resources={"cpu": FREE, "memory": FREE, "gpu": FREE}))
    cells = {"cpu": cpu or FREE, "memory": memory or FREE, "gpu": gpu or FREE}
    return rig.seed(QUEUES, queue("q", parentQueue="top", displayName="The queue", resources=cells))


def wants(rig: Rig, requests: dict[str, str] | None = None, **body: Any) -> Rig:
    """Add the pod group `pg` with the one pod `p`."""
    rig.seed(PODGROUPS, group("pg"))
    return rig.seed(PODS, pod("p", group="pg", requests=requests or {}, **body))


def sits(name: str, requests: dict[str, str] | None = None, **body: Any) -> dict[str, Any]:
    """Return a pod that runs on n0."""
    return pod(name, node="n0", phase="Running", requests=requests or {}, **body)


def args(rig: Rig, **values: str) -> Rig:
    named = {key.replace("_", "-"): value for key, value in values.items()}
    return rig.seed(SHARDS, {"metadata": meta("default"), "spec": {"args": named}})


def told(rig: Rig) -> str:
    """Run a cycle; return what the pod's condition says, having checked that its event says the same."""
    rig.cycle()
    condition = rig.condition("p")
    assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")
    message: str = condition["message"]
    assert rig.events("p") == [("Warning", "Unschedulable", message)]
    return message


def said(rig: Rig, name: str = "pg") -> str:
    """Run a cycle; return the group's message, having checked that event and condition agree."""
    rig.cycle()
    (condition,) = rig.group_conditions(name)
    message: str = condition["message"]
    assert (condition["type"], condition["reason"], condition["status"]) == (
        "UnschedulableOnNodePool",
        "Unschedulable",
        "True",
    )
    assert ("Normal", "Unschedulable", message) in rig.events(name)
    return message


def reasons(rig: Rig, name: str = "pg") -> list[tuple[str, str]]:
    (condition,) = rig.group_conditions(name)
    return [(item["reason"], item["message"]) for item in condition["reasons"]]


def taken(rig: Rig, requests: dict[str, str], **spec: Any) -> Rig:
    """Let another group of the queue hold something on n0."""
    rig.seed(PODGROUPS, group("held", **spec))
    return rig.seed(PODS, sits("held-0", requests, group="held"))
