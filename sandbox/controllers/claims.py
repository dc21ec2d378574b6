"""The simulated resource-claim controller: create claims from templates, and release them after their pods.

As in kube-controller-manager, a pod that names a template gets a claim of its own, whose name is written
into the pod's status. The reservations of a pod that has ended or was deleted are removed, and a claim
without reservations loses its allocation. No API server does this by itself.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from kube.errors import ConflictError, KubeError, NotFoundError
from kube.gateway import EventType
from kube.keys import DELETE_PROTECTION
from kube.objects.devices import ConsumerReference, ResourceClaim
from kube.objects.meta import KubeObject, as_body
from kube.objects.pod import Pod, PodResourceClaim
from kube.resources import PODS, RESOURCE_CLAIMS, Resource
from sandbox.controllers.loop import Controller

log = logging.getLogger(__name__)

CLAIM_OF_POD = "resource.kubernetes.io/pod-claim-name"
CLAIM_TEMPLATES = Resource(
    group="resource.k8s.io",
    version="v1",
    plural="resourceclaimtemplates",
    kind="ResourceClaimTemplate",
)
_TYPES: dict[Resource, type[KubeObject]] = {PODS: Pod, RESOURCE_CLAIMS: ResourceClaim}


@dataclass(slots=True)
class ClaimController(Controller):
    """Reconciles pods and claims until `stop` is set."""

    NAME = "claims"
    TYPES = _TYPES
    WORKERS = 2

    def follow(self) -> None:
        """Subscribe to changes; add the lookups that they need."""
        self.store.add_index(RESOURCE_CLAIMS, "pod", _pod_uids)
        self.store.subscribe(self._changed)

    def reconcile(self, key: str) -> None:
        """Reconcile one pod or claim; a failed write leads to a retry."""
        plural, _, name = key.partition(" ")
        try:
            if plural == PODS.plural:
                self._create_claims(self.store.get(PODS, name))
            else:
                self._release_claim(self.store.get(RESOURCE_CLAIMS, name))
        except (NotFoundError, ConflictError) as error:
            # The template does not exist yet, or the watch has not delivered the last change.
            log.info("%s: %s", key, error)
            self.queue.retry(key)
        except KubeError as error:
            log.warning("%s: %s", key, error)
            self.queue.retry(key)
        else:
            self.queue.forget(key)

    def _create_claims(self, pod: Pod | None) -> None:
        """Create the missing claims of a pod and write their names into its status."""
        if pod is None or pod.is_finished or pod.metadata.deletion_timestamp is not None:
            return
        recorded = {status.name for status in pod.status.resource_claim_statuses}
        missing = [
            reference
            for reference in pod.spec.resource_claims
            if reference.resource_claim_template_name and reference.name not in recorded
        ]
        if not missing:
            return
        statuses = [as_body(status) for status in pod.status.resource_claim_statuses]
        for reference in missing:
            name = self._claim_for(pod, reference)
            statuses.append({"name": reference.name, "resourceClaimName": name})
        meta = pod.metadata
        body = {"metadata": {"uid": meta.uid}, "status": {"resourceClaimStatuses": statuses}}
        self.gateway.patch(PODS, meta.name, body, namespace=meta.namespace, sub="status")

    def _claim_for(self, pod: Pod, reference: PodResourceClaim) -> str:
        """Return the name of the claim for a reference; create it unless an earlier pass did."""
        meta = pod.metadata
        listing = self.gateway.list(
            RESOURCE_CLAIMS, as_type=ResourceClaim, namespace=meta.namespace
        )
        for claim in listing.items:
            is_for_reference = claim.metadata.annotations.get(CLAIM_OF_POD) == reference.name
            if is_for_reference and meta.uid in [
                owner.uid for owner in claim.metadata.owner_references
            ]:
                return claim.metadata.name
        template: dict[str, Any] = self.gateway.get(
            CLAIM_TEMPLATES,
            reference.resource_claim_template_name,
            as_type=dict,
            namespace=meta.namespace,
        )
        created = self.gateway.create(
            RESOURCE_CLAIMS,
            claim_body(pod, reference.name, template["spec"]),
            namespace=meta.namespace,
        )
        return str(created["metadata"]["name"])

    def _release_claim(self, claim: ResourceClaim | None) -> None:
        """Remove the reservations of ended pods; free and delete a claim that no pod needs."""
        if claim is None:
            return
        meta, consumers = claim.metadata, claim.status.reserved_for
        users = [consumer for consumer in consumers if self._uses(consumer, meta.namespace)]
        is_released = bool(consumers) and not users
        if len(users) < len(consumers):
            status: dict[str, Any] = {"reservedFor": [as_body(user) for user in users] or None}
            if is_released:
                status["allocation"] = None
            body = {"metadata": {"resourceVersion": meta.resource_version}, "status": status}
            self.gateway.patch(
                RESOURCE_CLAIMS, meta.name, body, namespace=meta.namespace, sub="status"
            )
        is_deleted = meta.deletion_timestamp is not None and not users
        if DELETE_PROTECTION in meta.finalizers and (is_released or is_deleted):
            finalizers = [
                finalizer for finalizer in meta.finalizers if finalizer != DELETE_PROTECTION
            ]
            body = {"metadata": {"uid": meta.uid, "finalizers": finalizers or None}}
            self.gateway.patch(RESOURCE_CLAIMS, meta.name, body, namespace=meta.namespace)
        if not users and meta.deletion_timestamp is None and self._is_of_finished_pod(claim):
            self.gateway.delete(RESOURCE_CLAIMS, meta.name, namespace=meta.namespace, uid=meta.uid)

    def _uses(self, consumer: ConsumerReference, namespace: str) -> bool:
        """Return whether a consumer is a pod that has not ended; ask the server if the watch lags."""
        if consumer.resource != PODS.plural or consumer.api_group:
            return True
        pod: Pod | None = self.store.get(PODS, f"{namespace}/{consumer.name}")
        if pod is None or pod.metadata.uid != consumer.uid:
            try:
                pod = self.gateway.get(PODS, consumer.name, as_type=Pod, namespace=namespace)
            except NotFoundError:
                return False
        return pod.metadata.uid == consumer.uid and not pod.is_finished

    def _is_of_finished_pod(self, claim: ResourceClaim) -> bool:
        for owner in claim.metadata.owner_references:
            pod: Pod | None = self.store.get(PODS, f"{claim.metadata.namespace}/{owner.name}")
            is_owner = owner.kind == PODS.kind and owner.controller
            if is_owner and pod is not None and pod.metadata.uid == owner.uid and pod.is_finished:
                return True
        return False

    def _changed(self, resource: Resource, event: EventType, value: Any) -> None:
        if event is not EventType.DELETED:
            self.queue.add(f"{resource.plural} {value.key}")
        has_ended = event is EventType.DELETED or (resource is PODS and value.is_finished)
        if resource is PODS and has_ended:
            for claim in self.store.by_index(RESOURCE_CLAIMS, "pod", value.metadata.uid):
                self.queue.add(f"{RESOURCE_CLAIMS.plural} {claim.key}")


def claim_body(pod: Pod, own_name: str, template: dict[str, Any]) -> dict[str, Any]:
    """Return the claim of a template; `own_name` is its name in the pod's spec."""
    meta = pod.metadata
    template_meta = template.get("metadata") or {}
    return {
        "apiVersion": RESOURCE_CLAIMS.api_version,
        "kind": RESOURCE_CLAIMS.kind,
        "metadata": {
            "generateName": f"{meta.name}-{own_name}-",
            "namespace": meta.namespace,
            "labels": dict(template_meta.get("labels") or {}),
            "annotations": {**(template_meta.get("annotations") or {}), CLAIM_OF_POD: own_name},
            "ownerReferences": [
                {
                    "apiVersion": PODS.api_version,
                    "kind": PODS.kind,
                    "name": meta.name,
                    "uid": meta.uid,
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": template["spec"],
    }


def _pod_uids(claim: ResourceClaim) -> list[str]:
    consumers = [consumer.uid for consumer in claim.status.reserved_for]
    references = claim.metadata.owner_references
    owners = [reference.uid for reference in references if reference.kind == PODS.kind]
    return sorted({*consumers, *owners})
