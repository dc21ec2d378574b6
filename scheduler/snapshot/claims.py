"""Devices and volumes: resource claims, classes, slices, persistent volume claims, storage capacity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kube.objects import devices as api
from kube.objects.meta import convert
from kube.objects.pod import NodeSelector, Pod, PodResourceClaim
from kube.objects.storage import (
    CSIDriver,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from kube.quantity import to_units
from queues.accounting import EXTENDED_CLAIM_ANNOTATION
from scheduler.core.cluster.constraints import NodeTerm
from scheduler.core.cluster.inputs import (
    ClaimAllocation,
    Device,
    DeviceClaim,
    DeviceClass,
    DeviceInputs,
    DeviceRequest,
    DeviceSlice,
    StorageCapacity,
    VolumeClaim,
    VolumeInputs,
)
from scheduler.snapshot.selectors import matching_devices
from scheduler.snapshot.terms import label_selector, node_terms

Claim = api.ResourceClaim


# ----------------------------------------------------------------------------------------- devices


def claim_name(pod: Pod, reference: PodResourceClaim) -> str:
    """Return the real name of a pod's claim; the pod's own name for it while none was made yet."""
    if reference.resource_claim_name:
        return reference.resource_claim_name
    made = (
        item.resource_claim_name
        for item in pod.status.resource_claim_statuses
        if item.name == reference.name
    )
    return next(made, reference.name)


def of_pod(pod: Pod, claimed: Mapping[str, Claim]) -> list[Claim]:
    """Return the claims of a pod that exist by now."""
    names = (claim_name(pod, reference) for reference in pod.spec.resource_claims)
    found = (claimed.get(f"{pod.metadata.namespace}/{name}") for name in names)
    return [claim for claim in found if claim is not None]


def device_inputs(
    classes: Iterable[api.DeviceClass],
    slices: Sequence[api.ResourceSlice],
    claimed: Iterable[Claim],
) -> DeviceInputs:
    """Return everything the core needs to give devices to claims."""
    made_classes = tuple(
        DeviceClass(
            name=item.metadata.name,
            selectors=tuple(_cel(item.spec.selectors)),
            extended_resource=item.spec.extended_resource_name,
            created=item.metadata.created,
        )
        for item in classes
    )
    made_claims = tuple(_device_claim(item) for item in claimed)
    texts = {text for item in made_classes for text in item.selectors}
    texts |= {text for item in made_claims for req in item.requests for text in req.selectors}
    return DeviceInputs(
        classes=made_classes,
        slices=tuple(_slice(item) for item in slices),
        claims=made_claims,
        matching=matching_devices(sorted(texts), slices) if texts else None,
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
    results = (body.get("devices") or {}).get("results") or ()
    selector = body.get("nodeSelector")
    return ClaimAllocation(
        claim=claim,
        namespace=namespace,
        devices=tuple(
            (
                str(item.get("driver", "")),
                str(item.get("pool", "")),
                str(item.get("device", "")),
                str(item.get("request", "")),
            )
            for item in results
        ),
        node_terms=node_terms(convert(selector, NodeSelector)) if selector else None,
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


def _device_claim(claim: Claim) -> DeviceClaim:
    meta = claim.metadata
    body = claim.status.allocation
    owners = [owner.uid for owner in meta.owner_references if owner.kind == "Pod"]
    return DeviceClaim(
        name=meta.name,
        namespace=meta.namespace,
        requests=tuple(
            DeviceRequest(
                name=item.name,
                device_class=item.exactly.device_class_name,
                count=float(item.exactly.count or 1),
                mode=item.exactly.allocation_mode or "ExactCount",
                selectors=tuple(_cel(item.exactly.selectors)),
            )
            for item in claim.spec.devices.requests
            if item.exactly
        ),
        labels=meta.labels,
        allocation=allocation_from(meta.name, meta.namespace, body) if body else None,
        reserved_for=tuple(
            item.uid for item in claim.status.reserved_for if item.resource == "pods"
        ),
        owner_uid=owners[0] if owners else "",
        is_extended_resource=meta.annotations.get(EXTENDED_CLAIM_ANNOTATION) == "true",
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


# ----------------------------------------------------------------------------------------- volumes


def volume_inputs(
    claimed: Iterable[PersistentVolumeClaim],
    volumes: Mapping[str, PersistentVolume],
    classes: Mapping[str, StorageClass],
    drivers: Mapping[str, CSIDriver],
    capacities: Iterable[CSIStorageCapacity],
    live_pods: Mapping[str, bool],
) -> VolumeInputs:
    """Return what volume rules need.

    Parameters
    ----------
    live_pods : uid of each pod -> whether it is not being deleted
    """
    tracked = tuple(
        name
        for name, item in sorted(classes.items())
        if item.volume_binding_mode == "WaitForFirstConsumer" and item.provisioner in drivers
    )
    return VolumeInputs(
        claims=tuple(_volume_claim(item, volumes, classes, live_pods) for item in claimed),
        capacities=tuple(_capacity(item) for item in capacities),
        tracked_classes=tracked,
    )


def _volume_claim(
    claim: PersistentVolumeClaim,
    volumes: Mapping[str, PersistentVolume],
    classes: Mapping[str, StorageClass],
    live_pods: Mapping[str, bool],
) -> VolumeClaim:
    meta, spec = claim.metadata, claim.spec
    volume = volumes.get(spec.volume_name) if spec.volume_name else None
    storage_class = classes.get(spec.storage_class_name)
    waits = storage_class is not None and (
        storage_class.volume_binding_mode == "WaitForFirstConsumer"
    )
    owners = [owner for owner in meta.owner_references if owner.kind == "Pod"]
    owner_uid = owners[0].uid if len(owners) == 1 and len(meta.owner_references) == 1 else ""
    affinity = volume.spec.node_affinity.required if volume and volume.spec.node_affinity else None
    return VolumeClaim(
        name=meta.name,
        namespace=meta.namespace,
        storage_class=spec.storage_class_name,
        size_bytes=float(to_units(spec.resources.requests.get("storage", 0))),
        phase=claim.status.phase or "Pending",
        problem=_problem(claim, volume, waits=waits),
        volume_terms=node_terms(affinity),
        waits_for_consumer=waits,
        owner_uid=owner_uid,
        is_owner_deleted=bool(owner_uid) and not live_pods.get(owner_uid, False),
    )


def _problem(claim: PersistentVolumeClaim, volume: PersistentVolume | None, *, waits: bool) -> str:
    name = claim.metadata.name
    if claim.metadata.deletion_timestamp is not None:
        return f'persistentvolumeclaim "{name}" is being deleted'
    if claim.status.phase == "Lost":
        missing = claim.spec.volume_name
        return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{missing}"'
    if volume is None and claim.spec.volume_name:
        return "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
    if not claim.spec.volume_name and not waits:
        return "pod has unbound immediate PersistentVolumeClaims"
    return ""


def _capacity(item: CSIStorageCapacity) -> StorageCapacity:
    selector = label_selector(item.node_topology)
    return StorageCapacity(
        name=item.metadata.name,
        storage_class=item.storage_class_name,
        capacity_bytes=float(to_units(item.capacity)),
        node_selector=NodeTerm(labels=selector.expressions),
    )
