"""Write the devices that the scheduler chose into the pod's resource claims, and reserve them for the pod."""

from __future__ import annotations

from binder.errors import BindError
from binder.params import StepConfig
from binder.steps.base import BindJob
from binder.steps.claim_status import ConflictRetry, allocate_claim
from binder.steps.device_conditions import DeviceConditions, has_binding_conditions
from binder.steps.extended_claim import ExtendedClaims
from kube.gateway import Gateway
from kube.objects.bindrequest import ClaimAllocation
from kube.objects.pod import Pod


class DeviceClaims:
    """The step for pods with resource claims, or with extended resources that a device class serves."""

    def __init__(
        self, gateway: Gateway, config: StepConfig, retry: ConflictRetry | None = None
    ) -> None:
        self._gateway = gateway
        self._retry = retry or ConflictRetry(timeout_s=config.seconds("bindTimeoutSeconds"))
        self._extended = ExtendedClaims(gateway, self._retry)
        self._conditions = DeviceConditions(gateway, self._retry)

    def concerns(self, job: BindJob) -> bool:
        spec = job.request.spec
        has_extended = spec.extended_resource_claim_allocation is not None
        return bool(spec.resource_claim_allocations) or has_extended

    def prepare(self, job: BindJob) -> None:
        for allocation in job.request.spec.resource_claim_allocations:
            self._allocate(job.pod, allocation)
        for name in self._claims_that_wait(job):
            self._conditions.wait(job.pod, name)
        extended = job.request.spec.extended_resource_claim_allocation
        if extended is not None:
            self._extended.prepare(job.pod, extended)

    def roll_back(self, job: BindJob) -> None:
        """Delete the extended resource claim, and take back devices that were not prepared.

        Other claims stay reserved for the next attempt, as in KAI.
        """
        for name in self._claims_that_wait(job):
            self._conditions.release(job.pod, name)
        if job.request.spec.extended_resource_claim_allocation is not None:
            self._extended.roll_back(job.pod)

    def _claims_that_wait(self, job: BindJob) -> list[str]:
        """Return the names of the claims whose devices are to be prepared before the pod is bound."""
        return [
            _claim_name(job.pod, item.name)
            for item in job.request.spec.resource_claim_allocations
            if has_binding_conditions(item.allocation)
        ]

    def _allocate(self, pod: Pod, allocation: ClaimAllocation) -> None:
        if allocation.allocation is None:
            raise BindError(
                f"empty status for claim {allocation.name} in bind request for pod "
                f"{pod.metadata.key}"
            )
        name = _claim_name(pod, allocation.name)
        allocate_claim(self._gateway, self._retry, pod, name, allocation.allocation)


def _claim_name(pod: Pod, own_name: str) -> str:
    """Return the name of the claim object that a pod refers to as `own_name`."""
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
