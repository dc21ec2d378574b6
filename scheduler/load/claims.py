"""Devices of dynamic resource allocation: resource claims, classes, slices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kube.keys import EXTENDED_RESOURCE_CLAIM
from kube.objects import devices as api
from kube.objects.meta import convert
from kube.objects.pod import Pod, PodResourceClaim
from kube.process.set_aside import SetAside
from scheduler.core.cluster.constraints import NodeTerm
from scheduler.core.cluster.inputs import (
    EXTENDED_CLAIM,
    ClaimAllocation,
    Device,
    DeviceClaim,
    DeviceClass,
    DeviceInputs,
    DeviceRequest,
    DeviceSlice,
)
from scheduler.load.selectors import matching_devices
from scheduler.load.terms import node_terms

Claim = api.ResourceClaim


def claim_name(pod: Pod, reference: PodResourceClaim) -> str:
    """Return the real name of a pod's claim; the pod's own name for it while none was made yet."""
    if reference.resource_claim_name:
        return reference.resource_claim_name
    names = (
        item.resource_claim_name
        for item in pod.status.resource_claim_statuses
        if item.name == reference.name
    )
    return next(names, reference.name)


def of_pod(pod: Pod, claimed: Mapping[str, Claim]) -> list[Claim]:
    """Return the claims of a pod that exist by now."""
    names = (claim_name(pod, reference) for reference in pod.spec.resource_claims)
    existing = (claimed.get(f"{pod.metadata.namespace}/{name}") for name in names)
    return [claim for claim in existing if claim is not None]


def device_inputs(
    classes: Iterable[api.DeviceClass],
    slices: Sequence[api.ResourceSlice],
    claimed: Iterable[Claim],
    aside: SetAside | None = None,
) -> DeviceInputs:
    """Return everything the core needs to give devices to claims; `aside` takes what cannot be read."""
    aside = aside or SetAside("snapshot")
    device_classes = tuple(aside.each("DeviceClass", classes, _device_class))
    device_claims = tuple(aside.each("ResourceClaim", claimed, _device_claim))
    readable = [item for item in slices if aside.read("ResourceSlice", item, _slice) is not None]
    texts = {text for item in device_classes for text in item.selectors}
    texts |= {text for item in device_claims for req in item.requests for text in req.selectors}
    return DeviceInputs(
        classes=device_classes,
        slices=tuple(_slice(item) for item in readable),
        claims=device_claims,
        matching=matching_devices(sorted(texts), readable) if texts else None,
    )


def dra_gpus(slices: Iterable[api.ResourceSlice]) -> dict[str, float]:
    """Return the number of GPUs published through slices, by node."""
    counts: dict[str, float] = {}
    for item in slices:
        if item.spec.node_name and "gpu" in item.spec.driver.lower():
            counts[item.spec.node_name] = counts.get(item.spec.node_name, 0.0) + len(
                item.spec.devices
            )
    return counts


def allocation_from(claim: str, namespace: str, body: dict[str, Any]) -> ClaimAllocation:
    """Read an AllocationResult."""
    result = convert(body, api.AllocationResult)
    return ClaimAllocation(
        claim=claim,
        namespace=namespace,
        devices=tuple(
            (item.driver, item.pool, item.device, item.request) for item in result.devices.results
        ),
        node_terms=node_terms(result.node_selector),
    )


def allocation_body(allocation: ClaimAllocation) -> dict[str, Any]:
    """Write an AllocationResult."""
    results = [
        {"driver": driver, "pool": pool, "device": device, "request": request}
        for driver, pool, device, request in allocation.devices
    ]
    body: dict[str, Any] = {"devices": {"results": results}}
    if allocation.node_terms is not None:
        body["nodeSelector"] = {
            "nodeSelectorTerms": [_term_body(term) for term in allocation.node_terms]
        }
    return body


def device_requests(requests: Iterable[api.DeviceRequest]) -> tuple[DeviceRequest, ...]:
    """Read the requests of a claim; of alternatives none is chosen here."""
    return tuple(
        DeviceRequest(
            name=item.name,
            device_class=item.exactly.device_class_name,
            count=float(item.exactly.count or 1),
            mode=item.exactly.allocation_mode or "ExactCount",
            selectors=tuple(_cel(item.exactly.selectors)),
        )
        for item in requests
        if item.exactly
    )


def _term_body(term: NodeTerm) -> dict[str, Any]:
    parts = {"matchExpressions": term.labels, "matchFields": term.fields}
    return {
        name: [
            {"key": item.key, "operator": item.operator.value, "values": list(item.values)}
            for item in expressions
        ]
        for name, expressions in parts.items()
        if expressions
    }


def _device_class(item: api.DeviceClass) -> DeviceClass:
    return DeviceClass(
        name=item.metadata.name,
        selectors=tuple(_cel(item.spec.selectors)),
        extended_resource=item.spec.extended_resource_name,
        created=item.metadata.created,
    )


def _device_claim(claim: Claim) -> DeviceClaim:
    meta = claim.metadata
    body = claim.status.allocation
    owners = [owner.uid for owner in meta.owner_references if owner.kind == "Pod"]
    requests = device_requests(claim.spec.devices.requests)
    is_extended = meta.annotations.get(EXTENDED_RESOURCE_CLAIM) == "true"
    allocation = None
    if body:
        name = EXTENDED_CLAIM if is_extended else meta.name
        allocation = allocation_from(name, meta.namespace, body)
        allocation = replace(allocation, requests=requests if is_extended else ())
    return DeviceClaim(
        name=meta.name,
        namespace=meta.namespace,
        requests=requests,
        labels=meta.labels,
        allocation=allocation,
        reserved_for=tuple(
            item.uid for item in claim.status.reserved_for if item.resource == "pods"
        ),
        owner_uid=owners[0] if owners else "",
        is_extended_resource=is_extended,
    )


def _slice(item: api.ResourceSlice) -> DeviceSlice:
    spec = item.spec
    return DeviceSlice(
        driver=spec.driver,
        pool=spec.pool.name,
        node=spec.node_name,
        devices=tuple(
            Device(
                name=device.name,
                attributes={
                    name: next(iter(value.values()))
                    for name, value in device.attributes.items()
                    if value
                },
            )
            for device in spec.devices
        ),
        all_nodes=spec.all_nodes,
        node_terms=node_terms(spec.node_selector),
    )


def _cel(selectors: Iterable[api.DeviceSelector]) -> Iterable[str]:
    return (item.cel["expression"] for item in selectors if item.cel.get("expression"))
