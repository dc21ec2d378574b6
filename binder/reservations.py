"""Pods that hold a whole GPU so that several others can share it.

A GPU group is an id the scheduler made up for one physical device. Its reservation pod keeps the device
plugin from giving that device to anyone else, and its annotation tells which device it got. A group
without users loses its reservation; users without a reservation lose their protection and are removed.
Work on one group is serialised.
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
from kube.errors import AlreadyExistsError, KubeError, NotFoundError
from kube.gateway import Gateway, PatchType
from kube.keys import GPU_FRACTION_DEVICES, GPU_GROUP, GPU_GROUP_PREFIX, NVIDIA_GPU, RESERVED_DEVICE
from kube.numbers import int_or_none
from kube.objects.bindrequest import BindRequest
from kube.objects.meta import as_body, convert
from kube.objects.node import Node
from kube.objects.pod import Pod
from kube.progress import track
from kube.resources import BINDREQUESTS, NODES, PODS
from kube.store import Store

log = logging.getLogger(__name__)

FAKE_GPU = "run.ai/fake.gpu"
BY_GROUP = "gpu-group"
BY_NODE = "gpu-group-node"
POLL_S = 0.05


def groups_of(pod: Pod) -> list[str]:
    """Return the GPU groups on a pod's labels."""
    labels = pod.metadata.labels
    found = [value for key, value in labels.items() if key.startswith(GPU_GROUP_PREFIX) and value]
    single = labels.get(GPU_GROUP, "")
    return sorted({*found, single} - {""})


def add_indexes(store: Store) -> None:
    """Let a store find pods by GPU group and by node (only pods that have a group)."""
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
    """Makes, finds and removes reservation pods."""

    gateway: Gateway
    store: Store
    params: ReservationParams
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    _locks: dict[str, threading.Lock] = field(default_factory=dict)
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def reserve(self, pod: Pod, node: str, group: str) -> str:
        """Return the id of the group's device, holding it first if nobody does; label the pod."""
        with self._lock_of(group):
            device = self._device(pod, node, group)
            self._label(pod, group)
        return device

    def release(self, pod: Pod) -> None:
        """Take the group labels off a pod that could not be bound."""
        meta = pod.metadata
        try:
            current = self.gateway.get(PODS, meta.name, as_type=Pod, namespace=meta.namespace)
        except NotFoundError:
            return
        keys = [
            key
            for key in current.metadata.labels
            if key == GPU_GROUP or key.startswith(GPU_GROUP_PREFIX)
        ]
        if keys:
            patch = [{"op": "remove", "path": f"/metadata/labels/{_escaped(key)}"} for key in keys]
            answer = self.gateway.patch(
                PODS, meta.name, patch, namespace=meta.namespace, patch_type=PatchType.JSON
            )
            self._learn(answer)

    def sync_node(self, node: str) -> None:
        """Bring the reservations of one node in line with who uses them."""
        pods: list[Pod] = self.store.by_index(PODS, BY_NODE, node)
        self.sync_groups(group for pod in pods for group in groups_of(pod))

    def sync_all(self) -> None:
        """Bring all reservations in line, after a start."""
        pods = self.store.view().of(PODS, Pod).values()
        self.sync_groups(group for pod in pods for group in groups_of(pod))

    def sync_groups(self, groups: Iterable[str]) -> None:
        for group in sorted(set(groups)):
            with self._lock_of(group):
                self._sync(group)

    def _sync(self, group: str) -> None:
        pods: list[Pod] = self.store.by_index(PODS, BY_GROUP, group)
        holders = [pod for pod in pods if self._is_reservation(pod)]
        users = [
            pod
            for pod in pods
            if not self._is_reservation(pod) and pod.status.phase in ("Running", "Pending", "")
        ]
        if users and not holders:
            for pod in users:
                if pod.status.phase == "Running":
                    log.warning("pod %s shares a GPU nobody holds; it is removed", pod.key)
                    self._delete(pod, grace_period_s=None)
        elif holders and not users and not self.store.by_index(BINDREQUESTS, BY_GROUP, group):
            for pod in holders:
                self._delete(pod, grace_period_s=0)

    # ---------------------------------------------------------------------------------- reserving

    def _device(self, pod: Pod, node: str, group: str) -> str:
        held = [
            one for one in self.store.by_index(PODS, BY_GROUP, group) if self._is_reservation(one)
        ]
        if not held:
            self._refuse_while_scaling()
            return self._wait(self._create(pod, node, group))
        device = held[0].metadata.annotations.get(RESERVED_DEVICE, "")
        return device or self._wait(held[0].metadata.name)

    def _create(self, pod: Pod, node: str, group: str) -> str:
        body = reservation_body(pod, node, group, self.params)
        if self._has_fake_gpus():
            body["spec"]["containers"][0] |= {"image": "ubuntu", "args": ["sleep", "infinity"]}
        name: str = body["metadata"]["name"]
        try:
            self.gateway.create(PODS, body, namespace=self.params.namespace)
        except AlreadyExistsError:
            log.info("reservation pod %s was made by someone else", name)
        return name

    def _has_fake_gpus(self) -> bool:
        """On such a cluster no device can be asked for its id; an operator of its own writes the annotation."""
        nodes = self.store.view().of(NODES, Node).values()
        return any(node.metadata.labels.get(FAKE_GPU) == "true" for node in nodes)

    def _wait(self, name: str) -> str:
        """Wait until the reservation knows its device; a silent one is removed."""
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
                raise BindError("cluster is scaling up, could not create reservation pod")

    def _label(self, pod: Pod, group: str) -> None:
        meta = pod.metadata
        several = meta.annotations.get(GPU_FRACTION_DEVICES, "")
        is_multi = (int_or_none(several) or 0) > 1
        key = f"{GPU_GROUP_PREFIX}{group}" if is_multi else GPU_GROUP
        try:
            answer = self.gateway.patch(
                PODS, meta.name, {"metadata": {"labels": {key: group}}}, namespace=meta.namespace
            )
        except KubeError:
            self._sync(group)
            raise
        self._learn(answer)

    def _learn(self, answer: dict[str, Any]) -> None:
        """Show our own change of a pod before the watch does: the next sync must see it."""
        self.store.assume(PODS, convert(answer, Pod))

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
    """Return the pod that holds a device; its name follows from node and group."""
    digest = hashlib.sha256(f"{node}/{group}".encode()).hexdigest()[:16]
    stated = {kind: dict(params.resources.get(kind, {})) for kind in ("requests", "limits")}
    resources = {kind: {**values, NVIDIA_GPU: "1"} for kind, values in stated.items()}
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
