"""Pods that ask for a node pool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from tests.samples.sample import Json

POOL = "kai.scheduler/node-pool"
QUEUE = "kai.scheduler/queue"
ONE_GPU = {"nvidia.com/gpu": "1"}


def pod_yaml(
    name: str,
    *,
    queue: str,
    pool: str,
    limits: Mapping[str, str] = ONE_GPU,
    requests: Mapping[str, str] | None = None,
    **spec: Any,
) -> str:
    """Return a pod of one container; without a pool it belongs to the default one."""
    resources: Json = {"limits": dict(limits)}
    if requests is not None:
        resources["requests"] = dict(requests)
    container = {"name": "main", "image": "example.test/x:1", "resources": resources}
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {QUEUE: queue, **({POOL: pool} if pool else {})}},
        "spec": {"schedulerName": "kai-scheduler", "containers": [container], **spec},
    }
    return yaml.safe_dump(body)
