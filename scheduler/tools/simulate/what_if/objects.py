"""Cluster objects for the workloads and nodes that a question adds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from kube.errors import BadValueError
from kube.keys import GPU_FRACTION, GPU_MEMORY_MIB, NODE_GPU_MEMORY, NVIDIA_GPU, POD_GROUP
from kube.objects.meta import convert
from kube.objects.node import Node
from kube.objects.pod import Pod
from kube.objects.podgroup import PodGroup
from kube.values.times import format_time
from queues.grouping.base import Settings, full_name
from queues.grouping.offline.report import group_pods
from queues.tree.shape import Finding
from scheduler.settings.params import ShardParams
from scheduler.tools.simulate.what_if.question import (
    MAX_PODS,
    NewNodes,
    NewWorkload,
    QuestionError,
    too_many,
)

Body = dict[str, Any]
HOSTNAME = "kubernetes.io/hostname"
MANIFESTS = "/workloads/manifests"


def workload_objects(
    workload: NewWorkload, params: ShardParams, now: float
) -> tuple[PodGroup, list[Pod]]:
    """Return the pod group and the pods of a described workload."""
    labels = _pool_labels(params)
    group = {
        "metadata": _metadata(workload.namespace, workload.name, now, labels=labels),
        "spec": {
            "queue": workload.queue,
            "minMember": workload.min_member or workload.pods,
            "priorityClassName": workload.priority_class,
            "preemptibility": workload.preemptibility,
        },
    }
    pods = [_pod(workload, index, params, now) for index in range(workload.pods)]
    return convert(group, PodGroup), [convert(pod, Pod) for pod in pods]


def _pod(workload: NewWorkload, index: int, params: ShardParams, now: float) -> Body:
    annotations = {POD_GROUP: workload.name}
    requests = {"cpu": f"{workload.cpu_milli:.0f}m", "memory": f"{workload.memory_bytes:.0f}"}
    if workload.gpu_memory_mib:
        annotations[GPU_MEMORY_MIB] = str(workload.gpu_memory_mib)
    elif 0 < workload.gpu < 1:
        annotations[GPU_FRACTION] = f"{workload.gpu:g}"
    elif workload.gpu:
        requests[NVIDIA_GPU] = f"{workload.gpu:.0f}"
    name = f"{workload.name}-{index}"
    labels = _pool_labels(params)
    return {
        "metadata": _metadata(
            workload.namespace, name, now, labels=labels, annotations=annotations
        ),
        "spec": {
            "schedulerName": params.scheduler_name,
            "nodeSelector": workload.node_selector,
            "containers": [{"name": "main", "resources": {"requests": requests}}],
        },
        "status": {"phase": "Pending"},
    }


def _pool_labels(params: ShardParams) -> dict[str, str]:
    if not params.partition_value:
        return {}
    return {params.node_pool_label_key: params.partition_value}


def _metadata(namespace: str, name: str, now: float, **more: Mapping[str, str]) -> Body:
    moment = format_time(datetime.fromtimestamp(now, UTC))
    body = {
        "name": name,
        "uid": f"simulated-{namespace}-{name}",
        "creationTimestamp": moment,
        **more,
    }
    return {**body, "namespace": namespace} if namespace else body


def manifest_objects(
    manifests: Sequence[Mapping[str, Any]], params: ShardParams, now: float
) -> tuple[list[PodGroup], list[Pod], tuple[Finding, ...]]:
    """Return the pod groups and pods that manifests would create, and warnings about pods of other schedulers.

    Raises
    ------
    QuestionError : an object that cannot be read or grouped
    """
    settings = Settings(
        scheduler_name=params.scheduler_name,
        queue_label=params.queue_label_key,
        node_pool_label=params.node_pool_label_key,
    )
    for index, manifest in enumerate(manifests):
        _check_manifest(index, manifest)
    grouped = group_pods([dict(item) for item in manifests], settings)
    if len(grouped.pods) > MAX_PODS:
        raise too_many(MANIFESTS, "pods", len(grouped.pods), MAX_PODS)
    errors = tuple(_refused(f"{name}: {error}") for name, error in grouped.errors.items())
    if errors:
        raise QuestionError(*errors)
    own_bodies = [
        pod for pod in grouped.pods if pod["spec"].get("schedulerName") == params.scheduler_name
    ]
    warnings = tuple(
        _refused(f"pod {full_name(pod)} has another schedulerName and is not scheduled here")
        for pod in grouped.pods
        if pod not in own_bodies
    )
    try:
        groups = [convert(_stamped(body, now), PodGroup) for body in grouped.pod_groups]
        pods = [convert(_stamped(body, now), Pod) for body in own_bodies]
    except BadValueError as error:
        raise QuestionError(_refused(str(error))) from error
    return groups, pods, warnings


def _check_manifest(index: int, manifest: Mapping[str, Any]) -> None:
    metadata = manifest.get("metadata")
    is_named = isinstance(metadata, Mapping) and isinstance(metadata.get("name"), str)
    is_typed = isinstance(manifest.get("kind"), str) and isinstance(manifest.get("apiVersion"), str)
    if not is_named or not is_typed:
        text = "expected an object with apiVersion, kind and metadata.name"
        raise QuestionError(
            Finding(
                pointer=f"{MANIFESTS}/{index}", code="type", message=f"manifest {index}: {text}"
            )
        )


def _refused(message: str) -> Finding:
    return Finding(pointer=MANIFESTS, code="manifest", message=message)


def _stamped(body: Mapping[str, Any], now: float) -> Body:
    """Return a body with the metadata and the status that an API server would add."""
    old = body["metadata"]
    metadata = {**_metadata(old.get("namespace") or "default", old["name"], now), **old}
    metadata["namespace"] = old.get("namespace") or "default"
    return {**body, "metadata": metadata, "status": body.get("status") or {"phase": "Pending"}}


def node_objects(entry: NewNodes, models: Mapping[str, Node], now: float) -> Iterator[Node]:
    """Yield the nodes that an entry adds.

    Raises
    ------
    QuestionError : `like` names no node of the cluster
    """
    for index in range(entry.count):
        name = f"{entry.name}-{index}"
        labels = {**entry.labels, HOSTNAME: name}
        if not entry.like:
            yield convert(_node_body(entry, name, labels, now), Node)
            continue
        model = models.get(entry.like)
        if model is None:
            raise QuestionError(
                Finding(
                    pointer="/nodes/add",
                    code="unknown-node",
                    message=f"nodes/add: node '{entry.like}' does not exist",
                    given=entry.like,
                )
            )
        metadata = msgspec.structs.replace(
            model.metadata,
            name=name,
            uid=f"simulated-{name}",
            labels={**model.metadata.labels, **labels},
        )
        yield msgspec.structs.replace(model, metadata=metadata)


def _node_body(entry: NewNodes, name: str, labels: Mapping[str, str], now: float) -> Body:
    allocatable = {
        "cpu": f"{entry.cpu_milli:.0f}m",
        "memory": f"{entry.memory_bytes:.0f}",
        "pods": "110",
        NVIDIA_GPU: str(entry.gpu),
    }
    memory = {NODE_GPU_MEMORY: str(entry.gpu_memory_mib)} if entry.gpu_memory_mib else {}
    return {
        "metadata": _metadata("", name, now, labels={**memory, **labels}),
        "status": {
            "allocatable": allocatable,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
