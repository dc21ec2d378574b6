"""The simulated volume controller: bind claims to volumes, and make volumes for them.

As in kube-controller-manager, a claim and a volume are bound by writing each into the other: first the claim into
`spec.claimRef` of the volume, then the volume into `spec.volumeName` of the claim. A claim of a class that waits for
its first consumer is left alone until the scheduler has chosen a node, or the binder a volume. Volumes are made for
classes whose provisioner is `PROVISIONER`; nothing is stored in them.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from kube.errors import AlreadyExistsError, ConflictError, KubeError, NotFoundError
from kube.gateway import EventType
from kube.objects.meta import KubeObject, convert
from kube.objects.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from kube.resources import PVCS, PVS, STORAGE_CLASSES, Resource
from kube.static_volumes import SELECTED_NODE, could_serve, is_reserved_for, preference
from sandbox.controllers.loop import Controller

log = logging.getLogger(__name__)

PROVISIONER = "simulated.kaiweb.dev"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
HOST_NAME = "kubernetes.io/hostname"
_TYPES: dict[Resource, type[KubeObject]] = {
    PVCS: PersistentVolumeClaim,
    PVS: PersistentVolume,
    STORAGE_CLASSES: StorageClass,
}


@dataclass(slots=True)
class VolumeController(Controller):
    """Binds claims and volumes until `stop` is set."""

    NAME = "volumes"
    TYPES = _TYPES

    def follow(self) -> None:
        """Subscribe to changes."""
        self.store.subscribe(self._changed)

    def reconcile(self, key: str) -> None:
        """Reconcile one claim or volume; a failed write leads to a retry."""
        plural, _, name = key.partition(" ")
        try:
            if plural == PVCS.plural:
                self._bind(self.store.get(PVCS, name))
            else:
                self._reconcile_volume(self.store.get(PVS, name))
        except NotFoundError:
            self.queue.forget(key)
        except KubeError as error:
            log.log(
                logging.INFO if isinstance(error, ConflictError) else logging.WARNING,
                "%s: %s",
                key,
                error,
            )
            self.queue.retry(key)
        else:
            self.queue.forget(key)

    # --------------------------------------------------------------------------------------- claims

    def _bind(self, claim: PersistentVolumeClaim | None) -> None:
        if claim is None or claim.metadata.deletion_timestamp is not None:
            return
        if claim.status.phase == "Bound":
            return
        volume = self._volume_for(claim)
        if volume is None:
            return
        if not _is_held_by(volume, claim):
            volume = self._reserve(volume, claim)
        self._write_claim(claim, volume)

    def _volume_for(self, claim: PersistentVolumeClaim) -> PersistentVolume | None:
        """Return the volume to bind a claim to, made for it if its class says so; None if it has to wait."""
        volumes = self.store.view().of(PVS, PersistentVolume)
        if claim.spec.volume_name:
            named = volumes.get(claim.spec.volume_name)
            is_free = named is not None and named.spec.claim_ref is None
            return named if named and (is_free or is_reserved_for(named, claim)) else None
        for volume in volumes.values():
            if is_reserved_for(volume, claim):
                return volume
        storage_class: StorageClass | None = self.store.get(
            STORAGE_CLASSES, claim.spec.storage_class_name
        )
        node = claim.metadata.annotations.get(SELECTED_NODE, "")
        if storage_class is None or storage_class.volume_binding_mode != "WaitForFirstConsumer":
            candidates = [volume for volume in volumes.values() if could_serve(volume, claim)]
            if candidates:
                return min(candidates, key=lambda volume: preference(volume, claim))
        elif not node:
            return None
        is_ours = storage_class is not None and storage_class.provisioner == PROVISIONER
        return self._provision(claim, node) if is_ours else None

    def _provision(self, claim: PersistentVolumeClaim, node: str) -> PersistentVolume:
        body = volume_body(claim, node)
        try:
            created = self.gateway.create(PVS, body)
        except AlreadyExistsError:
            return self.gateway.get(PVS, body["metadata"]["name"], as_type=PersistentVolume)
        return convert(created, PersistentVolume)

    def _reserve(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> PersistentVolume:
        meta = volume.metadata
        body = {
            "metadata": {"resourceVersion": meta.resource_version},
            "spec": {"claimRef": reference_to(claim)},
        }
        return convert(self.gateway.patch(PVS, meta.name, body), PersistentVolume)

    def _write_claim(self, claim: PersistentVolumeClaim, volume: PersistentVolume) -> None:
        meta = claim.metadata
        body = {
            "metadata": {
                "uid": meta.uid,
                "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
            },
            "spec": {"volumeName": volume.metadata.name},
        }
        self.gateway.patch(PVCS, meta.name, body, namespace=meta.namespace)
        status = {
            "phase": "Bound",
            "accessModes": list(volume.spec.access_modes),
            "capacity": dict(volume.spec.capacity),
        }
        self.gateway.patch(
            PVCS,
            meta.name,
            {"metadata": {"uid": meta.uid}, "status": status},
            namespace=meta.namespace,
            sub="status",
        )

    # -------------------------------------------------------------------------------------- volumes

    def _reconcile_volume(self, volume: PersistentVolume | None) -> None:
        if volume is None or volume.metadata.deletion_timestamp is not None:
            return
        phase = self._phase(volume)
        meta = volume.metadata
        if phase == "Released" and volume.spec.persistent_volume_reclaim_policy == "Delete":
            self.gateway.delete(PVS, meta.name, uid=meta.uid)
        elif phase != volume.status.phase:
            body = {"metadata": {"uid": meta.uid}, "status": {"phase": phase}}
            self.gateway.patch(PVS, meta.name, body, sub="status")

    def _phase(self, volume: PersistentVolume) -> str:
        reference = volume.spec.claim_ref
        if reference is None or not reference.uid:
            return "Available"
        key = f"{reference.namespace}/{reference.name}"
        claim: PersistentVolumeClaim | None = self.store.get(PVCS, key)
        if claim is not None and claim.metadata.uid == reference.uid:
            return "Bound" if claim.spec.volume_name == volume.metadata.name else "Available"
        return "Released"

    def _changed(self, resource: Resource, event: EventType, value: Any) -> None:
        if resource is PVCS:
            if event is not EventType.DELETED:
                self.queue.add(f"{PVCS.plural} {value.key}")
            if value.spec.volume_name:
                self.queue.add(f"{PVS.plural} {value.spec.volume_name}")
            return
        if resource is PVS:
            if event is not EventType.DELETED:
                self.queue.add(f"{PVS.plural} {value.key}")
            if value.status.phase in ("Bound", "Released"):
                return
        # A new volume or class may serve any claim that waits.
        for key, claim in self.store.view().of(PVCS, PersistentVolumeClaim).items():
            if claim.status.phase != "Bound":
                self.queue.add(f"{PVCS.plural} {key}")


def volume_body(claim: PersistentVolumeClaim, node: str) -> dict[str, Any]:
    """Return the volume that is made for a claim, reachable from one node if one was selected."""
    spec: dict[str, Any] = {
        "capacity": {"storage": claim.spec.resources.requests.get("storage", "0")},
        "accessModes": list(claim.spec.access_modes),
        "volumeMode": claim.spec.volume_mode,
        "storageClassName": claim.spec.storage_class_name,
        "persistentVolumeReclaimPolicy": "Delete",
        "claimRef": reference_to(claim),
        "csi": {"driver": PROVISIONER, "volumeHandle": claim.metadata.uid},
    }
    if node:
        expression = {"key": HOST_NAME, "operator": "In", "values": [node]}
        terms = [{"matchExpressions": [expression]}]
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    return {
        "apiVersion": PVS.api_version,
        "kind": PVS.kind,
        "metadata": {
            "name": f"pvc-{claim.metadata.uid}",
            "annotations": {PROVISIONED_BY: PROVISIONER},
        },
        "spec": spec,
    }


def reference_to(claim: PersistentVolumeClaim) -> dict[str, str]:
    """Return the reference by which a volume names its claim."""
    return {
        "apiVersion": PVCS.api_version,
        "kind": PVCS.kind,
        "namespace": claim.metadata.namespace,
        "name": claim.metadata.name,
        "uid": claim.metadata.uid,
    }


def _is_held_by(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    reference = volume.spec.claim_ref
    return reference is not None and reference.uid == claim.metadata.uid
