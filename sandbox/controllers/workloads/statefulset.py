"""StatefulSets: pods with fixed names, created and replaced in order.

Supports ordered and parallel management, a first ordinal, rolling updates from the highest ordinal down with a
partition, OnDelete, and one volume claim per pod and template.
Not supported: ControllerRevision objects, maxUnavailable, claim retention policies.
"""

from __future__ import annotations

from collections.abc import Sequence

from kube.resources import PODS, PVCS, STATEFULSETS
from sandbox.controllers.workloads.objects import Json, StatefulSet, WorkPod
from sandbox.controllers.workloads.plan import Plan, pod_body, template_hash

HASH = "controller-revision-hash"
POD_NAME = "statefulset.kubernetes.io/pod-name"
POD_INDEX = "apps.kubernetes.io/pod-index"


def plan(statefulset: StatefulSet, pods: Sequence[WorkPod]) -> Plan:
    """Return what to write for one StatefulSet; `pods` are those it owns, in any state."""
    result = Plan()
    revision = f"{statefulset.metadata.name}-{template_hash(statefulset.spec.template)}"
    by_ordinal = {ordinal_of(pod): pod for pod in pods}
    if statefulset.metadata.deletion_timestamp is None:
        _adjust(statefulset, by_ordinal, revision, result)
    _write_status(statefulset, by_ordinal, revision, result)
    return result


def ordinal_of(pod: WorkPod) -> int:
    """Return the number at the end of the pod's name, or -1."""
    text = pod.metadata.name.rpartition("-")[2]
    return int(text) if text.isdigit() else -1


def _ordinals(statefulset: StatefulSet) -> range:
    """Return the numbers of the desired pods."""
    start = int(statefulset.spec.ordinals.get("start", 0))
    return range(start, start + statefulset.spec.replicas)


def _adjust(
    statefulset: StatefulSet, pods: dict[int, WorkPod], revision: str, result: Plan
) -> None:
    """Plan the next change towards the desired pods; with parallel management all changes."""
    is_ordered = statefulset.spec.pod_management_policy != "Parallel"
    desired = _ordinals(statefulset)
    for ordinal in desired:
        pod = pods.get(ordinal)
        if pod is None:
            _create(statefulset, ordinal, revision, result)
        elif pod.is_finished and not pod.is_terminating:
            result.delete_pods([pod])
        if is_ordered and (pod is None or not pod.is_ready or pod.is_terminating):
            return
    for ordinal in sorted((number for number in pods if number not in desired), reverse=True):
        if not pods[ordinal].is_terminating:
            result.delete_pods([pods[ordinal]])
        if is_ordered:
            return
    _update(statefulset, pods, revision, result)


def _update(
    statefulset: StatefulSet, pods: dict[int, WorkPod], revision: str, result: Plan
) -> None:
    """Delete the highest pod of an older template, once all pods above it are ready."""
    strategy = statefulset.spec.update_strategy
    if strategy.get("type") == "OnDelete":
        return
    partition = int((strategy.get("rollingUpdate") or {}).get("partition", 0))
    # The partition counts pods, whatever the first of them is called.
    for ordinal in reversed(_ordinals(statefulset)[partition:]):
        pod = pods.get(ordinal)
        if pod is None or pod.is_terminating:
            return
        if pod.metadata.labels.get(HASH) != revision:
            result.delete_pods([pod])
            return
        if not pod.is_ready:
            return


def _create(statefulset: StatefulSet, ordinal: int, revision: str, result: Plan) -> None:
    name = f"{statefulset.metadata.name}-{ordinal}"
    labels = {HASH: revision, POD_NAME: name, POD_INDEX: str(ordinal)}
    body = pod_body(STATEFULSETS, statefulset, statefulset.spec.template, labels=labels, name=name)
    spec = {
        **body["spec"],
        "hostname": name,
        "subdomain": statefulset.spec.service_name,
    }
    claims = statefulset.spec.volume_claim_templates
    if claims:
        volumes = [_volume(claim, name) for claim in claims]
        names = {volume["name"] for volume in volumes}
        others = [volume for volume in spec.get("volumes", ()) if volume["name"] not in names]
        spec["volumes"] = [*others, *volumes]
        for claim in claims:
            result.create(PVCS, statefulset.metadata.namespace, _claim(claim, name))
    result.create(PODS, statefulset.metadata.namespace, {**body, "spec": spec})


def _volume(claim: Json, pod: str) -> Json:
    name = claim["metadata"]["name"]
    return {"name": name, "persistentVolumeClaim": {"claimName": f"{name}-{pod}"}}


def _claim(template: Json, pod: str) -> Json:
    metadata = {**template["metadata"], "name": f"{template['metadata']['name']}-{pod}"}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata,
        "spec": template["spec"],
    }


def _write_status(
    statefulset: StatefulSet, pods: dict[int, WorkPod], revision: str, result: Plan
) -> None:
    present = [pod for pod in pods.values() if not pod.is_terminating]
    ready = sum(1 for pod in present if pod.is_ready)
    updated = sum(1 for pod in present if pod.metadata.labels.get(HASH) == revision)
    is_done = updated == len(present) == statefulset.spec.replicas
    current = statefulset.status.get("currentRevision") or revision
    status = {
        "observedGeneration": statefulset.metadata.generation,
        "replicas": len(present),
        "readyReplicas": ready or None,
        "availableReplicas": ready,
        "updatedReplicas": updated or None,
        "currentReplicas": sum(1 for pod in present if pod.metadata.labels.get(HASH) == current)
        or None,
        "currentRevision": revision if is_done else current,
        "updateRevision": revision,
        "collisionCount": 0,
    }
    result.set_status(STATEFULSETS, statefulset, statefulset.status, status)
