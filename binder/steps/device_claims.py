"""Write the devices the scheduler chose into the pod's resource claims, and reserve them for the pod."""

from __future__ import annotations

from typing import Any

from binder.errors import BindError
from binder.params import StepConfig
from binder.steps.base import BindJob
from kube.errors import ConflictError, KubeError
from kube.gateway import Gateway
from kube.objects.bindrequest import ClaimAllocation
from kube.objects.devices import ResourceClaim
from kube.objects.pod import Pod
from kube.resources import RESOURCE_CLAIMS

ATTEMPTS = 5


class DeviceClaims:
    """The step for pods with resource claims."""

    def __init__(self, gateway: Gateway, config: StepConfig) -> None:
        self._gateway = gateway
        config.seconds("bindTimeoutSeconds")

    def concerns(self, job: BindJob) -> bool:
        return bool(job.request.spec.resource_claim_allocations)

    def prepare(self, job: BindJob) -> None:
        for allocation in job.request.spec.resource_claim_allocations:
            self._allocate(job.pod, allocation)

    def roll_back(self, job: BindJob) -> None:
        """Leave ordinary claims reserved, as KAI does: the next attempt finds them so."""

    def _allocate(self, pod: Pod, allocation: ClaimAllocation) -> None:
        if allocation.allocation is None:
            raise BindError(
                f"empty status for claim {allocation.name} in bind request for pod "
                f"{pod.metadata.key}"
            )
        name = _real_name(pod, allocation.name)
        for attempt in range(1, ATTEMPTS + 1):
            try:
                self._write(pod, name, allocation.allocation)
                return
            except ConflictError:
                if attempt == ATTEMPTS:
                    raise
            except KubeError as error:
                raise BindError(
                    f"failed to update claim {name} for pod {pod.metadata.key}: {error}"
                ) from error

    def _write(self, pod: Pod, name: str, allocation: dict[str, Any]) -> None:
        namespace = pod.metadata.namespace
        claim = self._gateway.get(RESOURCE_CLAIMS, name, as_type=ResourceClaim, namespace=namespace)
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
            "reservedFor": [
                {key: value for key, value in item.items() if value} for item in consumers
            ],
        }
        body = {
            "metadata": {"resourceVersion": claim.metadata.resource_version},
            "status": status,
        }
        self._gateway.patch(RESOURCE_CLAIMS, name, body, namespace=namespace, sub="status")


def _real_name(pod: Pod, own_name: str) -> str:
    """Return the claim behind a pod's own name for it."""
    for reference in pod.spec.resource_claims:
        if reference.name != own_name:
            continue
        if reference.resource_claim_name:
            return reference.resource_claim_name
        for status in pod.status.resource_claim_statuses:
            if status.name == own_name and status.resource_claim_name:
                return status.resource_claim_name
    raise BindError(
        f"claim {own_name} from bind request not found in pod {pod.metadata.namespace}/"
        f"{pod.metadata.name}"
    )
