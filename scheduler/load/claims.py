"""Resource claims in core terms, and the allocations that bind requests carry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from kube.keys import EXTENDED_RESOURCE_CLAIM
from kube.objects import devices as api
from kube.objects.meta import convert
from kube.objects.pod import Pod, PodResourceClaim
from kube.process.set_aside import SetAside
from kube.values.quantity import format_binary
from queues.workloads.accounting import claimed_devices
from scheduler.core.cluster.constraints import NodeTerm
from scheduler.core.cluster.device_inputs import (
    EXACT_COUNT,
    EXTENDED_CLAIM,
    AllocatedDevice,
    ClaimAllocation,
    ConfigSource,
    ConstraintKind,
    DeviceClaim,
    DeviceConfig,
    DeviceConstraint,
    DeviceInputs,
    DeviceRequest,
    DeviceToleration,
)
from scheduler.load.selectors import matching_devices
from scheduler.load.slices import cel, device_class, device_slice, quantities
from scheduler.load.taint_rules import taint_rule, with_taints
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
    rules: Iterable[api.DeviceTaintRule] = (),
    *,
    aside: SetAside | None = None,
) -> DeviceInputs:
    """Return everything the core needs to give devices to claims; `aside` takes what cannot be read."""
    aside = aside or SetAside("snapshot")
    device_classes = tuple(aside.each("DeviceClass", classes, device_class))
    device_claims = tuple(aside.each("ResourceClaim", claimed, _device_claim))
    readable = [
        item for item in slices if aside.read("ResourceSlice", item, device_slice) is not None
    ]
    taint_rules = tuple(aside.each("DeviceTaintRule", rules, taint_rule))
    texts = {text for item in device_classes for text in item.selectors}
    texts.update(text for rule in taint_rules for text in rule.selectors)
    for claim in device_claims:
        for request in claim.requests:
            for part in (request, *request.alternatives):
                texts.update(part.selectors)
    matching = matching_devices(sorted(texts), readable) if texts else None
    slices_read = [device_slice(item) for item in readable]
    return DeviceInputs(
        classes=device_classes,
        slices=tuple(with_taints(slices_read, taint_rules, device_classes, matching)),
        claims=device_claims,
        matching=matching,
    )


# --------------------------------------------------------------------------------------- allocations


def allocation_from(claim: str, namespace: str, body: dict[str, Any]) -> ClaimAllocation:
    """Read an AllocationResult."""
    result = convert(body, api.AllocationResult)
    return ClaimAllocation(
        claim=claim,
        namespace=namespace,
        devices=tuple(
            AllocatedDevice(
                driver=item.driver,
                pool=item.pool,
                device=item.device,
                request=item.request,
                is_admin=item.admin_access,
                tolerations=_tolerations(item.tolerations),
                share=item.share_id,
                consumed=quantities(item.consumed_capacity),
                binding_conditions=item.binding_conditions,
                binding_failure_conditions=item.binding_failure_conditions,
            )
            for item in result.devices.results
        ),
        node_terms=node_terms(result.node_selector),
        configs=_configs(result.devices.config),
    )


def allocation_body(allocation: ClaimAllocation) -> dict[str, Any]:
    """Write an AllocationResult."""
    devices: dict[str, Any] = {"results": [_result_body(item) for item in allocation.devices]}
    if allocation.configs:
        devices["config"] = [_config_body(item) for item in allocation.configs]
    body: dict[str, Any] = {"devices": devices}
    if allocation.node_terms is not None:
        body["nodeSelector"] = {
            "nodeSelectorTerms": [_term_body(term) for term in allocation.node_terms]
        }
    return body


def _result_body(device: AllocatedDevice) -> dict[str, Any]:
    body: dict[str, Any] = {
        "driver": device.driver,
        "pool": device.pool,
        "device": device.device,
        "request": device.request,
    }
    if device.is_admin:
        body["adminAccess"] = True
    if device.tolerations:
        body["tolerations"] = [toleration_body(item) for item in device.tolerations]
    if device.share:
        body["shareID"] = device.share
    if device.consumed:
        body["consumedCapacity"] = amounts_body(device.consumed)
    if device.binding_conditions:
        body["bindingConditions"] = list(device.binding_conditions)
    if device.binding_failure_conditions:
        body["bindingFailureConditions"] = list(device.binding_failure_conditions)
    return body


def amounts_body(amounts: Iterable[tuple[str, Fraction]]) -> dict[str, str]:
    """Write amounts by name."""
    return {name: format_binary(amount) for name, amount in amounts}


def toleration_body(toleration: DeviceToleration) -> dict[str, Any]:
    """Write a toleration of device taints."""
    parts: dict[str, Any] = {
        "key": toleration.key,
        "operator": toleration.operator,
        "value": toleration.value,
        "effect": toleration.effect,
    }
    body = {name: value for name, value in parts.items() if value}
    if toleration.seconds is not None:
        body["tolerationSeconds"] = toleration.seconds
    return body


def _config_body(config: DeviceConfig) -> dict[str, Any]:
    body: dict[str, Any] = {"source": config.source.value, "opaque": dict(config.settings)}
    if config.requests:
        body["requests"] = list(config.requests)
    return body


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


# -------------------------------------------------------------------------------------------- claims


def device_requests(requests: Iterable[api.DeviceRequest]) -> tuple[DeviceRequest, ...]:
    """Read the requests of a claim."""
    return tuple(_request(item) for item in requests if item.exact or item.first_available)


def _request(item: api.DeviceRequest) -> DeviceRequest:
    if item.exact:
        return _exact_request(item.name, item.exact)
    return DeviceRequest(
        name=item.name,
        alternatives=tuple(
            _exact_request(f"{item.name}/{part.name}", part) for part in item.first_available
        ),
    )


def _exact_request(name: str, exact: api.ExactRequest) -> DeviceRequest:
    return DeviceRequest(
        name=name,
        device_class=exact.device_class_name,
        count=float(exact.count or 1),
        mode=exact.allocation_mode or EXACT_COUNT,
        selectors=tuple(cel(exact.selectors)),
        is_admin=exact.admin_access,
        tolerations=_tolerations(exact.tolerations),
        capacity=quantities(exact.capacity.requests),
    )


def _tolerations(tolerations: Iterable[api.DeviceToleration]) -> tuple[DeviceToleration, ...]:
    return tuple(
        DeviceToleration(
            key=item.key,
            operator=item.operator or "Equal",
            value=item.value,
            effect=item.effect,
            seconds=item.toleration_seconds,
        )
        for item in tolerations
    )


def _constraint(item: api.DeviceConstraint) -> DeviceConstraint:
    kind = ConstraintKind.MATCH if item.match_attribute else ConstraintKind.DISTINCT
    return DeviceConstraint(
        kind=kind,
        attribute=item.match_attribute or item.distinct_attribute,
        requests=item.requests,
    )


def _configs(configs: Iterable[api.DeviceConfiguration]) -> tuple[DeviceConfig, ...]:
    return tuple(
        DeviceConfig(
            settings=item.opaque,
            requests=item.requests,
            source=ConfigSource(item.source or ConfigSource.CLAIM),
        )
        for item in configs
        if item.opaque
    )


def _device_claim(claim: Claim) -> DeviceClaim:
    meta, spec = claim.metadata, claim.spec.devices
    body = claim.status.allocation
    owners = [owner.uid for owner in meta.owner_references if owner.kind == "Pod"]
    requests = device_requests(spec.requests)
    is_extended = meta.annotations.get(EXTENDED_RESOURCE_CLAIM) == "true"
    allocation = None
    if body:
        name = EXTENDED_CLAIM if is_extended else meta.name
        allocation = allocation_from(name, meta.namespace, body)
        allocation = replace(allocation, requests=requests if is_extended else ())
    return DeviceClaim(
        name=meta.name,
        namespace=meta.namespace,
        uid=meta.uid,
        requests=requests,
        constraints=tuple(_constraint(item) for item in spec.constraints),
        configs=_configs(spec.config),
        labels=meta.labels,
        gpus=float(sum(claimed_devices((claim,)).values())),
        allocation=allocation,
        reserved_for=tuple(
            item.uid for item in claim.status.reserved_for if item.resource == "pods"
        ),
        owner_uid=owners[0] if owners else "",
        is_extended_resource=is_extended,
    )
