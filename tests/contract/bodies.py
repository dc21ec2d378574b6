"""Small valid objects for the contract."""

from __future__ import annotations

from typing import Any

Body = dict[str, Any]


def configmap(name: str, labels: Body | None = None, **data: str) -> Body:
    metadata: Body = {"name": name}
    if labels:
        metadata["labels"] = labels
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def pod(name: str, **metadata: Any) -> Body:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **metadata},
        "spec": {
            "schedulerName": "kai-scheduler",
            "containers": [
                {
                    "name": "main",
                    "image": "example.test/trainer:1",
                    "resources": {"limits": {"nvidia.com/gpu": "1"}},
                }
            ],
        },
    }


def node(name: str, **labels: str) -> Body:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}


def deployment(name: str, replicas: int = 2) -> Body:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "main", "image": "example.test/server:1"}]},
            },
        },
    }


def queue(name: str, **spec: Any) -> Body:
    open_end = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    resources = {"cpu": open_end, "memory": open_end, "gpu": {**open_end, "quota": 4}}
    return {
        "apiVersion": "scheduling.run.ai/v2",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"resources": resources, **spec},
    }


def podgroup(name: str, **spec: Any) -> Body:
    return {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"queue": "team", "minMember": 2, **spec},
    }


def topology(name: str, *levels: str) -> Body:
    return {
        "apiVersion": "kai.scheduler/v1alpha1",
        "kind": "Topology",
        "metadata": {"name": name},
        "spec": {"levels": [{"nodeLabel": level} for level in levels]},
    }
