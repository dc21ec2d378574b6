"""Have the pod's volume claims bound where the pod will run, and wait until they are.

A claim that waits for its first consumer is told the node (the provisioner makes the volume there), or is
joined with a static volume that fits and can be reached from the node.
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
from kube.progress import track
from kube.resources import NODES, PVCS, PVS, STORAGE_CLASSES
from kube.static_volumes import NO_PROVISIONER, could_serve, is_reached_from, is_reserved_for, size

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
            waiting = [name for name in claim_names(job.pod) if not self._start(job, name)]
            self._wait(job, waiting)
        except KubeError as error:
            raise self._failure("Bind", job, str(error)) from error

    def roll_back(self, job: BindJob) -> None:
        """Nothing is assumed in memory; a claim that was bound stays bound to its volume."""

    def _start(self, job: BindJob, name: str) -> bool:
        """Set a claim on its way; tell whether it is bound already."""
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
            marks = {"metadata": {"annotations": {SELECTED_NODE: job.node}}}
            self._gateway.patch(PVCS, name, marks, namespace=claim.metadata.namespace)
            return False
        self._claim_static(job, claim)
        return False

    def _claim_static(self, job: BindJob, claim: PersistentVolumeClaim) -> None:
        """Reserve the smallest free static volume that fits the claim and can be reached from the node."""
        node = self._gateway.get(NODES, job.node, as_type=Node)
        volumes = self._gateway.list(PVS, as_type=PersistentVolume).items
        fitting = [one for one in volumes if could_serve(one, claim) and is_reached_from(one, node)]
        if not fitting:
            raise self._failure(
                "Filter", job, "node(s) didn't find available persistent volumes to bind"
            )
        # One that names the claim already comes first: an earlier attempt may have reserved it.
        chosen = min(
            fitting,
            key=lambda one: (not is_reserved_for(one, claim), size(one), one.metadata.name),
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
    """Return the names of the claims a pod's volumes stand for."""
    names = []
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            names.append(volume.persistent_volume_claim.claim_name)
        elif volume.ephemeral is not None:
            names.append(f"{pod.metadata.name}-{volume.name}")
    return names
