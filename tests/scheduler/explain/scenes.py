"""Small scenes for tests of what the scheduler says: a queue, a node, a pod that waits."""

from __future__ import annotations

from typing import Any

from kube.resources import PODGROUPS, PODS, QUEUES, SHARDS
from tests.scheduler.rig import FREE, Rig
from tests.scheduler.snapshot.objects import group, meta, pod, queue

NO_NODES = "no nodes with enough resources were found"


def queues(rig: Rig, **gpu: Any) -> Rig:
    free = {"cpu": FREE, "memory": FREE}
    rig.seed(QUEUES, queue("top", resources={**free, "gpu": FREE}))
    spec = {"parentQueue": "top", "displayName": "The queue"}
    return rig.seed(QUEUES, queue("q", resources={**free, "gpu": gpu or FREE}, **spec))


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
