"""The claim for a pod's extended resources, when a device class serves them instead of a device plugin.

Users do not create such a claim, so the binder creates it, owned by the pod. An earlier attempt may have been
interrupted at any point. A claim that it left is found by its owner, and used if it matches this attempt.
Otherwise it is replaced, because neither requests nor devices of a claim can be changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from binder.errors import BindError
from binder.steps.claim_status import ConflictRetry, allocate_claim
from kube.errors import ConflictError, NotFoundError
from kube.gateway import Gateway
from kube.keys import DELETE_PROTECTION, EXTENDED_RESOURCE_CLAIM
from kube.objects.bindrequest import ExtendedClaimAllocation
from kube.objects.devices import DeviceRequest, ResourceClaim
from kube.objects.meta import convert
from kube.objects.pod import Pod
from kube.resources import PODS, RESOURCE_CLAIMS

STATUS = "extendedResourceClaimStatus"


class ExtendedClaims:
    """Creates and deletes these claims."""

    def __init__(self, gateway: Gateway, retry: ConflictRetry) -> None:
        self._gateway = gateway
        self._retry = retry

    def prepare(self, pod: Pod, extended_claim: ExtendedClaimAllocation) -> None:
        """Allocate one claim with the chosen devices to the pod, and name it in the pod's status."""
        if extended_claim.allocation is None:
            raise BindError(
                "empty allocation for extended resources in bind request for pod "
                f"{pod.metadata.key}"
            )
        name = self._ensure_claim(pod, extended_claim)
        allocate_claim(self._gateway, self._retry, pod, name, extended_claim.allocation)
        mappings = list(extended_claim.container_mappings)
        value = {"resourceClaimName": name, "requestMappings": mappings}
        try:
            self._patch_status(pod, value, version=pod.metadata.resource_version)
        except ConflictError:
            self._delete_unnamed(pod, name)
            raise

    def _delete_unnamed(self, pod: Pod, name: str) -> None:
        """Delete a claim of a pod that another binder has given a claim meanwhile."""
        current = self._gateway.get(
            PODS, pod.metadata.name, as_type=Pod, namespace=pod.metadata.namespace
        )
        status = current.status.extended_resource_claim_status
        if status is not None and status.resource_claim_name == name:
            return
        for claim in self._claims_of(pod):
            if claim.metadata.name == name:
                self._delete(claim)

    def roll_back(self, pod: Pod) -> None:
        """Delete the claim and remove it from the pod's status."""
        for claim in self._claims_of(pod):
            self._delete(claim)
        try:
            self._patch_status(pod, None)
        except NotFoundError:
            return

    def _ensure_claim(self, pod: Pod, extended_claim: ExtendedClaimAllocation) -> str:
        """Return the name of the pod's claim, after creating it if there is none to use."""
        usable = ""
        for claim in self._claims_of(pod):
            if not usable and _is_usable(claim, extended_claim):
                usable = claim.metadata.name
            else:
                self._delete(claim)
        if usable:
            return usable
        created = self._gateway.create(
            RESOURCE_CLAIMS, claim_body(pod, extended_claim), namespace=pod.metadata.namespace
        )
        return str(created["metadata"]["name"])

    def _claims_of(self, pod: Pod) -> list[ResourceClaim]:
        """List the pod's claims from the server, because a watch may not show the newest yet."""
        meta = pod.metadata
        listed = self._gateway.list(
            RESOURCE_CLAIMS, as_type=ResourceClaim, namespace=meta.namespace
        ).items
        owned = [
            claim
            for claim in listed
            if claim.metadata.annotations.get(EXTENDED_RESOURCE_CLAIM) == "true"
            and any(owner.uid == meta.uid for owner in claim.metadata.owner_references)
        ]
        return sorted(owned, key=lambda claim: (claim.metadata.created, claim.metadata.name))

    def _delete(self, claim: ResourceClaim) -> None:
        """Delete a claim and its protection, which is safe because no container of its pod has started."""
        meta = claim.metadata
        try:
            if meta.finalizers:
                others = [name for name in meta.finalizers if name != DELETE_PROTECTION]
                self._gateway.patch(
                    RESOURCE_CLAIMS,
                    meta.name,
                    {"metadata": {"uid": meta.uid, "finalizers": others or None}},
                    namespace=meta.namespace,
                )
            self._gateway.delete(RESOURCE_CLAIMS, meta.name, namespace=meta.namespace, uid=meta.uid)
        except NotFoundError:
            return

    def _patch_status(self, pod: Pod, value: dict[str, Any] | None, *, version: str = "") -> None:
        meta = pod.metadata
        identity = {"uid": meta.uid, **({"resourceVersion": version} if version else {})}
        body = {"metadata": identity, "status": {STATUS: value}}
        self._gateway.patch(PODS, meta.name, body, namespace=meta.namespace, sub="status")


def claim_body(pod: Pod, extended_claim: ExtendedClaimAllocation) -> dict[str, Any]:
    """Return the claim to create; garbage collection deletes it with its pod."""
    meta = pod.metadata
    owner = {
        "apiVersion": PODS.api_version,
        "kind": PODS.kind,
        "name": meta.name,
        "uid": meta.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "apiVersion": RESOURCE_CLAIMS.api_version,
        "kind": RESOURCE_CLAIMS.kind,
        "metadata": {
            "generateName": f"{meta.name}-extended-resources-",
            "namespace": meta.namespace,
            "annotations": {EXTENDED_RESOURCE_CLAIM: "true"},
            "finalizers": [DELETE_PROTECTION],
            "ownerReferences": [owner],
        },
        "spec": {"devices": {"requests": list(extended_claim.device_requests)}},
    }


def _is_usable(claim: ResourceClaim, extended_claim: ExtendedClaimAllocation) -> bool:
    """Return whether a claim has the requests of an attempt, and its devices or none yet."""
    requests = tuple(convert(item, DeviceRequest) for item in extended_claim.device_requests)
    has_requests = _wanted_devices(claim.spec.devices.requests) == _wanted_devices(requests)
    allocation = claim.status.allocation
    can_be_allocated = allocation is None or _devices(allocation) == _devices(
        extended_claim.allocation or {}
    )
    is_live = claim.metadata.deletion_timestamp is None
    return has_requests and can_be_allocated and is_live


def _wanted_devices(requests: Iterable[DeviceRequest]) -> list[tuple[str, str, int]]:
    return [
        (item.name, item.exact.device_class_name, item.exact.count)
        for item in requests
        if item.exact
    ]


def _devices(allocation: dict[str, Any]) -> list[tuple[str, ...]]:
    results = (allocation.get("devices") or {}).get("results") or ()
    names = ("request", "driver", "pool", "device")
    return sorted(tuple(str(item.get(name, "")) for name in names) for item in results)
