"""The pod grouper: puts every pod of our scheduler into its pod group.

Pod events add the key of the pod to a work queue; workers call `reconcile.decide` and write the differences. The pods
of a workload arrive together, so a group is created under a lock by its name, and the response is remembered until
the watch returns it: one create per group and one patch per pod. The response is not assumed into the store, because
the store notifies its other listeners only of objects that differ from its own.
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
from kube.process.progress import WAIT_S, track
from kube.process.workqueue import WorkQueue
from kube.resources import NAMESPACES, PODGROUPS, PODS, Resource
from kube.store import Store, version_of
from queues.grouping.base import Json, Settings, dig_text, uid_of
from queues.grouping.engine.lookups import BY_GANG, GANGS, ClusterLookups, gang_key, plain
from queues.grouping.engine.owners import references_of
from queues.grouping.engine.reconcile import decide
from queues.grouping.engine.write import pod_group_patch, pod_patch
from queues.grouping.errors import GangMissingError, GroupingError

log = logging.getLogger(__name__)

REASON = "PodGrouperWarning"
SOURCE = "pod-grouper"
LEASE = "54dff599.kai.scheduler"
CONCURRENCY = 16
CACHE_S = 10.0


class WarningWriter(Protocol):
    """Writes warning events of objects."""

    def warn(self, about: KubeObject, reason: str, message: str) -> None: ...


@dataclass(slots=True)
class PodGrouper:
    """The pod grouper on a store that watches fill.

    Attributes
    ----------
    namespace_labels : pods of other namespaces are left alone; empty = all namespaces
    """

    gateway: Gateway
    store: Store
    lookups: ClusterLookups
    recorder: WarningWriter
    settings: Settings = field(default_factory=Settings)
    namespace_labels: Mapping[str, str] = field(default_factory=dict)
    queue: WorkQueue = field(default_factory=WorkQueue)
    written: RecentWrites = field(default_factory=lambda: RecentWrites())
    _writing: list[threading.Lock] = field(
        default_factory=lambda: [threading.Lock() for _ in range(64)]
    )

    def follow(self) -> None:
        """Add every pod of the store, and the pod of every later event, to the queue."""
        self.store.subscribe(self._on_event)
        for key in self.store.view().of(PODS, Pod):
            self.queue.add(key)

    def work(self, key: str) -> None:
        """Put one pod into its group, or write a warning event with the reason why that failed."""
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
        except GangMissingError as error:
            # The event of the gang queues the pod again.
            self.recorder.warn(pod, REASON, str(error))
            self.queue.forget(key)
        except (GroupingError, KubeError) as error:
            self.lookups.owners.forget(references_of(body))
            self.recorder.warn(pod, REASON, str(error))
            delay_s = self.queue.retry(key)
            log.info("cannot group pod %s: %s; will retry in %.0f s", key, error, delay_s)
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
        elif GANGS.get(resource.kind) == resource and event is not EventType.DELETED:
            for pod in self.store.by_index(PODS, BY_GANG, gang_key(resource, value.key)):
                self.queue.add(pod.key)

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
        # With the uid, the server refuses the patch if the pod was replaced by one of the same name.
        patch["metadata"]["uid"] = uid_of(pod)
        try:
            self.gateway.patch(PODS, name, patch, namespace=namespace)
        except NotFoundError:
            return  # deleted meanwhile
        except InvalidError as error:
            if "metadata.uid" not in str(error):
                raise
            raise ConflictError(str(error)) from error

    def _write_group(self, namespace: str, desired: Json) -> None:
        name = dig_text(desired, "metadata", "name")
        key = f"{namespace}/{name}"
        stored = self._stored_group(key)
        if stored is not None and self._patch_of(stored, desired) is None:
            return
        with self._writing[hash(key) % len(self._writing)]:
            stored = self._stored_group(key) or self._create(namespace, name, desired)
            patch = self._patch_of(stored, desired)
            if patch is None:
                return
            try:
                answer = self.gateway.patch(PODGROUPS, name, patch, namespace=namespace)
            except NotFoundError as error:
                self.written.drop(key)
                raise ConflictError(str(error)) from error  # deleted meanwhile: create it again
            self.written.put(key, convert(answer, PodGroup))

    def _stored_group(self, key: str) -> PodGroup | None:
        stored: PodGroup | None = self.store.get(PODGROUPS, key)
        return self.written.newer(key, stored)

    def _create(self, namespace: str, name: str, desired: Json) -> PodGroup:
        try:
            answer = self.gateway.create(PODGROUPS, desired, namespace=namespace)
        except AlreadyExistsError as error:
            try:
                return self.gateway.get(PODGROUPS, name, as_type=PodGroup, namespace=namespace)
            except NotFoundError:
                raise ConflictError(
                    str(error)
                ) from error  # created by another client and deleted again
        pod_group = convert(answer, PodGroup)
        self.written.put(f"{namespace}/{name}", pod_group)
        return pod_group

    def _patch_of(self, stored: PodGroup, desired: Json) -> Json | None:
        return pod_group_patch(plain(stored), desired, self.settings)


@dataclass(slots=True)
class RecentWrites:
    """Pod groups that we wrote recently, kept until the watch should have returned them."""

    clock: Callable[[], float] = time.monotonic
    _groups: OrderedDict[str, tuple[float, PodGroup]] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def put(self, key: str, group: PodGroup) -> None:
        with self._lock:
            now = self.clock()
            self._groups[key] = (now, group)
            self._groups.move_to_end(key)
            while self._groups and now - next(iter(self._groups.values()))[0] > CACHE_S:
                self._groups.popitem(last=False)

    def newer(self, key: str, stored: PodGroup | None) -> PodGroup | None:
        """Return the remembered write if it is newer than the object of the store."""
        with self._lock:
            written_at, group = self._groups.get(key, (0.0, None))
        if group is None or self.clock() - written_at > CACHE_S:
            return stored
        if stored is None or version_of(group) > version_of(stored):
            return group
        return stored

    def drop(self, key: str) -> None:
        with self._lock:
            self._groups.pop(key, None)
