"""Reserve devices for GPU groups, and keep reservations and their users in step.

A reservation pod keeps the device plugin from giving its device to other pods, and an annotation on it names the
device. A reservation pod without users is deleted; running pods of a group without a reservation pod are
deleted too, because nothing protects their device. In one process, work on one group is serialised; between
processes see `unused`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from binder.errors import BindError
from binder.params import ReservationParams
from binder.reservations.body import reservation_body
from binder.reservations.groups import BY_GROUP, BY_NODE, group_labels, groups_of
from binder.reservations.room import SharedNodes, reservations_in_the_way
from binder.reservations.unused import UnusedReservations
from kube.errors import (
    AlreadyExistsError,
    ConflictError,
    KubeError,
    NotFoundError,
    UnauthorizedError,
)
from kube.gateway import Gateway, PatchType, Selectors
from kube.keys import (
    GPU_FRACTION_DEVICES,
    GPU_GROUP,
    GPU_GROUP_PREFIX,
    RESERVED_DEVICE,
)
from kube.objects.bindrequest import SCALING_UP
from kube.objects.meta import convert
from kube.objects.node import Node
from kube.objects.pod import Pod
from kube.process.progress import track
from kube.resources import BINDREQUESTS, NODES, PODS
from kube.store import Store
from kube.values.numbers import int_or_none
from kube.values.pointers import pointer_part

log = logging.getLogger(__name__)

FAKE_GPU = "run.ai/fake.gpu"
POLL_S = 0.05


@dataclass(slots=True)
class Reservations:
    """Creates, finds and deletes reservation pods."""

    gateway: Gateway
    store: Store
    params: ReservationParams
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    shared_nodes: SharedNodes = field(default_factory=SharedNodes)
    _unused: UnusedReservations = field(init=False)
    #: GPU group -> the lock for writes about it.
    _locks: dict[str, threading.Lock] = field(default_factory=dict)
    #: Held while a lock is looked up in `_locks`.
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        """Connect the part that deletes unused reservations."""
        self._unused = UnusedReservations(self.gateway, self.store, self.params)

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
            patch = [
                {"op": "remove", "path": f"/metadata/labels/{pointer_part(key)}"} for key in keys
            ]
            answer = self.gateway.patch(
                PODS, meta.name, patch, namespace=meta.namespace, patch_type=PatchType.JSON
            )
            self._assume(answer)

    def sync_node(self, node: str) -> None:
        """Delete one node's reservations without users, and its users without a reservation."""
        pods: list[Pod] = self.store.by_index(PODS, BY_NODE, node)
        self.sync_groups(group for pod in pods for group in groups_of(pod))

    def sync_all(self) -> None:
        """Do what `sync_node` does for every node, after a start and now and then."""
        self.shared_nodes.include(self.gateway, self.params.namespace)
        pods = self.store.view().of(PODS, Pod).values()
        self.sync_groups(group for pod in pods for group in groups_of(pod))

    def sync_groups(self, groups: Iterable[str]) -> None:
        """Do what `sync_node` does for some groups, on whichever node they are.

        Raises
        ------
        KubeError : the last failure; groups after one that failed are synchronised all the same
        """
        failure: KubeError | None = None
        for group in sorted(set(groups)):
            try:
                with self._lock_of(group):
                    self._sync(group)
            except UnauthorizedError:
                raise
            except KubeError as error:
                failure = error
        if failure is not None:
            raise failure

    def _sync(self, group: str) -> None:
        """Delete what is left of a group: holders that nobody uses, or running users that nothing protects.

        A pod with a label but without a node uses nothing unless its bind request is open: an attempt that was
        interrupted left the label.
        """
        pods: list[Pod] = self.store.by_index(PODS, BY_GROUP, group)
        holders = [pod for pod in pods if self._is_reservation(pod)]
        for holder in [pod for pod in holders if pod.is_finished]:
            holders.remove(holder)  # its device is free again
            self._delete(holder, grace_period_s=0)
        users = [
            pod
            for pod in pods
            if not self._is_reservation(pod) and pod.spec.node_name and not pod.is_finished
        ]
        if not holders:
            self._delete_unprotected(users, group)
        elif not users and not self.store.by_index(BINDREQUESTS, BY_GROUP, group):
            for holder in holders:
                self._unused.delete(holder, group)

    def _delete_unprotected(self, users: Iterable[Pod], group: str) -> None:
        """Delete the running users of a group that has no reservation pod, after asking the server for one."""
        running = [pod for pod in users if pod.status.phase == "Running"]
        if not running:
            return
        selectors = Selectors(labels=f"{GPU_GROUP}={group}")
        holders = self.gateway.list(
            PODS, as_type=Pod, namespace=self.params.namespace, selectors=selectors
        )
        if any(not holder.is_finished for holder in holders.items):
            return
        for pod in running:
            log.warning("pod %s shares a GPU that no reservation pod holds; it is deleted", pod.key)
            self._delete(pod, grace_period_s=None)

    def make_room(self, node: str, gpus: int) -> None:
        """Delete reservations of a node that nobody uses any more, if it has not so many whole GPUs left."""
        if not gpus or not (node in self.shared_nodes or self.store.by_index(PODS, BY_NODE, node)):
            return
        namespace = self.params.namespace
        for holder in reservations_in_the_way(self.gateway, namespace, node, gpus):
            group = holder.metadata.labels.get(GPU_GROUP, "")
            self._unused.delete(holder, group)

    # ---------------------------------------------------------------------------------- reserving

    def _device(self, pod: Pod, node: str, group: str) -> str:
        members: list[Pod] = self.store.by_index(PODS, BY_GROUP, group)
        holder = next((member for member in members if self._is_reservation(member)), None)
        if holder is not None:
            with suppress(NotFoundError):
                return self._wait_for_device(holder.metadata.name)
            self.store.discard(PODS, holder)  # another binder has deleted it
        self._refuse_while_scaling()
        self.make_room(node, 1)
        name = self._create(pod, node, group)
        try:
            return self._wait_for_device(name)
        except NotFoundError as error:
            raise BindError(
                f"GPU reservation pod {self.params.namespace}/{name} was deleted before it was used"
            ) from error

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
        """Return the device of a reservation pod and keep the pod, or delete it if it gets none in time.

        Raises
        ------
        NotFoundError : there is no such pod
        BindError : it got no device
        """
        deadline = self.clock() + self.params.timeout_s
        while True:
            track().touch()  # waiting for a device is no hang
            holder = self._keep(name)
            if holder is not None and holder.metadata.annotations.get(RESERVED_DEVICE):
                self.store.assume(PODS, holder)
                return holder.metadata.annotations[RESERVED_DEVICE]
            if self.clock() >= deadline:
                break
            self.sleep(POLL_S)
        if holder is not None:
            self._give_up(holder)
        place = f"{self.params.namespace}/{name}"
        raise BindError(f"failed waiting for GPU reservation pod to allocate: {place}")

    def _keep(self, name: str) -> Pod | None:
        """Take the mark "unused" from a reservation pod; return it, or None if it was changed or is leaving.

        Raises
        ------
        BindError : the kubelet refused or ended the pod
        """
        holder = self.gateway.get(PODS, name, as_type=Pod, namespace=self.params.namespace)
        if holder.is_finished:
            self._give_up(holder)
            cause = holder.status.message or holder.status.reason or holder.status.phase
            raise BindError(f"GPU reservation pod {holder.key} got no device: {cause}")
        if holder.metadata.deletion_timestamp is not None:
            return None
        try:
            return self._unused.keep(holder)
        except ConflictError:
            return None

    def _give_up(self, holder: Pod) -> None:
        """Delete a reservation pod without a device, unless it gets one at this moment."""
        meta = holder.metadata
        try:
            self.gateway.delete(
                PODS,
                meta.name,
                namespace=meta.namespace,
                grace_period_s=0,
                resource_version=meta.resource_version,
                uid=meta.uid,
            )
        except KubeError as error:
            log.info("reservation pod %s: %s", meta.name, error)

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
            raise  # tried again with the pod as it is now
        except KubeError:
            self._sync(group)  # the reservation may be without users
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
        # With a grace period the pod is there until it has ended.
        if grace_period_s == 0:
            self.store.discard(PODS, pod)

    def _is_reservation(self, pod: Pod) -> bool:
        return pod.metadata.namespace == self.params.namespace

    def _lock_of(self, group: str) -> threading.Lock:
        with self._guard:
            return self._locks.setdefault(group, threading.Lock())
