"""Watch the gangs of Kubernetes' own API, in the version that the cluster serves.

The kinds that the cluster serves are read from its discovery. A kind that is not served counts as empty, and
discovery is read again only every `ASK_AGAIN_S`, because such a kind appears only with an upgrade of the cluster.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from kube.errors import ForbiddenError, KubeError, NotFoundError
from kube.gateway import Gateway, Listing, WatchEvent
from kube.objects.gang import UpstreamPodGroup, Workload
from kube.objects.meta import KubeObject
from kube.process.backoff import Backoff
from kube.resources import UPSTREAM_PODGROUPS, WORKLOADS, Resource
from kube.store import Store
from kube.watch import Reflector
from queues.grouping.base import dig_list, dig_text
from queues.grouping.engine.kinds import DiscoveryDocument

log = logging.getLogger(__name__)

ASK_AGAIN_S = 600.0
#: For each kind its versions, best first. Others are ignored, because their fields are not known.
VERSIONS: Mapping[Resource, tuple[str, ...]] = {
    WORKLOADS: ("v1alpha1",),
    UPSTREAM_PODGROUPS: ("v1beta1", "v1alpha3", "v1alpha2"),
}
TYPES: Mapping[Resource, type[KubeObject]] = {
    WORKLOADS: Workload,
    UPSTREAM_PODGROUPS: UpstreamPodGroup,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDocument(Resource):
    """The discovery document of a group: its versions."""

    def path(self, namespace: str | None = None, name: str | None = None, sub: str = "") -> str:
        return f"/apis/{self.group}"


@dataclass(frozen=True, slots=True)
class _FiledAs:
    """Puts objects of the served version of a kind into the store as `resource`, the key that readers use."""

    store: Store
    resource: Resource
    served: Resource

    def replace(self, resource: Resource, listing: Listing[KubeObject]) -> None:
        items = tuple(self._named(item) for item in listing.items)
        self.store.replace(self.resource, replace(listing, items=items))

    def apply(self, resource: Resource, event: WatchEvent[KubeObject]) -> None:
        self.store.apply(self.resource, replace(event, object=self._named(event.object)))

    def _named(self, value: KubeObject) -> KubeObject:
        """Return an object with its version and kind, which the items of a list do not have."""
        return msgspec.structs.replace(
            value, api_version=self.served.api_version, kind=self.served.kind
        )


@dataclass(slots=True)
class GangWatch:
    """Fills the store with Workloads and PodGroups of `scheduling.k8s.io`, or with nothing."""

    gateway: Gateway
    store: Store
    stop: threading.Event
    on_fatal: Callable[[KubeError], None]
    backoff: Backoff = field(default_factory=Backoff)
    _followed: set[Resource] = field(default_factory=set)

    def declare(self) -> None:
        """Register the kinds with the store, which is not complete before each is listed or known to be absent."""
        for resource in VERSIONS:
            self.store.kind(resource)

    def run(self) -> None:
        """Look for the kinds until all are followed or `stop` is set."""
        while not self.stop.is_set() and len(self._followed) < len(VERSIONS):
            self.stop.wait(self.look())

    def look(self) -> float:
        """Start to follow the kinds that are served; return the pause before the next look."""
        try:
            served_kinds = served_gangs(self.gateway)
        except KubeError as error:
            pause_s = self.backoff.pause_s()
            log.warning("cannot discover gangs: %s; again in %.1f s", error, pause_s)
            return pause_s
        for resource in VERSIONS:
            if resource in self._followed:
                continue
            if resource in served_kinds:
                self._follow(resource, served_kinds[resource])
            else:
                self.store.replace(resource, Listing(items=(), resource_version=""))
        return ASK_AGAIN_S

    def _follow(self, resource: Resource, served_resource: Resource) -> None:
        log.info("pods may name a %s of %s", served_resource.kind, served_resource.api_version)
        self._followed.add(resource)
        sink = _FiledAs(self.store, resource, served_resource)
        reflector = Reflector(
            self.gateway, served_resource, TYPES[resource], sink, is_optional=True
        )
        reflector.start(
            self.stop, on_fatal=self.on_fatal, name=f"watch-gang-{served_resource.plural}"
        )


def served_gangs(gateway: Gateway) -> dict[Resource, Resource]:
    """Return the kinds of gangs that the cluster serves, each in its best known version.

    Raises
    ------
    KubeError : the API server did not answer
    """
    versions = _served_versions(gateway)
    served_by_kind: dict[Resource, Resource] = {}
    for resource, known_versions in VERSIONS.items():
        for version in known_versions:
            candidate = Resource(
                group=resource.group,
                version=version,
                plural=resource.plural,
                kind=resource.kind,
            )
            if version in versions and _serves(gateway, candidate):
                served_by_kind[resource] = candidate
                break
    return served_by_kind


def _served_versions(gateway: Gateway) -> set[str]:
    group = WORKLOADS.group
    document = GroupDocument(group=group, version="", plural="", kind="APIGroup", namespaced=False)
    body = _read(gateway, document, group)
    return {dig_text(entry, "version") for entry in dig_list(body, "versions")}


def _serves(gateway: Gateway, candidate: Resource) -> bool:
    document = DiscoveryDocument(
        group=candidate.group,
        version=candidate.version,
        plural="",
        kind="APIResourceList",
        namespaced=False,
    )
    body = _read(gateway, document, candidate.api_version)
    return any(dig_text(entry, "name") == candidate.plural for entry in dig_list(body, "resources"))


def _read(gateway: Gateway, document: Resource, name: str) -> dict[str, Any]:
    try:
        body: dict[str, Any] = gateway.get(document, name, as_type=dict)
    except (NotFoundError, ForbiddenError):
        return {}
    return body
