"""ReplicaSets: keep `spec.replicas` pods active.

Pods belong to a ReplicaSet by their owner reference only; an orphan with matching labels is not adopted.
"""

from __future__ import annotations

from collections.abc import Sequence

from kube.resources import PODS, REPLICASETS
from sandbox.controllers.workloads.objects import ReplicaSet, WorkPod
from sandbox.controllers.workloads.plan import Plan, first_to_go, pod_body


def plan(replicaset: ReplicaSet, pods: Sequence[WorkPod]) -> Plan:
    """Return what to write for one ReplicaSet; `pods` are those it owns, in any state."""
    result = Plan()
    active = [pod for pod in pods if pod.is_active]
    if replicaset.metadata.deletion_timestamp is None:
        desired = replicaset.spec.replicas
        result.delete_pods(first_to_go(active)[: max(0, len(active) - desired)])
        for _ in range(desired - len(active)):
            body = pod_body(REPLICASETS, replicaset, replicaset.spec.template)
            result.create(PODS, replicaset.metadata.namespace, body)
    ready = sum(1 for pod in active if pod.is_ready)
    status = {
        "replicas": len(active),
        "fullyLabeledReplicas": len(active) or None,
        "readyReplicas": ready or None,
        "availableReplicas": ready or None,
        "observedGeneration": replicaset.metadata.generation,
    }
    result.set_status(REPLICASETS, replicaset, replicaset.status, status)
    return result
