"""The objects these tests create, each in words that say why it is there."""

from __future__ import annotations

import json
from typing import Any

NAMESPACE = "default"
NODE = "gpu-lab-worker"


def queue(name: str, *, quota: float, limit: float = -1) -> str:
    """A top-level queue with a GPU quota, everything else unlimited."""
    unlimited = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    gpu = {"quota": quota, "limit": limit, "overQuotaWeight": 1}
    resources = {"gpu": gpu, "cpu": unlimited, "memory": unlimited}
    return _manifest("scheduling.run.ai/v2", "Queue", name, {"resources": resources})


def skipped_pod(name: str, *, queue: str) -> str:
    """A pod with the annotation that keeps the pod grouper away."""
    body = json.loads(pod(name, queue=queue))
    body["metadata"]["annotations"] = {"kai.scheduler/skip-podgrouper": "true"}
    return json.dumps(body)


def pod(name: str, *, queue: str, gpus: int = 1, priority_class: str | None = None) -> str:
    """A pod of so many whole GPUs, on the one node the tests look at."""
    spec: dict[str, Any] = {
        "schedulerName": "kai-scheduler",
        "nodeSelector": {"kubernetes.io/hostname": NODE},
        "containers": [
            {
                "name": "main",
                "image": "example.test/trainer:1",
                "resources": {"limits": {"nvidia.com/gpu": str(gpus)}},
            }
        ],
    }
    if priority_class is not None:
        spec["priorityClassName"] = priority_class
    return _manifest("v1", "Pod", name, spec, {"kai.scheduler/queue": queue}, NAMESPACE)


def _manifest(
    version: str,
    kind: str,
    name: str,
    spec: dict[str, Any],
    labels: dict[str, str] | None = None,
    namespace: str | None = None,
) -> str:
    metadata: dict[str, Any] = {"name": name, "labels": labels or {}}
    if namespace is not None:
        metadata["namespace"] = namespace
    return json.dumps({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec})
