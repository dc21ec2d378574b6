"""The pod grouper: keeps every pod of our scheduler in its pod group.

Pod events put the pod's key into a work queue; workers decide with `reconcile.decide` and write what differs.
Pods of one workload arrive together, so creation of a group is serialised by its name and the answer remembered
until the watch brings it: one create per group, no conflict, one patch per pod. It is not assumed into the
store: the store's other listeners hear of an object only when it differs from what the store holds.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from kube.errors import (
    AlreadyExistsError,
    ConflictError,
    InvalidError,
    KubeError,
    NotFoundError,
)
from kube.gateway import EventType, Gateway
from kube.objects.meta import KubeObject, convert
from kube.objects.pod import Pod
from kube.objects.podgroup import PodGroup
from kube.progress import WAIT_S, track
from kube.resources import NAMESPACES, PODGROUPS, PODS, Resource
from kube.store import Store, version_of
from kube.workqueue import WorkQueue
from queues.grouping.base import Json, Settings, dig_text, uid_of
from queues.grouping.engine.lookups import ClusterLookups, plain
from queues.grouping.engine.owners import references_of
from queues.grouping.engine.reconcile import decide
from queues.grouping.engine.write import pod_group_patch, pod_patch
from queues.grouping.errors import GroupingError

log = logging.getLogger(__name__)

REASON = "PodGrouperWarning"
SOURCE = "pod-grouper"
LEASE = "54dff599.kai.scheduler"
CONCURRENCY = 16
OWN_WRITE_S = 10.0


class Recorder(Protocol):
    """Who writes events about objects."""

    def warn(self, about: KubeObject, reason: str, message: str) -> None: ...


@dataclass(slots=True)
class PodGrouper:
    """One pod grouper on a store that somebody feeds.

    Attributes
    ----------
    namespace_labels : pods of other namespaces are left alone; empty = all namespaces
    """

    gateway: Gateway
    store: Store
    lookups: ClusterLookups
    recorder: Recorder
    settings: Settings = field(default_factory=Settings)
    namespace_labels: Mapping[str, str] = field(default_factory=dict)
    queue: WorkQueue = field(default_factory=WorkQueue)
    written: OwnWrites = field(default_factory=lambda: OwnWrites())
    _writing: list[threading.Lock] = field(
        default_factory=lambda: [threading.Lock() for _ in range(64)]
    )

    def follow(self) -> None:
        """Take every pod of the store and every later pod event into the queue."""
        self.store.subscribe(self._on_event)
        for key in self.store.view().of(PODS, Pod):
            self.queue.add(key)

    def work(self, key: str) -> None:
        """Bring one pod into its group, or say on the pod why that cannot be."""
        pod: Pod | None = self.store.get(PODS, key)
        if (
            pod is None
            or not self._is_selected(pod)
            or not track().take(PODS.kind, pod, SOURCE, WAIT_S)
        ):
            self.queue.forget(key)
            return
        body = plain(pod)
        try:
            self._group(key, body)
        except ConflictError:
            self.queue.retry(key)
        except (GroupingError, KubeError) as error:
            self.lookups.owners.forget(references_of(body))
            self.recorder.warn(pod, REASON, str(error))
            delay_s = self.queue.retry(key)
            log.info("pod %s is not grouped: %s; again in %.0f s", key, error, delay_s)
        else:
            self.queue.forget(key)

    def _on_event(self, resource: Resource, event: EventType, value: KubeObject) -> None:
        if resource == PODGROUPS and event is EventType.DELETED:
            self.written.drop(value.key)
        elif resource == PODS:
            if event is EventType.DELETED:
                self.queue.forget(value.key)
            else:
                self.queue.add(value.key)

    def _is_selected(self, pod: Pod) -> bool:
        if not self.namespace_labels:
            return True
        namespace: KubeObject | None = self.store.get(NAMESPACES, pod.metadata.namespace)
        if namespace is None:
            return False
        return self.namespace_labels.items() <= namespace.metadata.labels.items()

    def _group(self, key: str, pod: Json) -> None:
        decision = decide(pod, self.lookups, self.settings)
        if decision.body is None:
            return
        namespace, _, name = key.partition("/")
        self._write_group(namespace, decision.body)
        patch = pod_patch(pod, decision.pod_group, decision.sub_group)
        if patch is None:
            return
        # The uid makes the server refuse the patch for a namesake that took this pod's place.
        patch["metadata"]["uid"] = uid_of(pod)
        try:
            self.gateway.patch(PODS, name, patch, namespace=namespace)
        except NotFoundError:
            return  # deleted while we looked at it
        except InvalidError as error:
            if "metadata.uid" not in str(error):
                raise
            raise ConflictError(str(error)) from error

    def _write_group(self, namespace: str, desired: Json) -> None:
        name = dig_text(desired, "metadata", "name")
        key = f"{namespace}/{name}"
        stored = self._known(key)
        if stored is not None and self._patch_of(stored, desired) is None:
            return
        with self._writing[hash(key) % len(self._writing)]:
            stored = self._known(key) or self._create(namespace, name, desired)
            patch = self._patch_of(stored, desired)
            if patch is None:
                return
            try:
                answer = self.gateway.patch(PODGROUPS, name, patch, namespace=namespace)
            except NotFoundError as error:
                self.written.drop(key)
                raise ConflictError(str(error)) from error  # deleted meanwhile: make it anew
            self.written.put(key, convert(answer, PodGroup))

    def _known(self, key: str) -> PodGroup | None:
        stored: PodGroup | None = self.store.get(PODGROUPS, key)
        return self.written.newer(key, stored)

    def _create(self, namespace: str, name: str, desired: Json) -> PodGroup:
        try:
            answer = self.gateway.create(PODGROUPS, desired, namespace=namespace)
        except AlreadyExistsError as error:
            try:
                return self.gateway.get(PODGROUPS, name, as_type=PodGroup, namespace=namespace)
            except NotFoundError:
                raise ConflictError(str(error)) from error  # made by somebody and deleted again
        made = convert(answer, PodGroup)
        self.written.put(f"{namespace}/{name}", made)
        return made

    def _patch_of(self, stored: PodGroup, desired: Json) -> Json | None:
        return pod_group_patch(plain(stored), desired, self.settings)


@dataclass(slots=True)
class OwnWrites:
    """Pod groups as we wrote them moments ago, until the watch must have brought them."""

    clock: Callable[[], float] = time.monotonic
    _found: OrderedDict[str, tuple[float, PodGroup]] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def put(self, key: str, group: PodGroup) -> None:
        with self._lock:
            now = self.clock()
            self._found[key] = (now, group)
            self._found.move_to_end(key)
            while self._found and now - next(iter(self._found.values()))[0] > OWN_WRITE_S:
                self._found.popitem(last=False)

    def newer(self, key: str, stored: PodGroup | None) -> PodGroup | None:
        """Return our own write where it is newer than what the store holds."""
        with self._lock:
            written_at, group = self._found.get(key, (0.0, None))
        if group is None or self.clock() - written_at > OWN_WRITE_S:
            return stored
        if stored is None or version_of(group) > version_of(stored):
            return group
        return stored

    def drop(self, key: str) -> None:
        with self._lock:
            self._found.pop(key, None)
