"""A random history of a cluster: the same for every process that makes it from the same seed."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kube.gateway import EventType
from kube.resources import (
    BINDREQUESTS,
    NODES,
    PODGROUPS,
    PODS,
    PRIORITY_CLASSES,
    QUEUES,
    Resource,
)

CREATED = "2026-11-29T12:00:00Z"
FIRST_VERSION = 100
NODE_NAMES = [f"node-{number}" for number in range(40)]
QUEUE_NAMES = [f"queue-{number}" for number in range(6)]
CLASS_NAMES = ["build", "train"]
GROUP_NAMES = [f"g{number}" for number in range(30)]
POD_NAMES = [f"p{number}" for number in range(80)]
NAMESPACE = "team"


@dataclass(frozen=True, slots=True)
class Change:
    """One event of the cluster."""

    version: int
    resource: Resource
    type: EventType
    body: dict[str, Any]


@dataclass(slots=True)
class History:
    """The events so far, and the objects that they lead to."""

    chance: random.Random
    changes: list[Change] = field(default_factory=list)
    objects: dict[Resource, dict[str, dict[str, Any]]] = field(
        default_factory=lambda: defaultdict(dict)
    )

    def put(self, resource: Resource, name: str, body: dict[str, Any], namespace: str = "") -> None:
        """Create the object, or replace its content."""
        version = FIRST_VERSION + len(self.changes)
        present = self.objects[resource].get(name)
        uid = present["metadata"]["uid"] if present else f"uid-{name}-{version}"
        metadata = {"name": name, "uid": uid, "resourceVersion": str(version)}
        metadata |= {"namespace": namespace} if namespace else {}
        metadata |= {"creationTimestamp": CREATED, **body.get("metadata", {})}
        self.objects[resource][name] = {**body, "metadata": metadata}
        event_type = EventType.MODIFIED if present else EventType.ADDED
        self.changes.append(Change(version, resource, event_type, self.objects[resource][name]))

    def remove(self, resource: Resource, name: str) -> None:
        """Delete the object if there is one; the event shows its last content at a new version."""
        body = self.objects[resource].pop(name, None)
        if body is None:
            return
        version = FIRST_VERSION + len(self.changes)
        metadata = {**body["metadata"], "resourceVersion": str(version)}
        self.changes.append(
            Change(version, resource, EventType.DELETED, {**body, "metadata": metadata})
        )


def random_history(seed: int, length: int) -> list[Change]:
    """Return at least so many events of all kinds that the mirror divides or that its sums depend on."""
    history = History(random.Random(seed))
    steps: list[tuple[Callable[[History], None], int]] = [
        (_change_pod, 60), (_change_group, 12), (_change_bind, 10),
        (_change_queue, 6), (_change_class, 3), (_change_node, 12),
    ]  # fmt: skip
    while len(history.changes) < length:
        step = history.chance.choices([s for s, _ in steps], [weight for _, weight in steps])[0]
        step(history)
    return history.changes


def _change_queue(history: History) -> None:
    name = history.chance.choice(QUEUE_NAMES)
    if name in history.objects[QUEUES] and history.chance.random() < 0.3:
        history.remove(QUEUES, name)
        return
    parent = history.chance.choice(["", "", *QUEUE_NAMES])
    history.put(QUEUES, name, {"spec": {"parentQueue": parent, "resources": {}}})


def _change_class(history: History) -> None:
    name = history.chance.choice(CLASS_NAMES)
    if name in history.objects[PRIORITY_CLASSES] and history.chance.random() < 0.2:
        history.remove(PRIORITY_CLASSES, name)
        return
    history.put(PRIORITY_CLASSES, name, {"value": history.chance.randrange(1, 200)})


def _change_node(history: History) -> None:
    name = history.chance.choice(NODE_NAMES)
    if name in history.objects[NODES] and history.chance.random() < 0.3:
        history.remove(NODES, name)
        return
    amounts = {"cpu": "64", "memory": "256Gi", "nvidia.com/gpu": str(history.chance.choice([4, 8]))}
    history.put(NODES, name, {"status": {"capacity": amounts, "allocatable": amounts}})


def _change_group(history: History) -> None:
    name = history.chance.choice(GROUP_NAMES)
    if name in history.objects[PODGROUPS] and history.chance.random() < 0.25:
        history.remove(PODGROUPS, name)
        return
    spec = {
        "queue": history.chance.choice(QUEUE_NAMES),
        "priorityClassName": history.chance.choice(["", *CLASS_NAMES]),
        "minMember": history.chance.randrange(1, 4),
    }
    history.put(PODGROUPS, name, {"spec": spec}, NAMESPACE)


def _change_bind(history: History) -> None:
    name = history.chance.choice(POD_NAMES)
    if name in history.objects[BINDREQUESTS] and history.chance.random() < 0.4:
        history.remove(BINDREQUESTS, name)
        return
    status = {
        "phase": history.chance.choice(["Pending", "Failed"]),
        "reason": f"no room for {name}",
    }
    spec = {"podName": name, "selectedNode": history.chance.choice(NODE_NAMES)}
    history.put(BINDREQUESTS, name, {"spec": spec, "status": status}, NAMESPACE)


def _change_pod(history: History) -> None:
    """Create a pod, give it a (or another) group, put it on a node, let it run, end or delete it."""
    chance, name = history.chance, history.chance.choice(POD_NAMES)
    pod = history.objects[PODS].get(name)
    if pod is not None and chance.random() < 0.12:
        history.remove(PODS, name)
        return
    group = chance.choice(["", *GROUP_NAMES])
    phase, node = "Pending", ""
    if pod is not None:
        phase, node = pod["status"]["phase"], pod["spec"].get("nodeName", "")
        if chance.random() < 0.7:
            group = pod["metadata"]["annotations"].get("pod-group-name", group)
        if not node and chance.random() < 0.6:
            node = chance.choice(NODE_NAMES)
        elif node:
            phase = chance.choice(["Running", "Running", "Succeeded", "Failed"])
    gpus = pod["gpus"] if pod else chance.choice([0, 1, 2])
    requests = {"cpu": "500m", "memory": "1Gi", "nvidia.com/gpu": str(gpus)}
    body: dict[str, Any] = {
        "metadata": {"annotations": {"pod-group-name": group} if group else {}},
        "spec": {
            "schedulerName": "kai-scheduler",
            "containers": [{"name": "main", "resources": {"requests": requests}}],
        },
        "status": {"phase": phase},
        "gpus": gpus,
    }
    if node:
        body["spec"]["nodeName"] = node
    history.put(PODS, name, body, NAMESPACE)
