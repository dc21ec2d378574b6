"""Find the API resource of the kind in an owner reference.

References have apiVersion and kind, URLs need the plural. Nearly all plurals can be derived from the kind, so that
guess is tried first; if it fails, the discovery document of the group is read, and cached.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kube.errors import KubeError
from kube.gateway import Gateway
from kube.resources import Resource
from queues.grouping.base import dig_list, dig_text

CACHE_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveryDocument(Resource):
    """The list of kinds of a group and version, with the path of an object."""

    def path(self, namespace: str | None = None, name: str | None = None, sub: str = "") -> str:
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"


def guessed_resource(api_version: str, kind: str) -> Resource:
    """Return the resource with the regular plural."""
    group, _, version = api_version.rpartition("/")
    return Resource(group=group, version=version, plural=plural_of(kind), kind=kind)


def plural_of(kind: str) -> str:
    name = kind.lower()
    if name.endswith(("s", "x", "z", "ch", "sh")):
        return f"{name}es"
    if name.endswith("y") and name[-2:-1] not in "aeiou":
        return f"{name[:-1]}ies"
    return f"{name}s"


@dataclass(slots=True)
class KindDirectory:
    """Discovery documents by group and version, cached for a minute."""

    gateway: Gateway
    clock: Callable[[], float] = time.monotonic
    #: Group and version -> (when they were read, resources by kind).
    _kinds_by_version: dict[str, tuple[float, dict[str, Resource]]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def find(self, api_version: str, kind: str) -> Resource | None:
        """Return the resource of a kind from discovery, or None if the server does not serve it."""
        with self._lock:
            entry = self._kinds_by_version.get(api_version)
            if entry is None or self.clock() - entry[0] > CACHE_S:
                entry = (self.clock(), self._read(api_version))
                self._kinds_by_version[api_version] = entry
        return entry[1].get(kind)

    def _read(self, api_version: str) -> dict[str, Resource]:
        group, _, version = api_version.rpartition("/")
        document = DiscoveryDocument(
            group=group, version=version, plural="", kind="APIResourceList", namespaced=False
        )
        try:
            body: dict[str, Any] = self.gateway.get(document, api_version, as_type=dict)
        except KubeError:
            return {}
        return {
            dig_text(entry, "kind"): Resource(
                group=group,
                version=version,
                plural=dig_text(entry, "name"),
                kind=dig_text(entry, "kind"),
                namespaced=entry.get("namespaced") is True,
            )
            for entry in dig_list(body, "resources")
            if isinstance(entry, dict) and "/" not in dig_text(entry, "name")
        }
