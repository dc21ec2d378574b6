"""Build the body of a BindRequest, the only data the binder receives."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kube.keys import FENCE, NVIDIA_GPU, SELECTED_NODE_LABEL
from kube.objects.pod import Pod
from kube.resources import BINDREQUESTS
from kube.values.quantity import format_decimal
from scheduler.core.cluster.device_inputs import EXTENDED_CLAIM
from scheduler.core.cluster.inputs import NumaShare
from scheduler.core.decisions import Bind, ReceivedType
from scheduler.load.claims import allocation_body, claim_name
from scheduler.load.extended import extended_body
from scheduler.settings.params import ShardParams

#: One attempt per request: the next is the scheduler's, which may choose another node and lets others go first.
BACKOFF_LIMIT = 1


def bind_request_body(decision: Bind, pod: Pod, params: ShardParams, fence: int) -> dict[str, Any]:
    """Return the object to create: named after the pod and owned by it, so that it is deleted with the pod."""
    meta = pod.metadata
    annotations = {FENCE: str(fence)} if fence else {}
    owner = {"apiVersion": "v1", "kind": "Pod", "name": meta.name, "uid": meta.uid}
    return {
        "apiVersion": BINDREQUESTS.api_version,
        "kind": BINDREQUESTS.kind,
        "metadata": {
            "name": meta.name,
            "namespace": meta.namespace,
            "labels": {SELECTED_NODE_LABEL: decision.node, **params.pool_labels()},
            "annotations": annotations,
            "ownerReferences": [owner],
        },
        "spec": _spec(decision, pod),
    }


def _spec(decision: Bind, pod: Pod) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "podName": pod.metadata.name,
        "selectedNode": decision.node,
        "receivedResourceType": decision.received_type.value,
        "receivedGPU": {
            "count": int(decision.gpu_count),
            "portion": f"{decision.gpu_portion:.2f}",
        },
        "backoffLimit": BACKOFF_LIMIT,
    }
    if decision.received_type is ReceivedType.FRACTION:
        spec["selectedGPUGroups"] = list(decision.gpu_groups)
    own_names = {claim_name(pod, item): item.name for item in pod.spec.resource_claims}
    claimed = [
        {"name": own_names[item.claim], "allocation": allocation_body(item)}
        for item in decision.claim_allocations
        if item.claim in own_names
    ]
    if claimed:
        spec["resourceClaimAllocations"] = claimed
    for item in decision.claim_allocations:
        if item.claim == EXTENDED_CLAIM:
            spec["extendedResourceClaimAllocation"] = extended_body(item, pod)
    if decision.numa:
        spec["predictedNUMAZones"] = [_zone(share) for share in decision.numa]
    return spec


def _zone(share: NumaShare) -> dict[str, Any]:
    return {"zone": share.zone, "amount": dict(_quantities(share.amounts))}


def _quantities(amounts: Iterable[tuple[str, float]]) -> Iterable[tuple[str, str]]:
    """Turn core amounts back into quantities under their Kubernetes names."""
    for name, amount in amounts:
        if name == "gpu":
            yield NVIDIA_GPU, format_decimal(amount)
        elif name in ("memory", "ephemeral-storage"):
            yield name, str(round(amount))
        else:
            yield name, format_decimal(amount / 1000)
