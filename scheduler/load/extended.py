"""Write the claim for a pod's extended resources into a BindRequest, and read it back.

The core decides which devices serve which request `container-<i>-request-<j>`. The binder also needs the
requests themselves, to write the claim, and which container uses which of them, for the kubelet.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from kube.objects.bindrequest import ExtendedClaimAllocation
from kube.objects.devices import DeviceRequest as ApiRequest
from kube.objects.meta import convert
from kube.objects.pod import Pod
from kube.values.quantity import parse_quantity
from scheduler.core.cluster.device_inputs import EXTENDED_CLAIM, ClaimAllocation, DeviceRequest
from scheduler.load.claims import allocation_body, allocation_from, device_requests


@dataclass(frozen=True, slots=True)
class _Need:
    """One container's request for one resource; `index` counts over init and app containers."""

    index: int
    container: str
    is_init: bool
    resource: str
    amount: int
    request: str


def extended_body(allocation: ClaimAllocation, pod: Pod) -> dict[str, Any]:
    """Write `extendedResourceClaimAllocation`."""
    counts = {item.name: int(item.count) for item in allocation.requests}
    return {
        "allocation": allocation_body(allocation),
        "deviceRequests": [_request_body(item) for item in allocation.requests],
        "containerMappings": [
            {"containerName": need.container, "resourceName": need.resource, "requestName": name}
            for need, name in _mappings(pod, counts)
        ],
    }


def extended_from(body: ExtendedClaimAllocation, namespace: str) -> ClaimAllocation:
    """Read `extendedResourceClaimAllocation`."""
    requests = tuple(convert(item, ApiRequest) for item in body.device_requests)
    return replace(
        allocation_from(EXTENDED_CLAIM, namespace, body.allocation or {}),
        requests=device_requests(requests),
    )


def _request_body(request: DeviceRequest) -> dict[str, Any]:
    exactly = {
        "deviceClassName": request.device_class,
        "allocationMode": "ExactCount",
        "count": int(request.count),
    }
    return {"name": request.name, "exactly": exactly}


def _mappings(pod: Pod, counts: Mapping[str, int]) -> Iterator[tuple[_Need, str]]:
    """Yield which request serves which need; an init container uses requests of containers that start later."""
    needs = list(_needs(pod))
    claimed = [need for need in needs if need.request in counts]
    for need in needs:
        if not need.is_init:
            if need.request in counts:
                yield need, need.request
            continue
        lacking = need.amount
        for other in sorted(claimed, key=lambda need: need.is_init):
            is_lender = other.is_init or other.index > need.index
            if lacking > 0 and is_lender and other.resource == need.resource:
                lacking -= counts[other.request]
                yield need, other.request


def _needs(pod: Pod) -> Iterator[_Need]:
    containers = (*pod.spec.init_containers, *pod.spec.containers)
    for index, container in enumerate(containers):
        is_init = index < len(pod.spec.init_containers) and not container.is_sidecar
        amounts = {**container.resources.limits, **container.resources.requests}
        for number, name in enumerate(sorted(amounts)):
            request = f"container-{index}-request-{number}"
            amount = int(parse_quantity(amounts[name])) if "/" in name else 0
            if amount > 0:
                yield _Need(index, container.name, is_init, name, amount, request)
