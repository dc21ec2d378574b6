"""Start the binding of the pod's volume claims on its node, and wait until they are bound.

A claim that waits for its first consumer is bound to a static volume that fits and that the node can mount. If
there is none, it gets the node as an annotation, so that the provisioner creates the volume there.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any

from binder.errors import BindError
from binder.params import StepConfig
from binder.steps.base import BindJob
from kube.errors import ConflictError, KubeError, NotFoundError
from kube.gateway import Gateway
from kube.objects.node import Node
from kube.objects.pod import Pod
from kube.objects.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from kube.process.progress import track
from kube.resources import NODES, PVCS, PVS, STORAGE_CLASSES
from kube.static_volumes import (
    NO_PROVISIONER,
    SELECTED_NODE,
    could_serve,
    is_reached_from,
    preference,
)

log = logging.getLogger(__name__)

#: Set by whoever reserves a volume for a claim on its own account, as the volume controller does.
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
POLL_S = 0.5
#: How long a list of all volumes is used where a claim can do without a static one.
KEEP_LIST_S = 5.0


class Volumes:
    """The step for pods with persistent volume claims."""

    def __init__(
        self,
        gateway: Gateway,
        config: StepConfig,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._gateway = gateway
        self._timeout_s = config.seconds("bindTimeoutSeconds")
        self._clock = clock
        self._sleep = sleep
        self._listed: Sequence[PersistentVolume] = ()
        self._listed_until = 0.0

    def concerns(self, job: BindJob) -> bool:
        return bool(claim_names(job.pod))

    def prepare(self, job: BindJob) -> None:
        try:
            waiting = [name for name in claim_names(job.pod) if not self._start_binding(job, name)]
            self._wait(job, waiting)
        except KubeError as error:
            raise self._failure("Bind", job, str(error)) from error

    def roll_back(self, job: BindJob) -> None:
        """Release what this node was chosen for and is not bound yet, so that another node can be chosen.

        A claim that was bound stays bound to its volume; the next attempt goes to where that is.
        """
        for name in claim_names(job.pod):
            try:
                claim = self._claim(job, name)
                if claim.status.phase != "Bound" and not claim.spec.volume_name:
                    self._release(job, claim)
            except (NotFoundError, ConflictError) as error:
                # The claim is gone, or it is being bound at this moment.
                log.info("volume claim %s of pod %s: %s", name, job.pod_key, error)

    def _start_binding(self, job: BindJob, name: str) -> bool:
        """Start the binding of a claim; return whether it is bound already."""
        claim = self._claim(job, name)
        if claim.status.phase == "Bound":
            return True
        if claim.spec.volume_name:
            return False
        storage_class = self._class_of(claim)
        if storage_class is None or storage_class.volume_binding_mode != "WaitForFirstConsumer":
            raise self._failure(
                "PreFilter", job, "pod has unbound immediate PersistentVolumeClaims"
            )
        is_provisioned = storage_class.provisioner != NO_PROVISIONER
        volume = self._static_volume(job, claim, may_be_old=is_provisioned)
        if volume is not None:
            self._reserve(volume, claim)
        elif is_provisioned:
            patch = {"metadata": {"annotations": {SELECTED_NODE: job.node}}}
            self._gateway.patch(PVCS, name, patch, namespace=claim.metadata.namespace)
        else:
            raise self._failure(
                "Filter", job, "node(s) didn't find available persistent volumes to bind"
            )
        return False

    def _static_volume(
        self, job: BindJob, claim: PersistentVolumeClaim, *, may_be_old: bool
    ) -> PersistentVolume | None:
        """Return the smallest free static volume that fits the claim and that the node can mount, if any."""
        candidates = [
            volume for volume in self._volumes(may_be_old=may_be_old) if could_serve(volume, claim)
        ]
        if not candidates:
            return None
        node = self._gateway.get(NODES, job.node, as_type=Node)
        # An earlier attempt may have reserved a volume: one that already names the claim comes first.
        return min(
            (volume for volume in candidates if is_reached_from(volume, node)),
            key=lambda volume: preference(volume, claim),
            default=None,
        )

    def _volumes(self, *, may_be_old: bool) -> Sequence[PersistentVolume]:
        """Return all volumes; those of a few seconds ago will do where a provisioner can make a new one."""
        now = self._clock()
        if not may_be_old or now >= self._listed_until:
            self._listed = self._gateway.list(PVS, as_type=PersistentVolume).items
            self._listed_until = now + KEEP_LIST_S
        return self._listed

    def _reserve(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> None:
        """Write the claim into a volume; the volume controller then binds both."""
        reference = volume.spec.claim_ref
        if reference is not None and reference.uid:
            return
        meta = claim.metadata
        metadata: dict[str, Any] = {"resourceVersion": volume.metadata.resource_version}
        if reference is None:
            # Not reserved by a person: so it may be released again, by us or by the volume controller.
            metadata["annotations"] = {BOUND_BY_CONTROLLER: "yes"}
        body = {
            "metadata": metadata,
            "spec": {
                "claimRef": {
                    "apiVersion": "v1",
                    "kind": "PersistentVolumeClaim",
                    "namespace": meta.namespace,
                    "name": meta.name,
                    "uid": meta.uid,
                }
            },
        }
        self._listed_until = 0.0
        self._gateway.patch(PVS, volume.metadata.name, body)

    def _release(self, job: BindJob, claim: PersistentVolumeClaim) -> None:
        meta = claim.metadata
        if meta.annotations.get(SELECTED_NODE) == job.node:
            patch: dict[str, Any] = {
                "metadata": {
                    "resourceVersion": meta.resource_version,
                    "annotations": {SELECTED_NODE: None},
                }
            }
            self._gateway.patch(PVCS, meta.name, patch, namespace=meta.namespace)
            return
        for volume in self._gateway.list(PVS, as_type=PersistentVolume).items:
            reference = volume.spec.claim_ref
            is_ours = BOUND_BY_CONTROLLER in volume.metadata.annotations
            if is_ours and reference and reference.uid == meta.uid:
                self._release_volume(volume)

    def _release_volume(self, volume: PersistentVolume) -> None:
        if volume.status.phase == "Bound":
            return
        body: dict[str, Any] = {
            "metadata": {
                "resourceVersion": volume.metadata.resource_version,
                "annotations": {BOUND_BY_CONTROLLER: None},
            },
            "spec": {"claimRef": None},
        }
        self._gateway.patch(PVS, volume.metadata.name, body)

    def _wait(self, job: BindJob, waiting: list[str]) -> None:
        deadline = self._clock() + self._timeout_s
        while waiting:
            track().touch()
            waiting = [name for name in waiting if not self._is_bound(job, name)]
            if not waiting:
                return
            if self._clock() >= deadline:
                raise self._failure(
                    "Bind", job, f"timed out waiting for claims to be bound: {', '.join(waiting)}"
                )
            self._sleep(POLL_S)

    def _is_bound(self, job: BindJob, name: str) -> bool:
        """Return whether a claim is bound by now.

        Raises
        ------
        BindError : it lost its volume, or its volume is out of the node's reach (made for an earlier node)
        """
        claim = self._claim(job, name)
        if claim.status.phase == "Lost":
            raise self._failure("Bind", job, f'persistentvolumeclaim "{name}" lost its volume')
        if claim.status.phase != "Bound":
            return False
        if not claim.spec.volume_name:
            return True
        volume = self._gateway.get(PVS, claim.spec.volume_name, as_type=PersistentVolume)
        node = self._gateway.get(NODES, job.node, as_type=Node)
        if not is_reached_from(volume, node):
            text = f'pv "{volume.metadata.name}" node affinity doesn\'t match node "{job.node}"'
            raise self._failure("Bind", job, text)
        return True

    def _claim(self, job: BindJob, name: str) -> PersistentVolumeClaim:
        namespace = job.pod.metadata.namespace
        return self._gateway.get(PVCS, name, as_type=PersistentVolumeClaim, namespace=namespace)

    def _class_of(self, claim: PersistentVolumeClaim) -> StorageClass | None:
        name = claim.spec.storage_class_name
        return self._gateway.get(STORAGE_CLASSES, name, as_type=StorageClass) if name else None

    def _failure(self, stage: str, job: BindJob, text: str) -> BindError:
        return BindError(
            f"K8sPlugin VolumeBinding failed {stage} for pod: {job.pod_key} and node "
            f"{job.node}. error: {text}"
        )


def claim_names(pod: Pod) -> list[str]:
    """Return the names of the claims that a pod's volumes refer to."""
    names = []
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            names.append(volume.persistent_volume_claim.claim_name)
        elif volume.ephemeral is not None:
            names.append(f"{pod.metadata.name}-{volume.name}")
    return names
