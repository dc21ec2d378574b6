"""The simulated namespace controller, for a real API server without kube-controller-manager: ends deleted namespaces.

A deleted namespace stays `Terminating` until everything in it is deleted and its finalizer is removed. Built-in kinds are
listed here, custom ones are read from their definitions. The embedded API server ends namespaces itself.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from kube.errors import ConflictError, ForbiddenError, KubeError, NotFoundError
from kube.gateway import EventType
from kube.objects.meta import KubeObject
from kube.resources import (
    CONFIGMAPS,
    CRDS,
    CRONJOBS,
    DEPLOYMENTS,
    EVENTS,
    JOBS,
    LEASES,
    NAMESPACES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    PVCS,
    REPLICASETS,
    RESOURCE_CLAIMS,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    STATEFULSETS,
    Resource,
)
from sandbox.controllers.loop import Controller

log = logging.getLogger(__name__)

#: Kinds that nothing else here knows.
OTHERS = tuple(
    Resource(group=group, version="v1", plural=f"{kind.lower()}s", kind=kind)
    for group, kind in (
        ("resource.k8s.io", "ResourceClaimTemplate"),
        ("rbac.authorization.k8s.io", "Role"),
        ("rbac.authorization.k8s.io", "RoleBinding"),
        ("discovery.k8s.io", "EndpointSlice"),
        ("", "LimitRange"),
        ("", "ResourceQuota"),
    )
)
#: Owners first, so that nothing is made anew by its controller.
BUILT_IN = (
    CRONJOBS,
    DEPLOYMENTS,
    JOBS,
    STATEFULSETS,
    REPLICASETS,
    PODS,
    PVCS,
    RESOURCE_CLAIMS,
    POD_DISRUPTION_BUDGETS,
    SERVICES,
    CONFIGMAPS,
    SECRETS,
    SERVICE_ACCOUNTS,
    LEASES,
    *OTHERS,
    EVENTS,
)
LOOK_AGAIN_S = 0.5


@dataclass(slots=True)
class NamespaceController(Controller):
    """Empties and finalises deleted namespaces until `stop` is set."""

    NAME = "namespaces"
    TYPES: ClassVar[Mapping[Resource, type[KubeObject]]] = {NAMESPACES: KubeObject}

    def follow(self) -> None:
        """Subscribe to deletions."""
        self.store.subscribe(self._changed)

    def reconcile(self, key: str) -> None:
        """Delete what is left in a deleted namespace; finalise it once nothing is."""
        try:
            body = self.gateway.get(NAMESPACES, key, as_type=dict)
            if not body["metadata"].get("deletionTimestamp"):
                return
            if self._empty(key):
                self.queue.add_after(key, LOOK_AGAIN_S)
                return
            finished = {**body, "spec": {**body.get("spec", {}), "finalizers": []}}
            self.gateway.replace(NAMESPACES, key, finished, sub="finalize")
        except NotFoundError:
            return
        except KubeError as error:
            log.warning("could not end namespace %s: %s", key, error)
            self.queue.retry(key)
            return
        self.queue.forget(key)

    def _empty(self, namespace: str) -> int:
        """Delete the objects of a namespace; return how many there were."""
        remaining = 0
        for resource in (*BUILT_IN, *self._custom_kinds()):
            try:
                listing = self.gateway.list(resource, as_type=KubeObject, namespace=namespace)
            except (NotFoundError, ForbiddenError):
                continue  # the server does not serve the kind
            remaining += len(listing.items)
            for item in listing.items:
                if item.metadata.deletion_timestamp is None:
                    self._delete(resource, item)
        return remaining

    def _delete(self, resource: Resource, item: KubeObject) -> None:
        meta = item.metadata
        try:
            self.gateway.delete(resource, meta.name, namespace=meta.namespace, uid=meta.uid)
        except (NotFoundError, ConflictError):
            return  # gone, or another object has its name: the next look tells

    def _custom_kinds(self) -> Iterator[Resource]:
        """Yield the namespaced kinds of all definitions."""
        for definition in self.gateway.list(CRDS, as_type=dict).items:
            resource = custom_kind(definition)
            if resource is not None:
                yield resource

    def _changed(self, _resource: Resource, event: EventType, value: KubeObject) -> None:
        if event is not EventType.DELETED and value.metadata.deletion_timestamp is not None:
            self.queue.add(value.metadata.name)


def custom_kind(definition: dict[str, Any]) -> Resource | None:
    """Return the kind that a definition describes; None if it is of the cluster, or not served."""
    spec = definition["spec"]
    served_versions = [version["name"] for version in spec["versions"] if version.get("served")]
    if spec["scope"] != "Namespaced" or not served_versions:
        return None
    names = spec["names"]
    return Resource(
        group=spec["group"], version=served_versions[-1], plural=names["plural"], kind=names["kind"]
    )
