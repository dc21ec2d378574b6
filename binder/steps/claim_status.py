"""Write into a resource claim its devices and the pod that uses it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from binder.errors import BindError
from kube.errors import ConflictError, KubeError
from kube.gateway import Gateway
from kube.keys import DELETE_PROTECTION
from kube.objects.devices import ResourceClaim
from kube.objects.pod import Pod
from kube.process.progress import track
from kube.resources import RESOURCE_CLAIMS

PAUSE_S = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictRetry:
    """How long to retry a write while other clients change the same claim."""

    timeout_s: float
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def run(self, write: Callable[[], None]) -> None:
        """Call `write` until it meets no conflict; raise the last `ConflictError` after `timeout_s`."""
        deadline = self.clock() + self.timeout_s
        while True:
            track().touch()
            try:
                return write()
            except ConflictError:
                if self.clock() >= deadline:
                    raise
            self.sleep(PAUSE_S)


def allocate_claim(
    gateway: Gateway, retry: ConflictRetry, pod: Pod, name: str, allocation: dict[str, Any]
) -> None:
    """Write devices into a claim that has none yet and reserve it for a pod; repeating it changes nothing.

    Parameters
    ----------
    name : the claim's name, in the namespace of the pod
    allocation : the AllocationResult that the scheduler chose

    Raises
    ------
    BindError : the claim cannot be updated, or other clients kept changing it until the timeout
    """
    try:
        retry.run(lambda: _allocate_once(gateway, pod, name, allocation))
    except KubeError as error:
        raise BindError(
            f"failed to update claim {name} for pod {pod.metadata.key}: {error}"
        ) from error


def _allocate_once(gateway: Gateway, pod: Pod, name: str, allocation: dict[str, Any]) -> None:
    namespace = pod.metadata.namespace
    claim = gateway.get(RESOURCE_CLAIMS, name, as_type=ResourceClaim, namespace=namespace)
    consumers = [
        {
            "apiGroup": item.api_group,
            "resource": item.resource,
            "name": item.name,
            "uid": item.uid,
        }
        for item in claim.status.reserved_for
    ]
    is_reserved = any(item["uid"] == pod.metadata.uid for item in consumers)
    if is_reserved and claim.status.allocation:
        return
    if not is_reserved:
        meta = pod.metadata
        consumers.append({"resource": "pods", "name": meta.name, "uid": meta.uid})
    status = {
        "allocation": claim.status.allocation or allocation,
        "reservedFor": [{key: value for key, value in item.items() if value} for item in consumers],
    }
    version = claim.metadata.resource_version
    if DELETE_PROTECTION not in claim.metadata.finalizers:
        version = _protect(gateway, claim)
    body = {"metadata": {"resourceVersion": version}, "status": status}
    gateway.patch(RESOURCE_CLAIMS, name, body, namespace=namespace, sub="status")


def _protect(gateway: Gateway, claim: ResourceClaim) -> str:
    """Keep a claim from being deleted while it has devices; return its new version.

    Kubernetes' claim controller takes the protection away with the devices.
    """
    meta = claim.metadata
    body = {
        "metadata": {
            "resourceVersion": meta.resource_version,
            "finalizers": [*meta.finalizers, DELETE_PROTECTION],
        }
    }
    changed = gateway.patch(RESOURCE_CLAIMS, meta.name, body, namespace=meta.namespace)
    return str(changed["metadata"]["resourceVersion"])
