"""Builders for the unit tests: pods as a kubelet and as a workload controller see them."""

from __future__ import annotations

from typing import Any

from kube.objects.meta import convert
from sandbox.controllers.workloads.objects import WorkPod
from sandbox.nodes.simpod import GPU, SimPod

NOW = 1_767_225_600.0
NOW_TEXT = "2026-01-01T00:00:00Z"


def sim_pod(
    name: str,
    *,
    node: str = "n1",
    gpus: int = 0,
    phase: str = "Pending",
    restart: str = "Never",
    command: list[str] | None = None,
    status: dict[str, Any] | None = None,
    **metadata: Any,
) -> SimPod:
    container: dict[str, Any] = {"name": "main", "image": "example.test/image:1"}
    if command:
        container["command"] = command
    if gpus:
        container["resources"] = {"requests": {GPU: str(gpus)}, "limits": {GPU: str(gpus)}}
    body = {
        "metadata": {"name": name, "namespace": "ns", "uid": f"uid-{name}", **metadata},
        "spec": {"nodeName": node, "restartPolicy": restart, "containers": [container]},
        "status": {"phase": phase, **(status or {})},
    }
    return convert(body, SimPod)


def running(pod_name: str, **extra: Any) -> SimPod:
    return sim_pod(pod_name, phase="Running", status={"startTime": NOW_TEXT}, **extra)


def work_pod(
    name: str,
    phase: str = "Running",
    *,
    ready: bool | None = None,
    node: str = "n1",
    created: str = NOW_TEXT,
    **metadata: Any,
) -> WorkPod:
    is_ready = phase == "Running" if ready is None else ready
    conditions = [{"type": "Ready", "status": "True"}] if is_ready else []
    body = {
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": f"uid-{name}",
            "creationTimestamp": created,
            **metadata,
        },
        "spec": {"nodeName": node},
        "status": {"phase": phase, "conditions": conditions},
    }
    return convert(body, WorkPod)
