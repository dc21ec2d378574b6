"""The objects these tests create, each in words that say why it is there."""

from __future__ import annotations

import json
from typing import Any

NAMESPACE = "default"
NODE = "gpu-lab-worker"


def queue(name: str, *, quota: float, limit: float = -1, parent: str | None = None) -> str:
    """A queue with a GPU quota, everything else unlimited; without a parent at the top level."""
    unlimited = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    gpu = {"quota": quota, "limit": limit, "overQuotaWeight": 1}
    resources = {"gpu": gpu, "cpu": unlimited, "memory": unlimited}
    spec: dict[str, Any] = {"resources": resources}
    if parent is not None:
        spec["parentQueue"] = parent
    return _manifest("scheduling.run.ai/v2", "Queue", name, spec)


def skipped_pod(name: str, *, queue: str) -> str:
    """A pod with the annotation that keeps the pod grouper away."""
    body = json.loads(pod(name, queue=queue))
    body["metadata"]["annotations"] = {"kai.scheduler/skip-podgrouper": "true"}
    return json.dumps(body)


def pod(
    name: str,
    *,
    queue: str,
    gpus: int = 1,
    fraction: str | None = None,
    priority_class: str | None = None,
    utilisation: str | None = None,
) -> str:
    """A pod of so many whole GPUs, or of a fraction of one, on the one node the tests look at."""
    container: dict[str, Any] = {"name": "main", "image": "example.test/trainer:1"}
    if fraction is None:
        container["resources"] = {"limits": {"nvidia.com/gpu": str(gpus)}}
    spec: dict[str, Any] = {
        "schedulerName": "kai-scheduler",
        "nodeSelector": {"kubernetes.io/hostname": NODE},
        "containers": [container],
    }
    if priority_class is not None:
        spec["priorityClassName"] = priority_class
    annotations = {} if fraction is None else {"gpu-fraction": fraction}
    if utilisation is not None:
        annotations["sandbox.kaiweb/utilisation"] = utilisation
    labels = {"kai.scheduler/queue": queue}
    return _manifest("v1", "Pod", name, spec, labels, NAMESPACE, annotations)


def _manifest(
    version: str,
    kind: str,
    name: str,
    spec: dict[str, Any],
    labels: dict[str, str] | None = None,
    namespace: str | None = None,
    annotations: dict[str, str] | None = None,
) -> str:
    metadata: dict[str, Any] = {
        "name": name,
        "labels": labels or {},
        "annotations": annotations or {},
    }
    if namespace is not None:
        metadata["namespace"] = namespace
    return json.dumps({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec})
