"""Write into a resource claim which devices it has and which pod uses it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from binder.errors import BindError
from kube.errors import ConflictError, KubeError
from kube.gateway import Gateway
from kube.objects.devices import ResourceClaim
from kube.objects.pod import Pod
from kube.progress import track
from kube.resources import RESOURCE_CLAIMS

PAUSE_S = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long to try again while others change the same claim."""

    timeout_s: float
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def until_undisturbed(self, write: Callable[[], None]) -> None:
        """Write, and again after each conflict; the last one is raised when the time is over."""
        deadline = self.clock() + self.timeout_s
        while True:
            track().touch()
            try:
                return write()
            except ConflictError:
                if self.clock() >= deadline:
                    raise
            self.sleep(PAUSE_S)


def give(
    gateway: Gateway, patience: Patience, pod: Pod, name: str, allocation: dict[str, Any]
) -> None:
    """Give devices to a claim that has none yet and reserve it for a pod; done twice it changes nothing.

    Raises
    ------
    BindError : the claim cannot be updated, or others changed it again and again
    """
    try:
        patience.until_undisturbed(lambda: _give_once(gateway, pod, name, allocation))
    except KubeError as error:
        raise BindError(
            f"failed to update claim {name} for pod {pod.metadata.key}: {error}"
        ) from error


def _give_once(gateway: Gateway, pod: Pod, name: str, allocation: dict[str, Any]) -> None:
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
    body = {
        "metadata": {"resourceVersion": claim.metadata.resource_version},
        "status": status,
    }
    gateway.patch(RESOURCE_CLAIMS, name, body, namespace=namespace, sub="status")
