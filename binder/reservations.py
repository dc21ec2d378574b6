"""Reservation pods: each holds a whole GPU so that several other pods can share it.

A GPU group is an id that the scheduler assigns to one physical device. Its reservation pod keeps the device
plugin from giving that device to other pods, and an annotation on it names the device. A reservation pod
without users is deleted; running pods of a group without a reservation pod are deleted too, because nothing
protects their device. Work on one group is serialised.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from binder.errors import BindError
from binder.params import ReservationParams
from kube.errors import AlreadyExistsError, ConflictError, KubeError, NotFoundError
from kube.gateway import Gateway, PatchType
from kube.keys import GPU_FRACTION_DEVICES, GPU_GROUP, GPU_GROUP_PREFIX, NVIDIA_GPU, RESERVED_DEVICE
from kube.objects.bindrequest import SCALING_UP, BindRequest
from kube.objects.meta import as_body, convert
from kube.objects.node import Node
from kube.objects.pod import Pod
from kube.process.progress import track
from kube.resources import BINDREQUESTS, NODES, PODS
from kube.store import Store
from kube.values.numbers import int_or_none

log = logging.getLogger(__name__)

FAKE_GPU = "run.ai/fake.gpu"
BY_GROUP = "gpu-group"
BY_NODE = "gpu-group-node"
POLL_S = 0.05


def groups_of(pod: Pod) -> list[str]:
    """Return the GPU groups on a pod's labels."""
    return sorted(set(group_labels(pod).values()) - {""})


def group_labels(pod: Pod) -> dict[str, str]:
    """Return the labels of a pod that name a GPU group: one for the whole pod, or one per device."""
    return {
        key: value
        for key, value in pod.metadata.labels.items()
        if key == GPU_GROUP or key.startswith(GPU_GROUP_PREFIX)
    }


def add_indexes(store: Store) -> None:
    """Index the pods that have a GPU group by group and by node, and open bind requests by group."""
    store.add_index(PODS, BY_GROUP, groups_of)
    store.add_index(
        PODS,
        BY_NODE,
        lambda pod: [pod.spec.node_name] if pod.spec.node_name and groups_of(pod) else [],
    )
    store.add_index(
        BINDREQUESTS,
        BY_GROUP,
        lambda request: request.spec.selected_gpu_groups if not _is_over(request) else (),
    )


@dataclass(slots=True)
class Reservations:
    """Creates, finds and deletes reservation pods."""

    gateway: Gateway
    store: Store
    params: ReservationParams
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    _locks: dict[str, threading.Lock] = field(default_factory=dict)
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def reserve(self, pod: Pod, node: str, group: str) -> tuple[str, Pod]:
        """Label a pod with its group, reserving a device if needed; return the device's id and the pod.

        Raises
        ------
        BindError : the cluster is scaling up, or the reservation pod got no device in time
        ConflictError : the pod was changed since it was read
        """
        with self._lock_of(group):
            device = self._device(pod, node, group)
            return device, self._label(pod, group)

    def drop_other_labels(self, pod: Pod, groups: Iterable[str]) -> Pod:
        """Remove labels of other groups, which an interrupted attempt left; return the pod."""
        stale = [key for key, value in group_labels(pod).items() if value not in set(groups)]
        if not stale:
            return pod
        meta = pod.metadata
        labels: dict[str, None] = dict.fromkeys(stale)
        body = {"metadata": {"resourceVersion": meta.resource_version, "labels": labels}}
        return self._assume(self.gateway.patch(PODS, meta.name, body, namespace=meta.namespace))

    def release(self, pod: Pod) -> None:
        """Remove the group labels from a pod that could not be bound."""
        meta = pod.metadata
        try:
            current = self.gateway.get(PODS, meta.name, as_type=Pod, namespace=meta.namespace)
        except NotFoundError:
            return
        keys = list(group_labels(current))
        if keys:
            patch = [{"op": "remove", "path": f"/metadata/labels/{_escaped(key)}"} for key in keys]
            answer = self.gateway.patch(
                PODS, meta.name, patch, namespace=meta.namespace, patch_type=PatchType.JSON
            )
            self._assume(answer)

    def sync_node(self, node: str) -> None:
        """Delete one node's reservations without users, and its users without a reservation."""
        pods: list[Pod] = self.store.by_index(PODS, BY_NODE, node)
        self.sync_groups(group for pod in pods for group in groups_of(pod))

    def sync_all(self) -> None:
        """Do what `sync_node` does for every node, after a start."""
        pods = self.store.view().of(PODS, Pod).values()
        self.sync_groups(group for pod in pods for group in groups_of(pod))

    def sync_groups(self, groups: Iterable[str]) -> None:
        """Do what `sync_node` does for some groups, on whichever node they are."""
        for group in sorted(set(groups)):
            with self._lock_of(group):
                self._sync(group)

    def _sync(self, group: str) -> None:
        """Delete what is left of a group: holders that nobody uses, or running users that nothing protects.

        A pod with a label but without a node uses nothing unless its bind request is open: an attempt that was
        interrupted left the label.
        """
        pods: list[Pod] = self.store.by_index(PODS, BY_GROUP, group)
        holders = [pod for pod in pods if self._is_reservation(pod)]
        labelled = [
            pod
            for pod in pods
            if not self._is_reservation(pod) and pod.status.phase in ("Running", "Pending", "")
        ]
        users = [pod for pod in labelled if pod.spec.node_name]
        if not holders:
            for pod in users:
                if pod.status.phase == "Running":
                    log.warning(
                        "pod %s shares a GPU that no reservation pod holds; it is deleted", pod.key
                    )
                    self._delete(pod, grace_period_s=None)
            return
        if users or self.store.by_index(BINDREQUESTS, BY_GROUP, group):
            return
        if any(self._is_bound_by_now(pod) for pod in labelled):
            return
        for pod in holders:
            self._delete(pod, grace_period_s=0)

    def _is_bound_by_now(self, pod: Pod) -> bool:
        """Ask the server, because the watch of pods may lag behind that of bind requests."""
        meta = pod.metadata
        try:
            current = self.gateway.get(PODS, meta.name, as_type=Pod, namespace=meta.namespace)
        except NotFoundError:
            return False
        return current.metadata.uid == meta.uid and bool(current.spec.node_name)

    # ---------------------------------------------------------------------------------- reserving

    def _device(self, pod: Pod, node: str, group: str) -> str:
        members: list[Pod] = self.store.by_index(PODS, BY_GROUP, group)
        holder = next((member for member in members if self._is_reservation(member)), None)
        if holder is None:
            self._refuse_while_scaling()
            return self._wait_for_device(self._create(pod, node, group))
        device = holder.metadata.annotations.get(RESERVED_DEVICE, "")
        return device or self._wait_for_device(holder.metadata.name)

    def _create(self, pod: Pod, node: str, group: str) -> str:
        body = reservation_body(pod, node, group, self.params)
        if self._has_fake_gpus():
            body["spec"]["containers"][0] |= {"image": "ubuntu", "args": ["sleep", "infinity"]}
        name: str = body["metadata"]["name"]
        try:
            self.gateway.create(PODS, body, namespace=self.params.namespace)
        except AlreadyExistsError:
            log.info("reservation pod %s was created by another attempt", name)
        return name

    def _has_fake_gpus(self) -> bool:
        """Return whether the cluster simulates GPUs.

        Then devices have no id, and the simulator writes one into the annotation.
        """
        nodes = self.store.view().of(NODES, Node).values()
        return any(node.metadata.labels.get(FAKE_GPU) == "true" for node in nodes)

    def _wait_for_device(self, name: str) -> str:
        """Return the device that a reservation pod got; delete the pod and fail if it gets none in time."""
        deadline = self.clock() + self.params.timeout_s
        namespace = self.params.namespace
        while self.clock() < deadline:
            track().touch()
            try:
                pod = self.gateway.get(PODS, name, as_type=Pod, namespace=namespace)
            except NotFoundError:
                break
            device = pod.metadata.annotations.get(RESERVED_DEVICE, "")
            if device:
                self.store.assume(PODS, pod)
                return device
            self.sleep(POLL_S)
        try:
            self.gateway.delete(PODS, name, namespace=namespace, grace_period_s=0)
        except KubeError as error:
            log.info("reservation pod %s: %s", name, error)
        raise BindError(f"failed waiting for GPU reservation pod to allocate: {namespace}/{name}")

    def _refuse_while_scaling(self) -> None:
        scaling = self.gateway.list(PODS, as_type=Pod, namespace=self.params.scaling_namespace)
        for pod in scaling.items:
            condition = pod.condition("PodScheduled")
            if condition is None or condition.status != "True":
                raise BindError(SCALING_UP)

    def _label(self, pod: Pod, group: str) -> Pod:
        meta = pod.metadata
        devices = int_or_none(meta.annotations.get(GPU_FRACTION_DEVICES, "")) or 0
        key = f"{GPU_GROUP_PREFIX}{group}" if devices > 1 else GPU_GROUP
        try:
            answer = self.gateway.patch(
                PODS,
                meta.name,
                {
                    "metadata": {
                        "resourceVersion": meta.resource_version,
                        "labels": {key: group},
                    }
                },
                namespace=meta.namespace,
            )
        except ConflictError:
            raise
        except KubeError:
            self._sync(group)
            raise
        return self._assume(answer)

    def _assume(self, answer: dict[str, Any]) -> Pod:
        """Store our own change of a pod before the watch delivers it, because the next sync must see it."""
        pod = convert(answer, Pod)
        self.store.assume(PODS, pod)
        return pod

    def _delete(self, pod: Pod, *, grace_period_s: int | None) -> None:
        meta = pod.metadata
        with suppress(NotFoundError):
            self.gateway.delete(
                PODS,
                meta.name,
                namespace=meta.namespace,
                grace_period_s=grace_period_s,
                uid=meta.uid,
            )
        if grace_period_s == 0:
            self.store.discard(PODS, pod)

    def _is_reservation(self, pod: Pod) -> bool:
        return pod.metadata.namespace == self.params.namespace

    def _lock_of(self, group: str) -> threading.Lock:
        with self._guard:
            return self._locks.setdefault(group, threading.Lock())


def reservation_body(pod: Pod, node: str, group: str, params: ReservationParams) -> dict[str, Any]:
    """Return the pod that holds a device; node and group determine its name."""
    digest = hashlib.sha256(f"{node}/{group}".encode()).hexdigest()[:16]
    configured = {kind: dict(params.resources.get(kind, {})) for kind in ("requests", "limits")}
    resources = {kind: {**values, NVIDIA_GPU: "1"} for kind, values in configured.items()}
    fields = (("POD_NAME", "metadata.name"), ("POD_NAMESPACE", "metadata.namespace"))
    container: dict[str, Any] = {
        "name": "resource-reservation",
        "image": params.image,
        "imagePullPolicy": "IfNotPresent",
        "resources": resources,
        "env": [
            {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in fields
        ],
    }
    if params.container_security:
        container["securityContext"] = dict(params.container_security)
    spec: dict[str, Any] = {
        "nodeName": node,
        "serviceAccountName": params.service_account,
        "tolerations": [as_body(item) for item in pod.spec.tolerations],
        "containers": [container],
    }
    if params.runtime_class:
        spec["runtimeClassName"] = params.runtime_class
    if params.pod_security:
        spec["securityContext"] = dict(params.pod_security)
    return {
        "apiVersion": PODS.api_version,
        "kind": PODS.kind,
        "metadata": {
            "name": f"gpu-reservation-{digest}",
            "namespace": params.namespace,
            "labels": {"app": params.app_label, GPU_GROUP: group},
            "annotations": {"karpenter.sh/do-not-disrupt": "true"},
        },
        "spec": spec,
    }


def _is_over(request: BindRequest) -> bool:
    return request.status.phase in ("Succeeded", "Failed")


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
