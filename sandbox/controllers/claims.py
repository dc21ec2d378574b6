"""The simulated resource-claim controller: claims come from templates, and go when their pods are done.

What kube-controller-manager does for dynamic resource allocation: a pod that names a template gets a claim
of its own and is told its name; a pod that has ended or is gone no longer reserves any claim; a claim that
nobody reserves gives its devices back. Neither the embedded API server nor a bare kube-apiserver does this.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kube.errors import ConflictError, KubeError, NotFoundError
from kube.gateway import EventType, Gateway
from kube.objects.devices import ConsumerReference, ResourceClaim
from kube.objects.meta import KubeObject, as_body
from kube.objects.pod import Pod, PodResourceClaim
from kube.resources import PODS, RESOURCE_CLAIMS, Resource
from kube.store import Store
from kube.watch import Reflector
from kube.workqueue import WorkQueue, start_workers

log = logging.getLogger(__name__)

WORKERS = 2
CLAIM_OF_POD = "resource.kubernetes.io/pod-claim-name"
PROTECTION = "resource.kubernetes.io/delete-protection"
CLAIM_TEMPLATES = Resource(
    group="resource.k8s.io",
    version="v1",
    plural="resourceclaimtemplates",
    kind="ResourceClaimTemplate",
)
_TYPES: dict[Resource, type[KubeObject]] = {PODS: Pod, RESOURCE_CLAIMS: ResourceClaim}


@dataclass(slots=True)
class ClaimController:
    """Watches pods and claims until `stop` is set."""

    gateway: Gateway
    stop: threading.Event
    on_fatal: Callable[[KubeError], None]
    store: Store = field(default_factory=lambda: Store(list(_TYPES)))
    queue: WorkQueue = field(default_factory=lambda: WorkQueue(first_s=0.2, most_s=10.0))

    def __post_init__(self) -> None:
        self.store.add_index(RESOURCE_CLAIMS, "pod", _pods_behind)
        self.store.subscribe(self._changed)

    def run(self) -> None:
        """Run until stopped."""
        for resource, as_type in _TYPES.items():
            watch = Reflector(self.gateway, resource, as_type, self.store, is_optional=True)
            watch.start(self.stop, on_fatal=self.on_fatal, name=f"claims-{resource.plural}")
        while not self.store.wait_until_synced(0.5):
            if self.stop.is_set():
                return
        start_workers(self.queue, self.reconcile, WORKERS, "claims")
        self.stop.wait()
        self.queue.close()

    def reconcile(self, key: str) -> None:
        """Make one pass over one pod or claim; a failed write asks for another pass later."""
        plural, _, name = key.partition(" ")
        try:
            if plural == PODS.plural:
                self._serve_pod(self.store.get(PODS, name))
            else:
                self._tidy_claim(self.store.get(RESOURCE_CLAIMS, name))
        except (NotFoundError, ConflictError) as error:
            # A template that comes later, or a change that the watch has not told yet.
            log.info("%s: %s", key, error)
            self.queue.retry(key)
        except KubeError as error:
            log.warning("%s: %s", key, error)
            self.queue.retry(key)
        else:
            self.queue.forget(key)

    # -------------------------------------------------------------------------------------- pods

    def _serve_pod(self, pod: Pod | None) -> None:
        """Make the claims a pod lacks and tell it their names."""
        if pod is None or pod.is_finished or pod.metadata.deletion_timestamp is not None:
            return
        told = {status.name for status in pod.status.resource_claim_statuses}
        wanted = [
            reference
            for reference in pod.spec.resource_claims
            if reference.resource_claim_template_name and reference.name not in told
        ]
        if not wanted:
            return
        statuses = [as_body(status) for status in pod.status.resource_claim_statuses]
        for reference in wanted:
            name = self._claim_for(pod, reference)
            statuses.append({"name": reference.name, "resourceClaimName": name})
        meta = pod.metadata
        body = {"metadata": {"uid": meta.uid}, "status": {"resourceClaimStatuses": statuses}}
        self.gateway.patch(PODS, meta.name, body, namespace=meta.namespace, sub="status")

    def _claim_for(self, pod: Pod, reference: PodResourceClaim) -> str:
        """Return the pod's claim for one of its references; an earlier pass may have made it."""
        meta = pod.metadata
        listed = self.gateway.list(RESOURCE_CLAIMS, as_type=ResourceClaim, namespace=meta.namespace)
        for claim in listed.items:
            is_meant = claim.metadata.annotations.get(CLAIM_OF_POD) == reference.name
            if is_meant and meta.uid in [owner.uid for owner in claim.metadata.owner_references]:
                return claim.metadata.name
        template: dict[str, Any] = self.gateway.get(
            CLAIM_TEMPLATES,
            reference.resource_claim_template_name,
            as_type=dict,
            namespace=meta.namespace,
        )
        made = self.gateway.create(
            RESOURCE_CLAIMS,
            claim_body(pod, reference.name, template["spec"]),
            namespace=meta.namespace,
        )
        return str(made["metadata"]["name"])

    # ------------------------------------------------------------------------------------- claims

    def _tidy_claim(self, claim: ResourceClaim | None) -> None:
        """Drop the reservations of pods that are done; free and delete what nobody needs any more."""
        if claim is None:
            return
        meta, consumers = claim.metadata, claim.status.reserved_for
        kept = [one for one in consumers if self._uses(one, meta.namespace)]
        is_orphan = bool(consumers) and not kept
        if len(kept) < len(consumers):
            status: dict[str, Any] = {"reservedFor": [as_body(one) for one in kept] or None}
            if is_orphan:
                status["allocation"] = None
            body = {"metadata": {"resourceVersion": meta.resource_version}, "status": status}
            self.gateway.patch(
                RESOURCE_CLAIMS, meta.name, body, namespace=meta.namespace, sub="status"
            )
        is_going = meta.deletion_timestamp is not None and not kept
        if PROTECTION in meta.finalizers and (is_orphan or is_going):
            rest = [one for one in meta.finalizers if one != PROTECTION]
            body = {"metadata": {"uid": meta.uid, "finalizers": rest or None}}
            self.gateway.patch(RESOURCE_CLAIMS, meta.name, body, namespace=meta.namespace)
        if not kept and meta.deletion_timestamp is None and self._is_of_finished_pod(claim):
            self.gateway.delete(RESOURCE_CLAIMS, meta.name, namespace=meta.namespace, uid=meta.uid)

    def _uses(self, consumer: ConsumerReference, namespace: str) -> bool:
        """Tell whether a consumer is a pod that still runs; the server knows pods newer than the watch."""
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
        is_done = event is EventType.DELETED or (resource is PODS and value.is_finished)
        if resource is PODS and is_done:
            for claim in self.store.by_index(RESOURCE_CLAIMS, "pod", value.metadata.uid):
                self.queue.add(f"{RESOURCE_CLAIMS.plural} {claim.key}")


def claim_body(pod: Pod, own_name: str, template: dict[str, Any]) -> dict[str, Any]:
    """Return the claim a template stands for; `own_name` is what the pod calls it."""
    meta = pod.metadata
    marks = template.get("metadata") or {}
    return {
        "apiVersion": RESOURCE_CLAIMS.api_version,
        "kind": RESOURCE_CLAIMS.kind,
        "metadata": {
            "generateName": f"{meta.name}-{own_name}-",
            "namespace": meta.namespace,
            "labels": dict(marks.get("labels") or {}),
            "annotations": {**(marks.get("annotations") or {}), CLAIM_OF_POD: own_name},
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


def _pods_behind(claim: ResourceClaim) -> list[str]:
    consumers = [one.uid for one in claim.status.reserved_for]
    owners = [one.uid for one in claim.metadata.owner_references if one.kind == PODS.kind]
    return sorted({*consumers, *owners})
