"""Wait until drivers have prepared the devices of a claim, and take the devices back if they have not.

Some devices are connected to a node only once they are given to a claim. The allocation names the conditions that
the driver then sets on each device in the claim's status, and those that say that it failed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from binder.errors import BindError
from binder.steps.claim_status import ConflictRetry
from kube.errors import KubeError, NotFoundError
from kube.gateway import Gateway
from kube.objects.devices import AllocatedDevice, AllocationResult, ResourceClaim
from kube.objects.meta import convert
from kube.objects.pod import Pod
from kube.process.progress import track
from kube.resources import RESOURCE_CLAIMS

POLL_S = 0.5


def has_binding_conditions(allocation: dict[str, Any] | None) -> bool:
    """Return whether a pod must wait for any device of an allocation."""
    return any(device.binding_conditions for device in _devices(allocation))


@dataclass(frozen=True, slots=True)
class DeviceConditions:
    """The conditions of the devices that claims hold; `retry` gives the timeout and the clock."""

    gateway: Gateway
    retry: ConflictRetry

    def wait(self, pod: Pod, name: str) -> None:
        """Wait until all devices of a claim are prepared.

        Raises
        ------
        BindError : a driver reports that it failed, the devices were taken away, or the timeout is over
        """
        deadline = self.retry.clock() + self.retry.timeout_s
        while True:
            track().touch()
            lacking = self._lacking(pod, name)
            if not lacking:
                return
            if self.retry.clock() >= deadline:
                raise BindError(
                    f"timed out waiting for the devices of claim {name} of pod "
                    f"{pod.metadata.key}: {', '.join(lacking)}"
                )
            self.retry.sleep(POLL_S)

    def release(self, pod: Pod, name: str) -> None:
        """Take the devices from a claim if they are not prepared and nobody but the pod has reserved it.

        So the scheduler can choose others.
        """
        self.retry.run(lambda: self._release_once(pod, name))

    def _lacking(self, pod: Pod, name: str) -> list[str]:
        """Return which conditions are not there yet, each with its device."""
        try:
            claim = self._read(pod, name)
        except KubeError as error:
            raise BindError(
                f"failed to read claim {name} for pod {pod.metadata.key}: {error}"
            ) from error
        if claim.status.allocation is None:
            raise BindError(f"claim {name} of pod {pod.metadata.key} has lost its devices")
        failures = _reported(claim, failures=True)
        if failures:
            raise BindError(
                f"devices of claim {name} of pod {pod.metadata.key} cannot be prepared: "
                f"{', '.join(failures)}"
            )
        return _lacking(claim)

    def _release_once(self, pod: Pod, name: str) -> None:
        try:
            claim = self._read(pod, name)
        except NotFoundError:
            return
        status = claim.status
        others = [item for item in status.reserved_for if item.uid != pod.metadata.uid]
        is_prepared = not _lacking(claim) and not _reported(claim, failures=True)
        if others or status.allocation is None or is_prepared:
            return
        body = {
            "metadata": {"resourceVersion": claim.metadata.resource_version},
            "status": {"allocation": None, "reservedFor": None, "devices": None},
        }
        namespace = pod.metadata.namespace
        self.gateway.patch(RESOURCE_CLAIMS, name, body, namespace=namespace, sub="status")

    def _read(self, pod: Pod, name: str) -> ResourceClaim:
        namespace = pod.metadata.namespace
        return self.gateway.get(RESOURCE_CLAIMS, name, as_type=ResourceClaim, namespace=namespace)


def _lacking(claim: ResourceClaim) -> list[str]:
    """Return the conditions that a pod still waits for."""
    reported = set(_reported(claim, failures=False))
    return [text for text in _named(claim, failures=False) if text not in reported]


def _reported(claim: ResourceClaim, *, failures: bool) -> list[str]:
    """Return which of the named conditions are true."""
    true_ones = {
        _text(part.driver, part.pool, part.device, part.share_id, condition.type)
        for part in claim.status.devices
        for condition in part.conditions
        if condition.status == "True"
    }
    return [text for text in _named(claim, failures=failures) if text in true_ones]


def _named(claim: ResourceClaim, *, failures: bool) -> list[str]:
    """Return the conditions of success, or of failure, that the allocation of a claim names."""
    return [
        _text(item.driver, item.pool, item.device, item.share_id, condition)
        for item in _devices(claim.status.allocation)
        for condition in (item.binding_failure_conditions if failures else item.binding_conditions)
    ]


def _text(driver: str, pool: str, device: str, share: str, condition: str) -> str:
    part = f"/{share}" if share else ""
    return f"{condition} of {driver}/{pool}/{device}{part}"


def _devices(allocation: dict[str, Any] | None) -> Iterable[AllocatedDevice]:
    return convert(allocation, AllocationResult).devices.results if allocation else ()
