"""Start the binding of the pod's volume claims on its node, and wait until they are bound.

A claim that waits for its first consumer gets the node as an annotation, so that the provisioner creates the
volume there, or it is bound to a static volume that fits and that the node can mount.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from binder.errors import BindError
from binder.params import StepConfig
from binder.steps.base import BindJob
from kube.errors import KubeError
from kube.gateway import Gateway
from kube.objects.node import Node
from kube.objects.pod import Pod
from kube.objects.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from kube.process.progress import track
from kube.resources import NODES, PVCS, PVS, STORAGE_CLASSES
from kube.static_volumes import (
    NO_PROVISIONER,
    capacity_bytes,
    could_serve,
    is_reached_from,
    is_reserved_for,
)

SELECTED_NODE = "volume.kubernetes.io/selected-node"
POLL_S = 0.5


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

    def concerns(self, job: BindJob) -> bool:
        return bool(claim_names(job.pod))

    def prepare(self, job: BindJob) -> None:
        try:
            waiting = [name for name in claim_names(job.pod) if not self._start_binding(job, name)]
            self._wait(job, waiting)
        except KubeError as error:
            raise self._failure("Bind", job, str(error)) from error

    def roll_back(self, job: BindJob) -> None:
        """Do nothing: a claim that was bound stays bound to its volume, and nothing is kept in memory."""

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
        if storage_class.provisioner != NO_PROVISIONER:
            patch = {"metadata": {"annotations": {SELECTED_NODE: job.node}}}
            self._gateway.patch(PVCS, name, patch, namespace=claim.metadata.namespace)
            return False
        self._reserve_static_volume(job, claim)
        return False

    def _reserve_static_volume(self, job: BindJob, claim: PersistentVolumeClaim) -> None:
        """Reserve the smallest free static volume that fits the claim and that the node can mount."""
        node = self._gateway.get(NODES, job.node, as_type=Node)
        volumes = self._gateway.list(PVS, as_type=PersistentVolume).items
        fitting = [
            volume
            for volume in volumes
            if could_serve(volume, claim) and is_reached_from(volume, node)
        ]
        if not fitting:
            raise self._failure(
                "Filter", job, "node(s) didn't find available persistent volumes to bind"
            )
        # An earlier attempt may have reserved a volume: one that already names the claim comes first.
        chosen = min(
            fitting,
            key=lambda volume: (
                not is_reserved_for(volume, claim),
                capacity_bytes(volume),
                volume.metadata.name,
            ),
        )
        if chosen.spec.claim_ref is not None and chosen.spec.claim_ref.uid:
            return
        meta = claim.metadata
        reference = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": meta.namespace,
            "name": meta.name,
            "uid": meta.uid,
        }
        body = {
            "metadata": {"resourceVersion": chosen.metadata.resource_version},
            "spec": {"claimRef": reference},
        }
        self._gateway.patch(PVS, chosen.metadata.name, body)

    def _wait(self, job: BindJob, waiting: list[str]) -> None:
        deadline = self._clock() + self._timeout_s
        while waiting:
            track().touch()
            waiting = [name for name in waiting if self._claim(job, name).status.phase != "Bound"]
            if not waiting:
                return
            if self._clock() >= deadline:
                raise self._failure(
                    "Bind", job, f"timed out waiting for claims to be bound: {', '.join(waiting)}"
                )
            self._sleep(POLL_S)

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
