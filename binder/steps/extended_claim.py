"""The claim behind a pod's extended resources, when a device class serves them and no device plugin does.

Nobody wrote such a claim, so the binder makes it, owned by the pod. An attempt may have been cut off
anywhere: what it left is found by its owner and used if it says what this attempt wants, else replaced,
since neither requests nor devices of a claim can be changed.
"""

from __future__ import annotations

from typing import Any

from binder.errors import BindError
from binder.steps.claim_status import Patience, give
from kube.errors import NotFoundError
from kube.gateway import Gateway
from kube.keys import DELETE_PROTECTION, EXTENDED_RESOURCE_CLAIM
from kube.objects.bindrequest import ExtendedClaimAllocation
from kube.objects.devices import DeviceRequest, ResourceClaim
from kube.objects.meta import convert
from kube.objects.pod import Pod
from kube.resources import PODS, RESOURCE_CLAIMS

STATUS = "extendedResourceClaimStatus"


class ExtendedClaims:
    """Makes and removes these claims."""

    def __init__(self, gateway: Gateway, patience: Patience) -> None:
        self._gateway = gateway
        self._patience = patience

    def prepare(self, pod: Pod, given: ExtendedClaimAllocation) -> None:
        """Let the pod have one claim with the devices given, and say so in its status."""
        if given.allocation is None:
            raise BindError(
                "empty allocation for extended resources in bind request for pod "
                f"{pod.metadata.key}"
            )
        name = self._claim(pod, given)
        give(self._gateway, self._patience, pod, name, given.allocation)
        mappings = list(given.container_mappings)
        self._patch_status(pod, {"resourceClaimName": name, "requestMappings": mappings})

    def roll_back(self, pod: Pod) -> None:
        """Delete the claim and forget it in the pod's status."""
        for claim in self._found(pod):
            self._delete(claim)
        try:
            self._patch_status(pod, None)
        except NotFoundError:
            return

    def _claim(self, pod: Pod, given: ExtendedClaimAllocation) -> str:
        """Return the name of the pod's claim, making it if there is none to use."""
        kept = ""
        for claim in self._found(pod):
            if not kept and _says(claim, given):
                kept = claim.metadata.name
            else:
                self._delete(claim)
        if kept:
            return kept
        made = self._gateway.create(
            RESOURCE_CLAIMS, claim_body(pod, given), namespace=pod.metadata.namespace
        )
        return str(made["metadata"]["name"])

    def _found(self, pod: Pod) -> list[ResourceClaim]:
        """Ask the server, not a watch: what the attempt before this one made must be seen."""
        meta = pod.metadata
        listed = self._gateway.list(
            RESOURCE_CLAIMS, as_type=ResourceClaim, namespace=meta.namespace
        ).items
        mine = [
            claim
            for claim in listed
            if claim.metadata.annotations.get(EXTENDED_RESOURCE_CLAIM) == "true"
            and any(owner.uid == meta.uid for owner in claim.metadata.owner_references)
        ]
        return sorted(mine, key=lambda claim: (claim.metadata.created, claim.metadata.name))

    def _delete(self, claim: ResourceClaim) -> None:
        """Delete a claim, protection or not: no container of its pod has been started."""
        meta = claim.metadata
        try:
            if meta.finalizers:
                kept = [one for one in meta.finalizers if one != DELETE_PROTECTION]
                self._gateway.patch(
                    RESOURCE_CLAIMS,
                    meta.name,
                    {"metadata": {"uid": meta.uid, "finalizers": kept or None}},
                    namespace=meta.namespace,
                )
            self._gateway.delete(RESOURCE_CLAIMS, meta.name, namespace=meta.namespace, uid=meta.uid)
        except NotFoundError:
            return

    def _patch_status(self, pod: Pod, value: dict[str, Any] | None) -> None:
        meta = pod.metadata
        body = {"metadata": {"uid": meta.uid}, "status": {STATUS: value}}
        self._gateway.patch(PODS, meta.name, body, namespace=meta.namespace, sub="status")


def claim_body(pod: Pod, given: ExtendedClaimAllocation) -> dict[str, Any]:
    """Return the claim to create; it goes with its pod."""
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
        "spec": {"devices": {"requests": list(given.device_requests)}},
    }


def _says(claim: ResourceClaim, given: ExtendedClaimAllocation) -> bool:
    """Tell whether a claim can become, or is, what an attempt wants."""
    wanted = tuple(convert(item, DeviceRequest) for item in given.device_requests)
    is_same = claim.spec.devices.requests == wanted
    has = claim.status.allocation
    is_free = has is None or _devices(has) == _devices(given.allocation or {})
    return is_same and is_free and claim.metadata.deletion_timestamp is None


def _devices(allocation: dict[str, Any]) -> list[tuple[str, ...]]:
    results = (allocation.get("devices") or {}).get("results") or ()
    names = ("request", "driver", "pool", "device")
    return sorted(tuple(str(item.get(name, "")) for name in names) for item in results)
