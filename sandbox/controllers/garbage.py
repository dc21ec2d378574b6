"""A simulated garbage collector, for a real API server that runs without kube-controller-manager.

Deletes objects whose owners are all gone, like the real one in the background: the pods of a deleted Job,
the pod group and bind request of a deleted pod. Only the kinds that matter for scheduling are watched; an
owner of another kind counts as present. The embedded API server has a garbage collector of its own.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from kube.errors import ConflictError, KubeError, NotFoundError
from kube.gateway import EventType, Gateway
from kube.objects.meta import KubeObject, OwnerReference
from kube.process.workqueue import WorkQueue, start_workers
from kube.resources import (
    BINDREQUESTS,
    CONFIGMAPS,
    CRONJOBS,
    DEPLOYMENTS,
    JOBS,
    PODGROUPS,
    PODS,
    REPLICASETS,
    RESOURCE_CLAIMS,
    STATEFULSETS,
    Resource,
)
from kube.store import Store
from kube.watch import Reflector

log = logging.getLogger(__name__)

WORKERS = 4
# How long the owner of a new object may be unknown, because its own watch lags.
UNKNOWN_OWNER_S = 2.0
KINDS = (
    PODS,
    REPLICASETS,
    JOBS,
    DEPLOYMENTS,
    STATEFULSETS,
    CRONJOBS,
    PODGROUPS,
    BINDREQUESTS,
    CONFIGMAPS,
    RESOURCE_CLAIMS,
)
_BY_KIND = {(resource.api_version, resource.kind): resource for resource in KINDS}
_BY_PLURAL = {resource.plural: resource for resource in KINDS}


@dataclass(slots=True)
class GarbageCollector:
    """Watches owners and dependents until `stop` is set."""

    gateway: Gateway
    stop: threading.Event
    on_fatal: Callable[[KubeError], None]
    store: Store = field(default_factory=lambda: Store(list(KINDS)))
    queue: WorkQueue = field(default_factory=lambda: WorkQueue(first_s=0.5, max_s=30.0))

    def __post_init__(self) -> None:
        for resource in KINDS:
            self.store.add_index(resource, "uid", lambda value: [value.metadata.uid])
            self.store.add_index(resource, "owner", _owner_uids)
        self.store.subscribe(self._changed)

    def run(self) -> None:
        """Run until stopped."""
        for resource in KINDS:
            watch = Reflector(self.gateway, resource, KubeObject, self.store, is_optional=True)
            watch.start(self.stop, on_fatal=self.on_fatal, name=f"garbage-{resource.plural}")
        start_workers(self.queue, self.reconcile, WORKERS, "garbage")
        self.stop.wait()
        self.queue.close()

    def reconcile(self, key: str) -> None:
        """Delete one object if it has owners and none of them exists."""
        plural, _, name = key.partition(" ")
        resource = _BY_PLURAL[plural]
        dependent: KubeObject | None = self.store.get(resource, name)
        if dependent is None or dependent.metadata.deletion_timestamp is not None:
            return
        meta = dependent.metadata
        try:
            if any(self._exists(owner, dependent) for owner in meta.owner_references):
                return
            self.gateway.delete(resource, meta.name, namespace=meta.namespace, uid=meta.uid)
        except (NotFoundError, ConflictError):
            # It is deleted already, or a new object with another uid has its name.
            return
        except KubeError as error:
            log.warning("could not collect %s: %s", key, error)
            self.queue.retry(key)
            return
        self.queue.forget(key)

    def _exists(self, owner: OwnerReference, dependent: KubeObject) -> bool:
        """Return whether an owner exists; ask the server too, because the watch may lag."""
        resource = _BY_KIND.get((owner.api_version, owner.kind))
        if resource is None or self.store.by_index(resource, "uid", owner.uid):
            return True
        try:
            current = self.gateway.get(
                resource, owner.name, as_type=KubeObject, namespace=dependent.metadata.namespace
            )
        except NotFoundError:
            return False
        return current.metadata.uid == owner.uid

    def _changed(self, resource: Resource, event: EventType, value: KubeObject) -> None:
        if event is EventType.DELETED:
            for kind in KINDS:
                for dependent in self.store.by_index(kind, "owner", value.metadata.uid):
                    self.queue.add(f"{kind.plural} {dependent.key}")
        elif value.metadata.owner_references and not self._has_known_owner(value):
            self.queue.add_after(f"{resource.plural} {value.key}", UNKNOWN_OWNER_S)

    def _has_known_owner(self, value: KubeObject) -> bool:
        for owner in value.metadata.owner_references:
            resource = _BY_KIND.get((owner.api_version, owner.kind))
            if resource is None or self.store.by_index(resource, "uid", owner.uid):
                return True
        return False


def _owner_uids(value: KubeObject) -> list[str]:
    return [owner.uid for owner in value.metadata.owner_references]
