"""A large cluster as rows of the embedded API server's database: much quicker than a hundred thousand requests."""

from __future__ import annotations

import json
import sqlite3
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox.nodes.profiles import node_body, status_body, uniform

NAMESPACE = "bench"
GPUS = 8
TEAMS_PER_DEPARTMENT = 19
CREATED = "2026-01-01T00:00:00Z"
#: The share of the workloads that runs; the others wait.
RUNNING_PERCENT = 90
NOW_S = 1_767_225_600.0

Row = tuple[str, str, str, int, bytes]
Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Size:
    """How large the cluster is."""

    queues: int = 2_000
    workloads: int = 50_000
    nodes: int = 10_000

    @property
    def teams(self) -> list[str]:
        """Return the names of the leaf queues; the others are departments of 19 teams each."""
        return [
            f"team-{number:04}"
            for number in range(self.queues)
            if number % (TEAMS_PER_DEPARTMENT + 1)
        ]


def fill(database: Path, size: Size) -> None:
    """Write all objects into the database of an API server that does not run."""
    connection = sqlite3.connect(database)
    with connection:
        newest: int = connection.execute("SELECT max(version) FROM objects").fetchone()[0]
        rows = (
            (storage, body["metadata"].get("namespace", ""), body["metadata"]["name"], version, raw)
            for version, (storage, body) in enumerate(_objects(size), start=newest + 1)
            for raw in [_raw(body, version)]
        )
        connection.executemany("INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?)", rows)
    connection.close()


def _raw(body: Object, version: int) -> bytes:
    meta = body["metadata"]
    meta |= {"uid": str(uuid.UUID(int=version)), "creationTimestamp": CREATED, "generation": 1}
    meta["resourceVersion"] = str(version)
    return json.dumps(body).encode()


def _objects(size: Size) -> Iterator[tuple[str, Object]]:
    yield "namespaces", _object("v1", "Namespace", NAMESPACE)
    for number in range(size.queues):
        yield "queues.scheduling.run.ai", _queue(number)
    for machine in uniform(size.nodes, GPUS):
        yield "nodes", {**node_body(machine), "status": status_body(machine, NOW_S)}
    teams = size.teams
    for number in range(size.workloads):
        node = f"node-{number // GPUS % size.nodes:04d}" if number % 100 < RUNNING_PERCENT else ""
        queue = teams[number % len(teams)]
        yield "podgroups.scheduling.run.ai", _pod_group(number, queue, is_running=node != "")
        yield "pods", _pod(number, node)


def _object(version: str, kind: str, name: str, **more: Any) -> Object:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, **more}}


def _queue(number: int) -> Object:
    unlimited = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    spec: Object = {
        "resources": {
            "gpu": {"quota": 8, "limit": -1, "overQuotaWeight": 1},
            "cpu": unlimited,
            "memory": unlimited,
        }
    }
    place = number % (TEAMS_PER_DEPARTMENT + 1)
    name = f"team-{number:04}" if place else f"department-{number:04}"
    if place:
        spec["parentQueue"] = f"department-{number - place:04}"
    gpus = {"nvidia.com/gpu": str(number % 40)}
    status = {"allocated": gpus, "requested": gpus}
    return {**_object("scheduling.run.ai/v2", "Queue", name), "spec": spec, "status": status}


def _pod_group(number: int, queue: str, *, is_running: bool) -> Object:
    name = f"work-{number:05}"
    group = _object(
        "scheduling.run.ai/v2alpha2",
        "PodGroup",
        name,
        namespace=NAMESPACE,
        labels={"user": f"user-{number % 300}"},
        annotations={"kai.scheduler/top-owner-metadata": f"name: {name}\nkind: Job\n"},
    )
    amounts = {"nvidia.com/gpu": "1"}
    status: Object = {"resourcesStatus": {"requested": amounts}}
    if is_running:
        status["resourcesStatus"]["allocated"] = amounts
    spec = {"queue": queue, "priorityClassName": "train", "minMember": 1}
    return {**group, "spec": spec, "status": status}


def _pod(number: int, node: str) -> Object:
    name = f"work-{number:05}"
    pod = _object(
        "v1", "Pod", f"{name}-0", namespace=NAMESPACE, annotations={"pod-group-name": name}
    )
    resources = {"requests": {"cpu": "4", "nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "1"}}
    spec: Object = {
        "schedulerName": "kai-scheduler",
        "priority": 50,
        "containers": [{"name": "main", "image": "example.test/x:1", "resources": resources}],
    }
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    if node == "":
        return {**pod, "spec": spec, "status": {"phase": "Pending", "conditions": [condition]}}
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": CREATED}
    spec["nodeName"] = node
    return {**pod, "spec": spec, "status": {"phase": "Running", "conditions": [ready]}}
